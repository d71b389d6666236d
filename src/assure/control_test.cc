// Goal: the shipped mapping is whole and names nothing that is not there; mistakes in a file are
// named with their line; a control's state never claims more than its evidence.
// Method: content/controls against content/checks, the table of probes, the server's sources and
// NIST's LOW baseline; small frameworks with made-up evidence of every kind.

#include <gtest/gtest.h>

#include <set>

#include "assure/comply_report.h"
#include "isolate/probe_table.h"
#include "os/file.h"

namespace ringfence::assure {
namespace {

const Timestamp kNow = ParseTime("2030-07-15T12:00:00Z").value();
const std::string kSource = RINGFENCE_SOURCE_DIR;

std::vector<Framework> Shipped() {
  auto frameworks = LoadFrameworks(kSource + "/content/controls");
  EXPECT_TRUE(frameworks.has_value()) << frameworks.error().message;
  return frameworks.has_value() ? std::move(*frameworks) : std::vector<Framework>();
}

std::string ReadAll(const std::string& path) {
  const auto text = os::ReadText(path, std::size_t{4} << 20U);
  EXPECT_TRUE(text.has_value()) << path;
  return text.has_value() ? *text : "";
}

TEST(ControlTest, WhatIsNamedExists) {
  std::set<std::string> checks;
  std::set<std::string> tags;
  const auto shipped_checks = LoadChecks(kSource + "/content/checks");
  ASSERT_TRUE(shipped_checks.has_value());
  for (const CheckSpec& check : *shipped_checks) {
    checks.insert(check.id);
    tags.insert(check.controls.begin(), check.controls.end());
  }
  std::string sources;
  for (const char* folder : {"/src/server", "/src/backup"}) {
    const auto names = os::ListDir(kSource + folder);
    ASSERT_TRUE(names.has_value());
    for (const std::string& name : *names) {
      if (name.ends_with(".cc") && !name.ends_with("_test.cc")) {
        sources += ReadAll(kSource + folder + "/" + name);
      }
    }
  }
  std::set<std::string> used;
  for (const Framework& framework : Shipped()) {
    for (const ControlSpec& control : framework.controls) {
      used.insert(framework.prefix + ":" + control.id);
      for (const std::string& name : control.checks) {
        const bool tag = name.find(':') != std::string::npos;
        EXPECT_TRUE(tag ? tags.contains(name) : checks.contains(name))
            << control.id << ": " << name;
        used.insert(name);
      }
      for (const std::string& name : control.probes) {
        EXPECT_NE(isolate::FindProbe(name), nullptr) << control.id << ": " << name;
      }
      for (const AuditQuery& query : control.audit) {
        EXPECT_NE(sources.find("\"" + query.action + "\""), std::string::npos)
            << control.id << ": nothing records " << query.action;
      }
    }
  }
  for (const std::string& tag : tags) {
    EXPECT_TRUE(used.contains(tag)) << "checks name " << tag << ", and no control is that";
  }
}

TEST(ControlTest, AllOfNistLowIsThere) {
  const auto profile = ParseOscalProfile(
      ReadAll(kSource + "/tests/vectors/oscal/NIST_SP-800-53_rev5_LOW-baseline_profile.json"), "p");
  const auto catalog =
      ParseOscalCatalog(ReadAll(kSource + "/tests/vectors/oscal/low_catalog_ids.json"), "c");
  ASSERT_TRUE(profile.has_value() && catalog.has_value());
  const auto low = ResolveProfile(*profile, *catalog);
  ASSERT_TRUE(low.has_value()) << low.error().message;
  EXPECT_EQ(low->size(), 149U);
  for (const Framework& framework : Shipped()) {
    if (framework.id != "nist-800-53") {
      continue;
    }
    std::size_t count = 0;
    for (const ControlSpec& control : framework.controls) {
      count += control.baseline == "low" ? 1U : 0U;
    }
    EXPECT_EQ(count, low->size());
    for (const OscalControl& wanted : *low) {
      const auto found = FindControl({framework}, wanted.id);
      ASSERT_TRUE(found.has_value()) << wanted.id;
    }
    const Framework tailored = Tailor(framework, *low);
    for (std::size_t i = 0; i < low->size(); ++i) {
      const auto shipped =
          std::find_if(framework.controls.begin(), framework.controls.end(),
                       [&](const ControlSpec& control) { return control.id == (*low)[i].id; });
      ASSERT_NE(shipped, framework.controls.end()) << (*low)[i].id;
      EXPECT_EQ(shipped->title, (*low)[i].title) << (*low)[i].id;
      EXPECT_TRUE(tailored.controls[i].mapped);
    }
  }
}

TEST(ControlTest, IdsAsPeopleWriteThem) {
  EXPECT_EQ(PlainControlId("AC-2(1)"), "ac-2.1");
  EXPECT_EQ(PlainControlId("ac-02 (01)"), "ac-2.1");
  EXPECT_EQ(PlainControlId("SC-39"), "sc-39");
  EXPECT_EQ(PlainControlId("Art. 32 (1)(a)"), "32(1)(a)");
  EXPECT_EQ(PlainControlId("164.312(b)"), "164.312(b)");
  EXPECT_EQ(PlainControlId("ac-"), "ac-");
  EXPECT_EQ(PlainControlId(""), "");
  const auto shipped = Shipped();
  EXPECT_EQ((*FindControl(shipped, "AC-2"))->title, "Account Management");
  EXPECT_EQ((*FindControl(shipped, "hipaa:164.312(b)"))->title, "Audit controls");
  EXPECT_EQ((*FindControl(shipped, "Art. 30"))->framework, "gdpr");
  EXPECT_FALSE(FindControl(shipped, "hipaa:ac-2").has_value());
  EXPECT_FALSE(FindControl(shipped, "zz-1").has_value());
}

constexpr std::string_view kGood = R"(framework: f
title: A framework
prefix: p
controls:
  - id: one
    title: One
    checks: [a-check]
    audit:
      - {action: lease.scrub, shows: it, proof: true}
    person: The rest.
)";

TEST(ControlTest, MistakesAreNamedWithTheirLine) {
  ASSERT_TRUE(ParseFramework(kGood, "c.yaml").has_value());
  const std::tuple<const char*, const char*, const char*> changes[] = {
      {"person: The rest.", "persn: The rest.", "c.yaml:5: controls[0].person"},
      {"id: one", "id: 32", "c.yaml:5: controls[0].id"},
      {"id: one", "id: AC-02", "write \"ac-2\""},
      {"id: one", "id: \"one two\"", "no control's id"},
      {"[a-check]", "[a, a]", "c.yaml:7: controls[0].checks: names \"a\" twice"},
      {"[a-check]", "a-check", "c.yaml:7"},
      {"lease.scrub", "scrub", "c.yaml:9: controls[0].audit[0].action"},
      {"proof: true", "proof: yes", "must be true or false"},
      {"shows: it", "show: it", "unknown field"},
      {"title: A framework", "titel: A framework", "titel"},
      {"controls:", "control:", "must be a list"},
      {"framework: f", "framework: [", "c.yaml"},
  };
  for (const auto& [from, to, said] : changes) {
    std::string text(kGood);
    text.replace(text.find(from), std::string(from).size(), to);
    const auto framework = ParseFramework(text, "c.yaml");
    ASSERT_FALSE(framework.has_value()) << to;
    EXPECT_NE(framework.error().message.find(said), std::string::npos)
        << to << ": " << framework.error().message;
  }
  const std::string twice = std::string(kGood) + "  - {id: one, title: Again, person: p}\n";
  const auto doubled = ParseFramework(twice, "c.yaml");
  ASSERT_FALSE(doubled.has_value());
  EXPECT_NE(doubled.error().message.find("here twice"), std::string::npos);
}

// One control with a check, a probe and an entry, each of which a test can change.
struct Stage {
  CheckSpec check;
  Assessment assessment;
  Framework framework;
  Evidence evidence;

  Stage() {
    check.id = "a-check";
    check.controls = {"p:one"};
    assessment.results.push_back({});
    assessment.results[0].check = &check;
    assessment.results[0].standing = Standing::kPass;
    framework.id = "f";
    framework.prefix = "p";
    framework.controls.push_back({});
    framework.controls[0].id = "one";
    framework.controls[0].person = "The rest.";
    evidence.assessment = &assessment;
    evidence.now = kNow;
  }
  ControlSpec& control() { return framework.controls[0]; }
  void Probe(const std::string& name, const std::string& result, int days_ago = 1,
             bool simulated = false) {
    evidence.probes[name].push_back({.node = "n",
                                     .result = result,
                                     .why = "",
                                     .time = kNow - std::chrono::hours(24 * days_ago),
                                     .attack = "",
                                     .control = "",
                                     .simulated = simulated});
  }
  void Entry(const std::string& action, bool proven, int days_ago = 1) {
    evidence.audit[action] = {.index = 7,
                              .time = kNow - std::chrono::hours(24 * days_ago),
                              .proven = proven,
                              .node = "n",
                              .principal = "p",
                              .count = 1};
  }
  ControlStatus Judge() { return JudgeFramework(framework, evidence).controls.at(0); }
  std::string State() { return std::string(Name(Judge().state)); }
};

TEST(ControlTest, ChecksAloneConfigureAndFail) {
  Stage stage;
  EXPECT_EQ(stage.State(), "configured");
  stage.assessment.results[0].standing = Standing::kUnknown;
  EXPECT_EQ(stage.State(), "cannot tell");
  stage.assessment.results[0].standing = Standing::kNotApplicable;
  EXPECT_EQ(stage.State(), "cannot tell");
  stage.assessment.results[0].standing = Standing::kFail;
  EXPECT_EQ(stage.State(), "failing");
  EXPECT_FALSE(stage.Judge().accepted);
  stage.assessment.results[0].excepted_by = "ann";
  EXPECT_EQ(stage.State(), "failing") << "an exception is no pass";
  EXPECT_TRUE(stage.Judge().accepted);
  stage.check.controls = {"p:other"};
  EXPECT_EQ(stage.State(), "not automated");
  stage.control().checks = {"p:other"};
  EXPECT_EQ(stage.State(), "failing") << "all checks that name another control";
  stage.control().checks = {"a-check"};
  EXPECT_EQ(stage.State(), "failing");
}

TEST(ControlTest, OnlyAFreshHeldProbeProves) {
  Stage stage;
  stage.control().probes = {"ptrace", "setns"};
  EXPECT_EQ(stage.State(), "configured") << "never run";
  stage.Probe("ptrace", "held", 2);
  EXPECT_EQ(stage.State(), "configured") << "one of two";
  stage.Probe("setns", "could not be tried");
  const ControlStatus proven = stage.Judge();
  EXPECT_EQ(Name(proven.state), "proven");
  EXPECT_EQ(*proven.proven_at, kNow - std::chrono::hours(48)) << "the oldest that it rests on";
  EXPECT_NE(proven.why.find("1 could not be tried"), std::string::npos) << proven.why;
  stage.evidence.probes["setns"].clear();
  stage.Probe("setns", "held", 31);
  EXPECT_EQ(stage.State(), "configured") << "too long ago";
  stage.Probe("setns", "leaked", 400);
  EXPECT_EQ(stage.State(), "failing") << "a leak stands until it is tried again";
  stage.assessment.results.clear();
  stage.evidence.probes.clear();
  stage.Probe("ptrace", "could not be tried");
  stage.Probe("setns", "could not be tried");
  EXPECT_EQ(stage.State(), "cannot tell");
}

TEST(ControlTest, SimulatedGpusProveNothingAboutReal) {
  Stage stage;
  stage.control().probes = {"leftover-memory"};
  stage.Probe("leftover-memory", "held", 1, true);
  EXPECT_EQ(stage.State(), "configured");
  stage.control().probes = {"ptrace"};
  stage.Probe("ptrace", "held", 1, true);
  EXPECT_EQ(stage.State(), "proven") << "that wall is the kernel's";
  stage.control().audit = {{.action = "lease.scrub", .shows = "it", .proof = true}};
  stage.Entry("lease.scrub", true);
  stage.evidence.simulated["n"] = true;
  EXPECT_EQ(stage.State(), "configured");
  stage.evidence.simulated["n"] = false;
  EXPECT_EQ(stage.State(), "proven");
}

TEST(ControlTest, EntriesProveOnlyUnderACheckpointAndWhereTheMappingSaysSo) {
  Stage stage;
  stage.assessment.results.clear();
  stage.control().audit = {{.action = "token.create", .shows = "it", .proof = false}};
  EXPECT_EQ(stage.State(), "cannot tell");
  stage.Entry("token.create", true);
  EXPECT_EQ(stage.State(), "configured");
  stage.control().audit[0].proof = true;
  EXPECT_EQ(stage.State(), "proven");
  stage.Entry("token.create", false);
  EXPECT_EQ(stage.State(), "configured");
  stage.Entry("token.create", true, 31);
  EXPECT_EQ(stage.State(), "configured");
  stage.evidence.audit.clear();
  stage.evidence.no_server = "no server";
  EXPECT_EQ(stage.State(), "cannot tell");
  EXPECT_NE(stage.Judge().why.find("no server"), std::string::npos);
}

TEST(ControlTest, TheServersAnswersAreRead) {
  Evidence evidence;
  const auto proofs = ParseJson(
      R"({"node":"n1","time":"2030-07-01T00:00:00.000Z","simulated":false,"probes":{"ptrace":
          {"result":"held","why":"","time":"2030-07-01T00:00:00.000Z","attack":"l1","control":"l2"}}})",
      1 << 16);
  ASSERT_TRUE(AddProofs(*proofs, evidence).has_value());
  EXPECT_EQ(evidence.probes.at("ptrace").at(0).attack, "l1");
  EXPECT_FALSE(evidence.simulated.at("n1"));
  EXPECT_FALSE(AddProofs(*ParseJson("[]", 64), evidence).has_value());
  EXPECT_FALSE(
      AddProofs(*ParseJson(R"({"node":"n","probes":{"x":{"time":"later"}}})", 64), evidence)
          .has_value());
  const auto items = ParseJson(
      R"([{"index":9,"proven":false,"entry":{"time":"2030-07-03T00:00:00.000Z","action":"a.b"}},
          {"index":8,"proven":true,"entry":{"time":"2030-07-02T00:00:00.000Z","action":"a.b",
           "node":"n1","actor":{"principal":"ann"}}}])",
      1 << 16);
  ASSERT_TRUE(AddAuditItems(items->get_array(), evidence).has_value());
  EXPECT_EQ(evidence.audit.at("a.b").index, 8) << "the newest that is proven";
  EXPECT_EQ(evidence.audit.at("a.b").count, 2U);
  EXPECT_EQ(evidence.audit.at("a.b").principal, "ann");
  EXPECT_FALSE(AddAuditItems({Json("x")}, evidence).has_value());
  for (const char* gpus : {"[]", "[\"GPU-1\"]"}) {
    EXPECT_FALSE(evidence.audit.contains("lease.scrub")) << "of a lease without GPUs";
    const auto scrub = ParseJson(
        std::string(R"([{"index":1,"proven":true,"entry":{"time":"2030-07-03T00:00:00.000Z",
                       "action":"lease.scrub","gpus":)") +
            gpus + "}}]",
        1 << 16);
    ASSERT_TRUE(AddAuditItems(scrub->get_array(), evidence).has_value());
  }
  EXPECT_TRUE(evidence.audit.contains("lease.scrub"));
}

}  // namespace
}  // namespace ringfence::assure
