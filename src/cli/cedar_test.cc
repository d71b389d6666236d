// Goal: the cedar commands take the reference's arguments and exit as it does; failures never look
// like a decision.
// Method: the command line on small files, every exit status.

#include "cli/test_support.h"

namespace ringfence::cli {
namespace {

constexpr std::string_view kPolicies =
    "@id(\"owner\")\npermit(principal, action == Action::\"view\", resource) when { "
    "resource.owner == principal };\nforbid(principal, action, resource) when { context.blocked "
    "};\n";
constexpr std::string_view kEntities =
    R"([{"uid": {"type": "Photo", "id": "p"}, "attrs": {"owner": {"__entity": {"type": "User", "id": "a"}}}, "parents": []}])";
constexpr std::string_view kSchema =
    "entity User; entity Photo = { owner: User }; action view appliesTo { principal: User, "
    "resource: Photo, context: { blocked: Bool } };";

class CedarTest : public testing::Test {
 protected:
  AppResult Run(std::vector<std::string> words) {
    words.insert(words.begin(), "cedar");
    return RunLine(folder_.folder.path(), std::move(words));
  }
  AppResult Ask(const std::string& user, const std::string& context,
                std::vector<std::string> more = {}) {
    std::vector<std::string> words = {"authorize",
                                      "--policies",
                                      folder_.Write("p.cedar", kPolicies),
                                      "--entities",
                                      folder_.Write("e.json", kEntities),
                                      "--principal",
                                      "User::\"" + user + "\"",
                                      "--action",
                                      "Action::\"view\"",
                                      "--resource",
                                      "Photo::\"p\"",
                                      "--context",
                                      folder_.Write("c.json", context)};
    words.insert(words.end(), more.begin(), more.end());
    return Run(std::move(words));
  }
  TestFolder folder_;
};

TEST_F(CedarTest, AuthorizeExitsAsTheReferenceDoes) {
  const AppResult allow = Ask("a", R"({"blocked": false})", {"-v"});
  EXPECT_EQ(allow.status, 0) << allow.err;
  EXPECT_TRUE(allow.out.starts_with("ALLOW\n")) << allow.out;
  EXPECT_NE(allow.out.find("  owner\n"), std::string::npos) << allow.out;
  EXPECT_EQ(Ask("b", R"({"blocked": false})").status, 2);
  EXPECT_EQ(Ask("a", R"({"blocked": true})").status, 2);
  const AppResult erring = Ask("a", "{}");
  EXPECT_EQ(erring.status, 0);
  EXPECT_NE(erring.err.find("policy1"), std::string::npos) << erring.err;
  const AppResult json = Ask("a", R"({"blocked": true})", {"--output", "json"});
  EXPECT_NE(json.out.find("\"deny\""), std::string::npos) << json.out;
}

TEST_F(CedarTest, FailuresAreNoDecisions) {
  EXPECT_EQ(Ask("a", "{").status, 1);
  EXPECT_EQ(Ask("a", "{}", {"--schema", folder_.Write("s", kSchema)}).status, 1);
  EXPECT_EQ(Ask("a\" nonsense", "{}").status, 1);
  EXPECT_EQ(Run({"authorize", "--policies", "/no/such/file"}).status, 1);
  const AppResult bad = Run({"authorize", "-p", folder_.Write("bad.cedar", "permit(")});
  EXPECT_EQ(bad.status, 1);
  EXPECT_NE(bad.err.find("bad.cedar: 1:8"), std::string::npos) << bad.err;
}

TEST_F(CedarTest, ValidateSaysWhere) {
  const std::string schema = folder_.Write("s.cedarschema", kSchema);
  EXPECT_EQ(Run({"validate", "-s", schema, "-p", folder_.Write("p.cedar", kPolicies)}).status, 0);
  const std::string wrong =
      folder_.Write("w.cedar", "permit(principal, action, resource) when {\n resource.size > 3 };");
  const AppResult result = Run({"validate", "-s", schema, "-p", wrong});
  EXPECT_EQ(result.status, 3);
  EXPECT_NE(result.out.find("w.cedar:2:"), std::string::npos) << result.out;
  const std::string never =
      folder_.Write("n.cedar", "permit(principal, action, resource) when { false };");
  EXPECT_EQ(Run({"validate", "-s", schema, "-p", never}).status, 0);
  EXPECT_EQ(Run({"validate", "-s", schema, "-p", never, "--deny-warnings"}).status, 3);
  EXPECT_EQ(Run({"validate", "-p", never}).status, 1);
}

TEST_F(CedarTest, FormatTranslateEvaluate) {
  const std::string file = folder_.Write("f.cedar", "permit(principal,action,resource);");
  EXPECT_EQ(Run({"format", "-p", file, "--check"}).status, 1);
  EXPECT_EQ(Run({"format", "-p", file, "--write"}).status, 0);
  EXPECT_EQ(Run({"format", "-p", file, "--check"}).status, 0);
  const AppResult json = Run({"translate-policy", "--direction", "cedar-to-json", "-p", file});
  EXPECT_EQ(json.status, 0);
  const AppResult back = Run({"translate-policy", "--direction", "json-to-cedar", "-p",
                              folder_.Write("f.json", json.out)});
  EXPECT_EQ(back.out, "permit (principal, action, resource);\n") << back.err;
  EXPECT_EQ(Run({"evaluate", "1 + 1 == 2"}).out, "true\n");
  EXPECT_EQ(Run({"evaluate", "1 + true"}).status, 1);
}

TEST_F(CedarTest, ConformanceCountsAndFails) {
  folder_.Write("corpus/x/p.cedar", kPolicies);
  folder_.Write("corpus/x/e.json", kEntities);
  folder_.Write("corpus/x/s.cedarschema", kSchema);
  const auto test = [&](const char* decision) {
    folder_.Write("corpus/tests/t.json",
                  std::string(R"({"policies": "x/p.cedar", "entities": "x/e.json",
                      "schema": "x/s.cedarschema", "shouldValidate": true, "requests": [
                      {"description": "", "principal": {"type": "User", "id": "a"},
                       "action": {"type": "Action", "id": "view"},
                       "resource": {"type": "Photo", "id": "p"}, "context": {"blocked": false},
                       "decision": ")") +
                      decision + R"(", "reason": ["policy0"], "errors": []}]})");
    return Run({"conformance", folder_.Path("corpus/tests")});
  };
  EXPECT_EQ(test("allow").status, 0) << test("allow").out;
  const AppResult wrong = test("deny");
  EXPECT_EQ(wrong.status, 1);
  EXPECT_NE(wrong.out.find("expected deny, got allow"), std::string::npos) << wrong.out;
  EXPECT_EQ(Run({"conformance", folder_.Path("corpus/x")}).status, 1);
}

}  // namespace
}  // namespace ringfence::cli
