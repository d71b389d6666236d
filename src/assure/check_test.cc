// Goal: every shipped check passes, fails and cannot tell where its own tests say so; a check with
// a mistake harms no other; the score and the order of work are as documented. Method: the fixtures
// in content/checks, each on a machine made of text; small checks written here; prepared roots of a
// well and a badly kept node; docs/checks.md against the checks.

#include <gtest/gtest.h>

#include <set>

#include "assure/assess_report.h"
#include "assure/check_run.h"
#include "os/file.h"

namespace ringfence::assure {
namespace {

const Timestamp kNow = ParseTime("2030-07-15T12:00:00Z").value();
constexpr const char* kChecks = RINGFENCE_SOURCE_DIR "/content/checks";

std::vector<CheckSpec> Shipped() {
  const auto checks = LoadChecks(kChecks);
  EXPECT_TRUE(checks.has_value()) << checks.error().message;
  return checks.has_value() ? *checks : std::vector<CheckSpec>();
}

std::int64_t Seconds(Timestamp time) { return time.time_since_epoch().count() / 1000; }

TEST(CheckTest, EachShippedCheckKeepsItsOwnTests) {
  const auto bulletins = LoadBulletins(RINGFENCE_SOURCE_DIR "/tests/vectors/bulletins");
  ASSERT_TRUE(bulletins.has_value());
  const AdvisoryIndex index(bulletins->bulletins);
  std::size_t run = 0;
  for (const CheckSpec& check : Shipped()) {
    ASSERT_EQ(check.broken, "") << check.id;
    std::set<Standing> tried;
    for (const CheckExample& example : check.examples) {
      const auto machine = MakeMachine(example.files, Seconds(kNow));
      const CheckResult result = RunCheck(check, {*machine, &index, kNow});
      EXPECT_EQ(Name(result.standing), Name(example.expected))
          << check.id << " tests." << example.name << ": " << result.why;
      EXPECT_FALSE(result.why.empty()) << check.id << " tests." << example.name;
      tried.insert(example.expected);
      ++run;
    }
    for (const Standing needed : {Standing::kPass, Standing::kFail, Standing::kUnknown}) {
      EXPECT_TRUE(tried.contains(needed)) << check.id << " has no test that says " << Name(needed);
    }
  }
  EXPECT_GE(run, 450U);
}

TEST(CheckTest, ThereAreEnoughAndTheyAreWhole) {
  const auto checks = Shipped();
  EXPECT_GE(checks.size(), 150U);
  for (const CheckSpec& check : checks) {
    EXPECT_FALSE(check.controls.empty()) << check.id;
    EXPECT_FALSE(check.fix.empty()) << check.id;
    EXPECT_GT(check.why.size(), 20U) << check.id;
  }
}

TEST(CheckTest, TheDocumentIsInStep) {
  const auto document = os::ReadText(RINGFENCE_SOURCE_DIR "/docs/checks.md", std::size_t{1} << 20U);
  ASSERT_TRUE(document.has_value());
  EXPECT_EQ(*document, ChecksDocument(Shipped())) << "run: ringfence __checks > docs/checks.md";
}

constexpr std::string_view kGood = R"(class: host
checks:
  - id: one
    title: A file says yes
    why: Because.
    probe: {kind: file, path: /etc/one, get: text}
    expect: {equals: "yes"}
    likelihood: 2
    impact: 5
    fix: Say yes.
    controls: ["nist:cm-6"]
    tests: {}
)";

TEST(CheckTest, AMistakeBreaksThatCheckAlone) {
  const std::string second =
      "  - id: two\n    title: t\n    why: w\n    probe: {kind: fil, path: /x}\n    expect: {some: "
      "true}\n"
      "    likelihood: 1\n    impact: 1\n    fix: f\n    controls: []\n    tests: {}\n";
  const auto checks = ParseChecks(std::string(kGood) + second, "c.yaml");
  ASSERT_EQ(checks.size(), 2U);
  EXPECT_EQ(checks[0].broken, "");
  EXPECT_NE(checks[1].broken.find("there is no probe \"fil\""), std::string::npos)
      << checks[1].broken;
  const auto machine = MakeMachine({{"/etc/one", {.text = "yes\n"}}}, 0);
  const Assessment assessment = Assess(checks, {*machine, nullptr, kNow}, {});
  EXPECT_EQ(assessment.results[0].standing, Standing::kPass);
  EXPECT_EQ(assessment.results[1].standing, Standing::kUnknown);
  EXPECT_EQ(ParseChecks("class: [", "c.yaml").size(), 1U);
  EXPECT_NE(ParseChecks("class: [", "c.yaml")[0].broken, "");
}

TEST(CheckTest, TypingErrorsAreNamed) {
  const std::pair<const char*, const char*> changes[] = {
      {"likelihood: 2", "likelihood: 9"},
      {"impact: 5", "imapct: 5"},
      {"equals:", "equal:"},
      {"path: /etc/one", "path: etc/one"},
      {"[\"nist:cm-6\"]", "[\"iso:1\"]"},
      {"tests: {}", "tests: {maybe: {}}"},
      {"{equals: \"yes\"}", "{equals: a, one_of: [b]}"},
      {"get: text", "got: text"},
  };
  for (const auto& [from, to] : changes) {
    std::string text(kGood);
    const std::size_t at = text.find(from);
    ASSERT_NE(at, std::string::npos) << from;
    text.replace(at, std::string(from).size(), to);
    const auto checks = ParseChecks(text, "c.yaml");
    ASSERT_EQ(checks.size(), 1U) << to;
    EXPECT_NE(checks[0].broken, "") << to;
  }
}

TEST(CheckTest, TheScoreIsWhatTheDocumentSays) {
  std::vector<CheckSpec> checks(4, ParseChecks(kGood, "c.yaml")[0]);
  for (std::size_t i = 0; i < checks.size(); ++i) {
    checks[i].id = std::to_string(i);
    checks[i].probe.paths = {"/etc/" + std::to_string(i)};
  }
  checks[3].applies = {"/nowhere"};
  const auto machine = MakeMachine({{"/etc/0", {.text = "yes"}}, {"/etc/1", {.text = "no"}}}, 0);
  const Assessment assessment = Assess(checks, {*machine, nullptr, kNow}, {});
  // 10 each: one passes, one fails, one cannot tell (half), one does not apply (not counted):
  // 100 - 100 * (10 + 5) / 30.
  EXPECT_EQ(assessment.score, 50);
  EXPECT_EQ(assessment.Count(Standing::kNotApplicable), 1U);
  ASSERT_EQ(assessment.ToDo().size(), 1U);
  EXPECT_TRUE(assessment.FailsAt(SeverityRank("medium")));
  EXPECT_FALSE(assessment.FailsAt(SeverityRank("high")));
}

TEST(CheckTest, TheLeastEffortForTheMostRiskComesFirst) {
  std::vector<CheckSpec> checks(3, ParseChecks(kGood, "c.yaml")[0]);
  const int facts[3][3] = {{3, 4, 3}, {2, 4, 1}, {5, 5, 3}};  // 12/3, 8/1, 25/3
  for (std::size_t i = 0; i < 3; ++i) {
    checks[i].id = std::to_string(i);
    checks[i].likelihood = facts[i][0];
    checks[i].impact = facts[i][1];
    checks[i].effort = facts[i][2];
  }
  const auto machine = MakeMachine({{"/etc/one", {.text = "no"}}}, 0);
  std::string order;
  const Assessment assessment = Assess(checks, {*machine, nullptr, kNow}, {});
  for (const CheckResult* result : assessment.ToDo()) {
    order += result->check->id;
  }
  EXPECT_EQ(order, "210");
}

TEST(CheckTest, ExceptionsEnd) {
  const auto exceptions = ParseExceptions(
      "exceptions:\n  - {check: one, owner: ann, reason: old node, until: 2030-07-15}\n"
      "  - {check: none, owner: bob, reason: r, until: 2031-01-01}\n",
      "e.yaml");
  ASSERT_TRUE(exceptions.has_value()) << exceptions.error().message;
  const auto checks = ParseChecks(kGood, "c.yaml");
  const auto machine = MakeMachine({{"/etc/one", {.text = "no"}}}, 0);
  const Assessment now = Assess(checks, {*machine, nullptr, kNow}, *exceptions);
  EXPECT_EQ(now.results[0].excepted_by, "ann");
  EXPECT_FALSE(now.FailsAt(0));
  EXPECT_EQ(now.score, 0) << "an exception lowers no risk";
  EXPECT_EQ(now.expired.size(), 1U) << "it names no check";
  const Assessment later =
      Assess(checks, {*machine, nullptr, kNow + std::chrono::hours(24)}, *exceptions);
  EXPECT_TRUE(later.FailsAt(0));
  EXPECT_EQ(later.expired.size(), 2U);
  EXPECT_FALSE(ParseExceptions("exceptions: [{check: a, owner: b, reason: c}]", "e").has_value());
  EXPECT_FALSE(ParseExceptions("exceptions: [{check: a, owner: b, reason: c, until: soon}]", "e")
                   .has_value());
}

TEST(MachineViewTest, LinksStayWithinTheRoot) {
  const std::string root = ::testing::TempDir() + "/check_root";
  ASSERT_TRUE(os::RemoveTree(root).has_value());
  ASSERT_TRUE(os::MakeDirs(root + "/etc/ssh").has_value());
  ASSERT_TRUE(os::WriteFile(root + "/etc/hostname", AsBytes("inside\n")).has_value());
  ASSERT_EQ(std::system(("ln -sf /etc/hostname " + root +
                         "/etc/absolute && ln -sf ../../../../../../"
                         "../../etc/passwd " +
                         root + "/etc/out && ln -sf loop " + root + "/etc/loop && mkfifo " + root +
                         "/etc/pipe")
                            .c_str()),
            0);
  const auto machine = OpenMachine(root);
  ASSERT_TRUE(machine.has_value());
  EXPECT_EQ((*machine)->Read("/etc/absolute", 100).value(), "inside\n");
  EXPECT_FALSE((*machine)->Read("/etc/out", 100000).has_value());
  EXPECT_FALSE((*machine)->Read("/../../../../etc/passwd", 100000).has_value());
  EXPECT_FALSE((*machine)->Read("/etc/loop", 100).has_value());
  EXPECT_FALSE((*machine)->Read("/etc/pipe", 100).has_value()) << "and it does not wait";
  EXPECT_EQ((*machine)->Read("/etc/hostname", 3).error().code, Code::kExhausted);
  EXPECT_EQ((*machine)->Look("/none").error().code, Code::kNotFound);
  EXPECT_EQ(FindPaths(**machine, "/e*/host*").paths, std::vector<std::string>{"/etc/hostname"});
}

TEST(MachineViewTest, Globs) {
  EXPECT_TRUE(GlobMatches("*", ""));
  EXPECT_TRUE(GlobMatches("a*c*", "abcd"));
  EXPECT_FALSE(GlobMatches("a*c", "abcd"));
  EXPECT_TRUE(GlobMatches("ssh_host_*_key", "ssh_host_ed25519_key"));
  EXPECT_FALSE(GlobMatches("ssh_host_*_key", "ssh_host_ed25519_key.pub"));
}

std::set<std::string> FailedIn(const std::string& root, int* score) {
  static const std::vector<CheckSpec> checks = Shipped();
  const auto machine = OpenMachine(RINGFENCE_SOURCE_DIR "/tests/roots/" + root);
  EXPECT_TRUE(machine.has_value());
  const Assessment assessment = Assess(checks, {**machine, nullptr, kNow}, {});
  std::set<std::string> failed;
  for (const CheckResult& result : assessment.results) {
    if (result.standing == Standing::kFail) {
      failed.insert(result.check->id);
    }
    std::string told = result.why;
    for (const Observation& one : result.evidence) {
      told += "\n" + one.value;
    }
    EXPECT_EQ(told.find("hf_x"), std::string::npos) << result.check->id << " tells a secret";
  }
  *score = assessment.score;
  return failed;
}

TEST(CheckTest, AWellAndABadlyKeptNode) {
  int good = 0;
  int bad = 0;
  EXPECT_EQ(FailedIn("good", &good), std::set<std::string>{});
  const std::set<std::string> failed = FailedIn("bad", &bad);
  for (const char* id :
       {"nvidia-profiling",     "nvidia-device-mode", "nvidia-scrub-on-free", "ssh-root-login",
        "ssh-passwords",        "api-docker",         "api-jupyter",          "api-ray-dashboard",
        "container-privileged", "container-mounts",   "container-all-gpus",   "docker-group",
        "toolkit-envvar",       "mitigations-on",     "sudo-passwordless",    "mps-not-shared",
        "jupyter-token",        "cpu-flaws",          "swap-encrypted",       "docker-hosts",
        "kernel-bpf",           "time-sync",          "container-secrets"}) {
    EXPECT_TRUE(failed.contains(id)) << id;
  }
  EXPECT_GT(good, bad + 30);
}

TEST(AssessReportTest, WhatIsReadIsEscaped) {
  std::vector<CheckSpec> checks = ParseChecks(kGood, "c.yaml");
  checks[0].title = "<b>\"t\" & 't'|";
  const auto machine =
      MakeMachine({{"/etc/one", {.text = "<script>alert(1)</script>\x01 | \"x\"\n"}}}, 0);
  const Assessment assessment = Assess(checks, {*machine, nullptr, kNow}, {});
  const ReportHead head{"<node>\n\"", "/", kNow};
  for (const std::string& text : {Html(assessment, head), Junit(assessment, head)}) {
    EXPECT_EQ(text.find("<script>alert"), std::string::npos) << text;
    EXPECT_EQ(text.find("<node>"), std::string::npos);
    EXPECT_EQ(text.find('\x01'), std::string::npos);
  }
  EXPECT_NE(Prometheus(assessment, head).find("\\\""), std::string::npos);
  const auto sarif = ParseJson(Sarif(assessment, head), std::size_t{1} << 20U);
  ASSERT_TRUE(sarif.has_value()) << sarif.error().message;
  const Json& result = sarif->at("runs").at(0).at("results").at(0);
  EXPECT_EQ(result.at("ruleId"), "one");
  EXPECT_EQ(result.at("kind"), "fail");
  EXPECT_EQ(result.at("level"), "warning");
  EXPECT_EQ(result.at("locations").at(0).at("physicalLocation").at("artifactLocation").at("uri"),
            "file:///etc/one");
  const std::string markdown = Markdown(assessment, head);
  EXPECT_NE(markdown.find("\\|"), std::string::npos) << "a bar would end the cell";
}

}  // namespace
}  // namespace ringfence::assure
