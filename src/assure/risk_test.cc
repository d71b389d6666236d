// Goal: a risk weighs what its steps say, the register keeps decisions and history as promised, and
// nothing that could not be seen counts as mended.
// Method: small models and registers in memory; the shipped model against the shipped checks.

#include <gtest/gtest.h>

#include <algorithm>

#include "assure/risk_register.h"
#include "isolate/probe_table.h"
#include "os/file.h"

namespace ringfence::assure {
namespace {

constexpr std::string_view kModel = R"(
adjustments:
  - {id: shared, says: shared, when: several_tenants, classes: [driver], likelihood: 1}
  - {id: alone, says: alone, when: one_tenant, classes: [driver], likelihood: -1}
  - {id: reach, says: reach, when: reachable, checks: ["api-*"], likelihood: 1}
  - {id: isolated, says: isolated, when: isolated, checks: ["api-*"], likelihood: -1}
  - {id: restricted, says: restricted, when: restricted, impact: 1}
  - {id: proven, says: proven, when: proven, probes: [a, b], checks: [gpu], likelihood: -2}
  - {id: hard, says: hard, when: proven, probes: [c], checks: [gpu], likelihood: -1, hardware: true}
  - {id: leaked, says: leaked, when: leaked, probes: ["*"], classes: [driver], likelihood: 2}
)";

const Timestamp kNow = ParseTime("2026-11-16T12:00:00Z").value();
const Timestamp kDay = kNow + std::chrono::days(1);

const RiskModel& Model() {
  static const RiskModel kParsed = ParseRiskModel(kModel, "m").value();
  return kParsed;
}

RiskFinding Found(const std::string& check, Standing standing, int likelihood = 3, int impact = 4) {
  return {check, "title", "driver", standing, likelihood, impact, 1, "seen", "fix", ""};
}

Register Updated(std::vector<RiskFinding> findings, Timestamp when = kNow, Register reg = {},
                 Exposure exposure = {}) {
  EXPECT_TRUE(UpdateRegister(reg, Model(), {"n1", when, std::move(findings)}, exposure, when));
  return reg;
}

int Likelihood(const Exposure& exposure, std::string_view check = "gpu",
               std::string_view area = "driver") {
  return Weigh(Model(), {check, area, 3, 3, false}, exposure, kNow).likelihood;
}

TEST(RiskModelTest, EachThingThatIsKnownOfANodeMovesWhatItIsAbout) {
  Exposure exposure;
  EXPECT_EQ(Likelihood(exposure), 3);
  exposure.tenants = 2;
  EXPECT_EQ(Likelihood(exposure), 4);
  EXPECT_EQ(Likelihood(exposure, "gpu", "host"), 3);
  exposure.tenants = 0;
  EXPECT_EQ(Likelihood(exposure), 2);
  exposure.reachable = true;
  EXPECT_EQ(Likelihood(exposure, "api-x", "remote"), 4);
  EXPECT_EQ(Likelihood(exposure, "xapi-", "remote"), 3);
  exposure.reachable = false;
  EXPECT_EQ(Likelihood(exposure, "api-x", "remote"), 2);
  exposure.classification = "restricted";
  EXPECT_EQ(Weigh(Model(), {"z", "host", 3, 3, false}, exposure, kNow).impact, 4);
  EXPECT_EQ(Weigh(Model(), {"z", "host", 3, 5, false}, exposure, kNow).impact, 5);
  EXPECT_EQ(Weigh(Model(), {"z", "host", 3, 3, true}, exposure, kNow).impact, 3);
}

TEST(RiskModelTest, OnlyAFreshAndWholeProofCounts) {
  Exposure exposure;
  exposure.proofs = {{"a", "held", kNow}};
  EXPECT_EQ(Likelihood(exposure), 3) << "b was not tried";
  exposure.proofs.push_back({"b", "held", kNow - std::chrono::days(30)});
  EXPECT_EQ(Likelihood(exposure), 1);
  exposure.proofs[1].when = kNow - std::chrono::days(31);
  EXPECT_EQ(Likelihood(exposure), 3);
  exposure.proofs[1].when = kDay;
  EXPECT_EQ(Likelihood(exposure), 3) << "a proof from the future proves nothing";
  exposure.proofs[1] = {"b", "leaked", kNow};
  EXPECT_EQ(Likelihood(exposure), 5);
  exposure.proofs = {{"c", "held", kNow}};
  EXPECT_EQ(Likelihood(exposure), 2);
  exposure.simulated = true;
  EXPECT_EQ(Likelihood(exposure), 3);
}

TEST(RiskModelTest, MistakesAreNamed) {
  for (const auto& [text, part] : std::vector<std::pair<std::string, std::string>>{
           {"adjustments:\n  - {id: a, says: b, when: sometimes}\n", "no condition \"sometimes\""},
           {"adjustments:\n  - {id: a, says: b, when: proven}\n", "probes"},
           {"adjustments:\n  - {id: a, says: b, when: always, likelihod: 1}\n", "likelihod"},
           {"adjustments:\n  - {id: a, says: b, when: always, likelihood: 9}\n", "likelihood"},
           {"- a\n", "object"}}) {
    const auto model = ParseRiskModel(text, "m.yaml");
    ASSERT_FALSE(model.has_value()) << text;
    EXPECT_NE(model.error().message.find(part), std::string::npos) << model.error().message;
  }
}

TEST(RiskModelTest, TheShippedModelNamesChecksAndProbesThatExist) {
  const std::string file = RINGFENCE_SOURCE_DIR "/content/risk/model.yaml";
  const auto model = ParseRiskModel(os::ReadText(file, 1 << 20).value(), file);
  ASSERT_TRUE(model.has_value()) << model.error().message;
  const auto checks = LoadChecks(RINGFENCE_SOURCE_DIR "/content/checks").value();
  for (const RiskRule& rule : model->rules) {
    for (const std::string& pattern : rule.checks) {
      EXPECT_TRUE(
          std::any_of(checks.begin(), checks.end(),
                      [&](const CheckSpec& check) { return GlobMatches(pattern, check.id); }))
          << rule.id << ": " << pattern;
    }
    for (const std::string& area : rule.classes) {
      EXPECT_TRUE(std::any_of(checks.begin(), checks.end(),
                              [&](const CheckSpec& check) { return check.area == area; }))
          << rule.id << ": " << area;
    }
    for (const std::string& probe : rule.probes) {
      EXPECT_TRUE(probe == "*" || isolate::FindProbe(probe) != nullptr) << rule.id << ": " << probe;
    }
  }
}

TEST(RiskRegisterTest, ScoresAddUp) {
  const Register reg = Updated({Found("a", Standing::kFail), Found("b", Standing::kUnknown),
                                Found("c", Standing::kPass), Found("d", Standing::kNotApplicable)});
  const auto scores = ScoreNodes(reg, Model(), kNow);
  ASSERT_EQ(scores.size(), 1U);
  EXPECT_EQ(scores[0].held, 24);
  EXPECT_EQ(scores[0].lost, 24 + 12);
  EXPECT_EQ(scores[0].all, 72);
  EXPECT_EQ(scores[0].score(), 50);
  EXPECT_EQ(scores[0].open, 1);
  EXPECT_EQ(scores[0].doubtful, 1);
  EXPECT_EQ(ScoreOf(1, 1000), 99) << "rounded down: 100 only where nothing is lost";
  EXPECT_EQ(ScoreOf(0, 0), 100);
}

TEST(RiskRegisterTest, AFindingOpensClosesAndOpensAgainAndIsNotLostSightOf) {
  Register reg = Updated({Found("a", Standing::kFail)});
  reg = Updated({Found("a", Standing::kUnknown)}, kNow, std::move(reg));
  EXPECT_TRUE(reg.risks.at("n1/a").open);
  EXPECT_EQ(reg.risks.at("n1/a").finding.standing, Standing::kFail) << "blind is not mended";
  reg = Updated({Found("z", Standing::kFail)}, kNow, std::move(reg));
  EXPECT_TRUE(reg.risks.at("n1/a").open) << "a check that was not run closes nothing";
  reg = Updated({Found("a", Standing::kPass)}, kNow, std::move(reg));
  EXPECT_FALSE(reg.risks.at("n1/a").open);
  reg = Updated({Found("a", Standing::kFail)}, kDay, std::move(reg));
  const Risk& risk = reg.risks.at("n1/a");
  EXPECT_TRUE(risk.open);
  EXPECT_EQ(risk.first, kNow);
  ASSERT_EQ(risk.history.size(), 4U);
  EXPECT_TRUE(risk.history[0].what.starts_with("opened: fail"));
  EXPECT_TRUE(risk.history[1].what.starts_with("cannot be told any more"));
  EXPECT_TRUE(risk.history[2].what.starts_with("closed: pass"));
  EXPECT_TRUE(risk.history[3].what.starts_with("opened again"));
  EXPECT_FALSE(UpdateRegister(reg, Model(), {"n1", kNow, {}}, {}, kDay)) << "an older assessment";
  EXPECT_FALSE(UpdateRegister(reg, Model(), {"a/b", kDay, {}}, {}, kDay));
}

TEST(RiskRegisterTest, AnAssessmentFromTheFutureDoesNotHoldUpThoseThatFollow) {
  Register reg = Updated({Found("a", Standing::kFail)});
  const NodeFindings future{"n1", kNow + std::chrono::days(400), {Found("a", Standing::kPass)}};
  const auto refused = UpdateRegister(reg, Model(), future, {}, kNow);
  ASSERT_FALSE(refused.has_value());
  EXPECT_EQ(refused.error().code, Code::kInvalidArgument);
  EXPECT_TRUE(reg.risks.at("n1/a").open);
  EXPECT_TRUE(UpdateRegister(reg, Model(), {"n1", kNow + kClockSkew, {}}, {}, kNow)) << "a skew";
  // One that was taken in before it was refused: the next real one heals it.
  reg.nodes.at("n1").when = future.when;
  EXPECT_TRUE(UpdateRegister(reg, Model(), {"n1", kNow, {Found("a", Standing::kPass)}}, {}, kNow));
  EXPECT_EQ(reg.nodes.at("n1").when, kNow);
  EXPECT_FALSE(reg.risks.at("n1/a").open);
}

TEST(RiskRegisterTest, ThePageSpellsOutEachStepWithItsSign) {
  Exposure exposure;
  exposure.tenants = 2;
  const Register reg = Updated({Found("a", Standing::kFail)}, kNow, {}, exposure);
  EXPECT_NE(RiskHtml(reg, Model(), kNow).find("likelihood +1"), std::string::npos);
}

RiskDecision Accept(Timestamp until) { return {"accept", "ann", "why", until, {}, 0}; }

TEST(RiskRegisterTest, AnAcceptanceEndsWithItsDayAndWhenTheRiskGrows) {
  Register reg = Updated({Found("a", Standing::kFail)});
  const RiskModel& model = Model();
  EXPECT_EQ(Decide(reg, model, "n1/b", Accept(kDay), kNow).error().code, Code::kNotFound);
  EXPECT_FALSE(Decide(reg, model, "n1/a", Accept(kNow), kNow).has_value());
  EXPECT_FALSE(Decide(reg, model, "n1/a", Accept(kNow + std::chrono::days(367)), kNow).has_value());
  ASSERT_TRUE(Decide(reg, model, "n1/a", Accept(kDay), kNow).has_value());
  const auto footing = [&](Timestamp when) {
    const Risk& risk = reg.risks.at("n1/a");
    return FootingOf(risk, WeighRisk(reg, model, risk, when), when);
  };
  EXPECT_EQ(footing(kDay), Footing::kAccepted);
  EXPECT_EQ(footing(kDay + Milliseconds(1)), Footing::kLapsed);
  EXPECT_TRUE(TopMendings(reg, model, kNow, 10).empty());
  EXPECT_EQ(ScoreNodes(reg, model, kNow)[0].lost, 24) << "accepting takes no risk away";
  Exposure exposure;
  exposure.tenants = 2;
  reg = Updated({Found("a", Standing::kFail)}, kNow, std::move(reg), exposure);
  EXPECT_EQ(footing(kNow), Footing::kLapsed) << "12 was accepted, 16 was not";
  EXPECT_EQ(TopMendings(reg, model, kNow, 10).size(), 1U);
  reg = Updated({Found("a", Standing::kPass)}, kNow, std::move(reg));
  EXPECT_FALSE(Decide(reg, model, "n1/a", Accept(kDay), kNow).has_value()) << "closed";
  EXPECT_TRUE(reg.risks.at("n1/a").decision.kind.empty());
}

TEST(RiskRegisterTest, MendingsAreSortedByRiskForEffort) {
  RiskFinding cheap = Found("cheap", Standing::kFail, 2, 5);
  RiskFinding dear = Found("dear", Standing::kFail, 5, 5);
  dear.effort = 3;
  Register reg = Updated({cheap, dear});
  ASSERT_TRUE(UpdateRegister(reg, Model(), {"n2", kNow, {cheap}}, {}, kNow));
  const auto top = TopMendings(reg, Model(), kNow, 10);
  ASSERT_EQ(top.size(), 2U);
  EXPECT_EQ(top[0].finding->check, "cheap");
  EXPECT_EQ(top[0].nodes, 2);
  EXPECT_EQ(top[0].risk, 20);
  EXPECT_EQ(top[1].score, 100) << "when all is mended nothing is lost";
  const Heat heat = HeatOf(reg, Model(), kNow);
  EXPECT_EQ(heat.cells[1][4], 2);
  EXPECT_EQ(heat.cells[4][4], 1);
}

TEST(RiskRegisterTest, TheFileHoldsEverythingAndDamageIsRefused) {
  Exposure exposure;
  exposure.tenants = 2;
  exposure.reachable = false;
  exposure.classification = "restricted";
  exposure.proofs = {{"a", "held", kNow}};
  Register reg =
      Updated({Found("a", Standing::kFail), Found("b", Standing::kPass)}, kNow, {}, exposure);
  ASSERT_TRUE(Decide(reg, Model(), "n1/a", Accept(kDay), kNow).has_value());
  const std::string text = RegisterText(reg);
  const auto read = ParseRegister(text);
  ASSERT_TRUE(read.has_value()) << read.error().message;
  EXPECT_EQ(RegisterText(*read), text);
  for (std::size_t cut = 0; cut + 2 < text.size(); cut += 7) {
    EXPECT_FALSE(ParseRegister(text.substr(0, cut)).has_value()) << cut;
  }
  std::string other = text;
  other.replace(other.find("ringfence-risk-1"), 16, "ringfence-risk-2");
  EXPECT_FALSE(ParseRegister(other).has_value());
}

TEST(RiskRegisterTest, HistoryAndTrendAreBounded) {
  Register reg;
  for (int i = 0; i < 2 * static_cast<int>(kTrendPointsMax); ++i) {
    const Standing standing = i % 2 == 0 ? Standing::kFail : Standing::kPass;
    reg = Updated({Found("a", standing)}, kNow + std::chrono::minutes(i), std::move(reg));
  }
  EXPECT_EQ(reg.nodes.at("n1").trend.size(), kTrendPointsMax);
  const Risk& risk = reg.risks.at("n1/a");
  EXPECT_EQ(risk.history.size(), kRiskHistoryMax);
  EXPECT_EQ(risk.history.front().when, kNow) << "how it began stays";
  EXPECT_TRUE(ParseRegister(RegisterText(reg)).has_value());
}

TEST(RiskRegisterTest, ThePageEscapesWhatItShows) {
  RiskFinding finding = Found("a", Standing::kFail);
  finding.seen = "<script>alert(1)</script>";
  const std::string page = RiskHtml(Updated({finding}), Model(), kNow);
  EXPECT_EQ(page.find("<script"), std::string::npos);
  EXPECT_NE(page.find("&lt;script&gt;"), std::string::npos);
}

}  // namespace
}  // namespace ringfence::assure
