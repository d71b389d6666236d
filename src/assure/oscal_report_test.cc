// Goal: OSCAL reports claim no more than the evidence, refer only to what is in them, and name the
// same thing by the same id in every run. Method: a made-up control in each state; the documents'
// shape is judged in tests/e2e/test_compliance.py.

#include "assure/oscal_report.h"

#include <gtest/gtest.h>

#include <functional>
#include <set>

#include "assure/oscal_builder.h"

namespace ringfence::assure {
namespace {

struct Case {
  CheckSpec check;
  Assessment assessment;
  Framework framework;
  Evidence evidence;
  ReportHead head;

  explicit Case(Standing standing, const char* when = "2030-07-15T12:00:00Z") {
    check.id = "a-check";
    check.title = "A title";
    check.fix = "Mend it.\nSoon.";
    check.why = "Because.";
    check.controls = {"p:1(a)"};
    assessment.results.resize(1);
    assessment.results[0].check = &check;
    assessment.results[0].standing = standing;
    assessment.results[0].why = " seen\x01 \xff ";
    assessment.results[0].evidence = {{"/etc/x:1", "v"}};
    framework.id = "f";
    framework.title = "F";
    framework.prefix = "p";
    framework.controls.resize(2);
    framework.controls[0].id = "1(a)";
    framework.controls[0].title = "One";
    framework.controls[0].person = "The rest.";
    framework.controls[1].id = "2";
    framework.controls[1].title = "Two";
    framework.controls[1].person = "All of it.";
    evidence.assessment = &assessment;
    head.when = ParseTime(when).value();
    head.node = "n1";
    evidence.now = head.when;
  }
  Case(const Case&) = delete;
  Case& operator=(const Case&) = delete;

  ControlStatus One() { return JudgeFramework(framework, evidence).controls.at(0); }
  Json Results() {
    const auto statuses = std::vector<FrameworkStatus>{JudgeFramework(framework, evidence)};
    return ParseJson(OscalAssessmentResults(statuses, evidence, head), 1 << 20)
        .value()
        .at("assessment-results");
  }
  Json Poam() {
    const auto statuses = std::vector<FrameworkStatus>{JudgeFramework(framework, evidence)};
    return ParseJson(OscalPoam(statuses, evidence, head), 1 << 20)
        .value()
        .at("plan-of-action-and-milestones");
  }
};

// Every "uuid", and every "...-uuid" that refers to one.
void Collect(const Json& value, std::set<std::string>& made, std::set<std::string>& referred) {
  if (const JsonObject* const object = value.if_object()) {
    for (const auto& member : *object) {
      const std::string key(member.key());
      if (key == "uuid") {
        made.emplace(member.value().as_string());
      } else if (key.ends_with("-uuid")) {
        referred.emplace(member.value().as_string());
      } else {
        Collect(member.value(), made, referred);
      }
    }
  } else if (const JsonArray* const array = value.if_array()) {
    EXPECT_FALSE(array->empty()) << "OSCAL has no empty lists";
    for (const Json& item : *array) {
      Collect(item, made, referred);
    }
  }
}

TEST(OscalReportTest, IdsStayAndReferencesResolve) {
  for (const Standing standing : {Standing::kPass, Standing::kFail, Standing::kUnknown}) {
    Case first(standing, "2030-07-15T12:00:00Z");
    Case later(standing, "2031-01-01T00:00:00Z");
    for (const bool poam : {false, true}) {
      std::set<std::string> made;
      std::set<std::string> referred;
      Collect(poam ? first.Poam() : first.Results(), made, referred);
      for (const std::string& uuid : referred) {
        EXPECT_TRUE(made.contains(uuid)) << uuid;
      }
      std::set<std::string> made_later;
      std::set<std::string> referred_later;
      Collect(poam ? later.Poam() : later.Results(), made_later, referred_later);
      EXPECT_EQ(made, made_later);
      EXPECT_EQ(referred, referred_later);
    }
    later.head.node = "n2";
    std::set<std::string> made;
    std::set<std::string> referred;
    Collect(later.Results(), made, referred);
    EXPECT_FALSE(made.contains(std::string(first.Results().at("uuid").as_string())))
        << "another node is another assessment";
  }
}

TEST(OscalReportTest, FindingsSayWhatIsKnown) {
  Case failing(Standing::kFail);
  const Json result = failing.Results().at("results").at(0);
  EXPECT_EQ(result.at("findings").as_array().size(), 1U) << "none about what a person must show";
  EXPECT_EQ(result.at("findings").at(0).at("target").at("target-id"), "p-1_a");
  EXPECT_EQ(result.at("findings").at(0).at("target").at("status").at("state"), "not-satisfied");
  EXPECT_EQ(result.at("risks").at(0).at("status"), "open");
  EXPECT_EQ(result.at("risks").at(0).at("remediations").at(0).at("description"), "Mend it. Soon.");
  EXPECT_EQ(result.at("observations").at(0).at("description"), "seen  ?");
  EXPECT_NE(std::string(result.at("remarks").as_string()).find("p-2"), std::string::npos);
  failing.assessment.results[0].excepted_by = "ann";
  EXPECT_EQ(failing.Poam().at("risks").at(0).at("status"), "deviation-approved");
  Case passing(Standing::kPass);
  EXPECT_EQ(passing.Poam().at("poam-items").at(0).at("title"), "No control is failing");
  EXPECT_EQ(passing.Results()
                .at("results")
                .at(0)
                .at("findings")
                .at(0)
                .at("target")
                .at("status")
                .at("state"),
            "satisfied");
}

TEST(OscalReportTest, ConfiguredSatisfiesOnlyWhereThereIsNothingToProve) {
  Case passing(Standing::kPass);
  EXPECT_TRUE(IsSatisfied(passing.One()));
  passing.framework.controls[0].probes = {"ptrace"};
  EXPECT_FALSE(IsSatisfied(passing.One()));
  passing.evidence.probes["ptrace"].push_back({.node = "n1",
                                               .result = "held",
                                               .why = "",
                                               .time = passing.evidence.now,
                                               .attack = "l1",
                                               .control = "l2",
                                               .simulated = false});
  EXPECT_TRUE(IsSatisfied(passing.One()));
  passing.framework.controls[0].probes.clear();
  passing.framework.controls[0].audit = {{.action = "a.b", .shows = "x", .proof = true}};
  EXPECT_FALSE(IsSatisfied(passing.One()));
  Case unknown(Standing::kUnknown);
  EXPECT_FALSE(IsSatisfied(unknown.One()));
  Case failing(Standing::kFail);
  EXPECT_FALSE(IsSatisfied(failing.One()));
}

TEST(OscalReportTest, LinesAreWhatOscalTakes) {
  EXPECT_EQ(OscalLine(""), "-");
  EXPECT_EQ(OscalLine(" \n "), "-");
  EXPECT_EQ(OscalLine(" a\nb "), "a b");
  EXPECT_EQ(OscalLine("\xc3\xa9"), "\xc3\xa9");
  EXPECT_EQ(OscalLine("\xc3"), "?");
}

TEST(OscalReportTest, DocumentsForPeopleEscape) {
  Case failing(Standing::kFail);
  failing.framework.controls[0].title = "<script>|";
  const std::vector<FrameworkStatus> statuses = {
      JudgeFramework(failing.framework, failing.evidence)};
  const std::string html = ComplianceHtml(statuses, failing.evidence, failing.head);
  EXPECT_EQ(html.find("<script>"), std::string::npos);
  EXPECT_NE(html.find("&lt;script&gt;"), std::string::npos);
  const std::string markdown = ComplianceMarkdown(statuses, failing.evidence, failing.head);
  EXPECT_NE(markdown.find("\\<script>\\|"), std::string::npos);
  EXPECT_NE(markdown.find("All of it."), std::string::npos);
}

}  // namespace
}  // namespace ringfence::assure
