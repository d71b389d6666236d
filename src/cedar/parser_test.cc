// Goal: the parser takes what Cedar's grammar takes and nothing else, says where text is wrong, and
// what is printed reads back as the same policy.
// Method: texts that must parse and texts that must not; print, parse again, compare trees; the
// JSON form there and back.

#include "cedar/limits.h"
#include "cedar/policy_json.h"
#include "cedar/print.h"
#include "cedar/test_support.h"

namespace ringfence::cedar {
namespace {

std::string When(std::string_view expr) {
  return "permit(principal, action, resource) when { " + std::string(expr) + " };";
}

constexpr std::string_view kGood[] = {
    "permit(principal, action, resource);",
    "permit(principal, action, resource,);",
    "@id(\"x\") @permit @in(\"\")\nforbid(principal == A::B::\"c\", action in [Action::\"a\",], "
    "resource is A in A::\"b\") unless { true } when { false };",
    "permit(principal == ?principal, action == N::Action::\"a\", resource in ?resource);",
    "permit(principal is A in ?principal, action in Action::\"x\", resource is B);",
    "permit(principal in (A::\"b\"), action, resource); // the end",
    "permit(principal, action, resource) when { context.principal.when == [1, 2,] };",
    "permit(principal, action, resource) when { {\"if\": 1, permit: 2}[\"if\"] > -1 };",
    "permit(principal, action, resource) when { !!!!true && ----1 == 1 };",
    "permit(principal, action, resource) when { (if true then 1 else 2) + 3 * (4 - 5) in [] };",
    "permit(principal, action, resource) when { principal has a.b.c && principal like \"\\*\" };",
    "permit(principal, action, resource) when { principal is A::B in [resource] || ip(\"\", 1) };",
    "permit(principal, action, resource) when { \"\\u{1F600}\\x7f\\'\" == \"a\nb\" };",
    "permit(principal, action, resource) when { 1.isInRange() };",
};

constexpr std::string_view kBad[] = {
    "permit",
    "permit(principal, action, resource)",
    "permit(principal, resource, action);",
    "permit(principal, action);",
    "permit(principal, action, resource, context);",
    "permit(principal == ?resource, action, resource);",
    "permit(principal, action == ?action, resource);",
    "permit(principal == \"x\", action, resource);",
    "permit(principal, action == User::\"x\", resource);",
    "permit(principal, action is Action, resource);",
    "permit(principal is __cedar::X, action, resource);",
    "permit(principal == if::\"x\", action, resource);",
    "@a @a permit(principal, action, resource);",
    "allow(principal, action, resource);",
    "permit(principal, action, resource) when { };",
    "permit(principal, action, resource) when { ?principal == 1 };",
    "permit(principal, action, resource) when { 1 < 2 < 3 };",
    "permit(principal, action, resource) when { 1 = 2 };",
    "permit(principal, action, resource) when { 1 / 2 };",
    "permit(principal, action, resource) when { 1 % 2 };",
    "permit(principal, action, resource) when { !!!!!true };",
    "permit(principal, action, resource) when { -----1 };",
    "permit(principal, action, resource) when { 9223372036854775808 };",
    "permit(principal, action, resource) when { -(9223372036854775808) };",
    "permit(principal, action, resource) when { -9223372036854775809 };",
    "permit(principal, action, resource) when { foo };",
    "permit(principal, action, resource) when { foo(1) };",
    "permit(principal, action, resource) when { isIpv4(1) };",
    "permit(principal, action, resource) when { 1.ip() };",
    "permit(principal, action, resource) when { 1.foo() };",
    "permit(principal, action, resource) when { [1].contains() };",
    "permit(principal, action, resource) when { [1].isEmpty(1) };",
    "permit(principal, action, resource) when { principal(1) };",
    "permit(principal, action, resource) when { {a: 1, \"a\": 2} };",
    "permit(principal, action, resource) when { {if: 1} };",
    "permit(principal, action, resource) when { context.in };",
    "permit(principal, action, resource) when { context[a] };",
    "permit(principal, action, resource) when { context has a.\"b\" };",
    "permit(principal, action, resource) when { context has 1 };",
    "permit(principal, action, resource) when { \"a\" like context.a };",
    "permit(principal, action, resource) when { \"\\q\" == \"\" };",
    "permit(principal, action, resource) when { \"\\u{110000}\" == \"\" };",
    "permit(principal, action, resource) when { \"\\u{d800}\" == \"\" };",
    "permit(principal, action, resource) when { \"\\x80\" == \"\" };",
    "permit(principal, action, resource) when { \"\\*\" == \"\" };",
    "permit(principal, action, resource) when { \"unended };",
    "permit(principal, action, resource) when { true && if true then true else false };",
    "permit(principal, action, resource) when { # };",
    "permit(principal, action, resource) when { A::B };",
    "permit(principal, action, resource) /* no */;",
};

TEST(Parser, TakesTheGrammarAndNothingElse) {
  for (const std::string_view text : kGood) {
    EXPECT_TRUE(ParsePolicies(text).has_value()) << text << ParsePolicies(text).error().message;
  }
  for (const std::string_view text : kBad) {
    EXPECT_FALSE(ParsePolicies(text).has_value()) << text;
  }
}

TEST(Parser, ErrorsSayWhere) {
  const auto set =
      ParsePolicies("permit(principal, action, resource);\n\n  permit(principal,\nfoo");
  ASSERT_FALSE(set.has_value());
  EXPECT_TRUE(set.error().message.starts_with("4:1: ")) << set.error().message;
  EXPECT_FALSE(ParsePolicies("\xff").has_value());
}

TEST(Parser, IdsAreNumbersOrAnnotations) {
  constexpr std::string_view kText =
      "@id(\"one\") permit(principal, action, resource); forbid(principal, action, resource);";
  EXPECT_NE(Policies(kText).Find("policy1"), nullptr);
  const auto named = ParsePolicies(kText, {.id_annotations = true});
  ASSERT_TRUE(named.has_value());
  EXPECT_NE(named->Find("one"), nullptr);
  EXPECT_NE(named->Find("policy1"), nullptr);
  const auto twice = ParsePolicies(
      "@id(\"one\") permit(principal, action, resource); @id(\"one\") permit(principal, action, "
      "resource);",
      {.id_annotations = true});
  ASSERT_FALSE(twice.has_value());
  EXPECT_EQ(twice.error().code, Code::kConflict);
}

TEST(Parser, NestingIsBounded) {
  const auto nested = [](int depth) {
    return When(std::string(static_cast<std::size_t>(depth), '(') + "true" +
                std::string(static_cast<std::size_t>(depth), ')'));
  };
  EXPECT_TRUE(ParsePolicies(nested(kNestingMax - 2)).has_value());
  EXPECT_FALSE(ParsePolicies(nested(kNestingMax + 1)).has_value());
  EXPECT_FALSE(ParsePolicies(nested(1'000'000)).has_value());
  std::string chain = "true";
  for (int i = 0; i < kExprDepthMax - 10; ++i) {
    chain += " && true";
  }
  EXPECT_TRUE(ParsePolicies(When(chain)).has_value());
  EXPECT_FALSE(ParsePolicies(When(chain + chain.substr(4))).has_value());
}

TEST(Print, ReadsBackAsTheSameTree) {
  for (const std::string_view text :
       {"1 + 2 * 3 - (4 - 5)", "(1 + 2) * 3", "-(1) == -1", "-(-1)", "!(!true)", "!(1 == 2)",
        "(1 == 2) == true", "true && (false && true) || (true || false)",
        "(if true then 1 else 2) + 1", "if true then if false then 1 else 2 else 3",
        "{\"a b\": [1, {c: 2}], d: \"\\\"\"}[\"a b\"].contains(1)",
        "context[\"if\"].x has \"__cedar\"", "(1 has a) == (1 like \"a\\**\\\\\")",
        "principal is A::B in (if true then [] else [])",
        "ip(\"1.2.3.4\").isInRange(ip(\"::\")) && 1.isIpv4() && [].isEmpty()",
        "(principal in resource) in action", "A::\"\\0\\n\\u{1}\xc3\xa4\".getTag(\"x\") < (1 < 2)",
        "(-1).a + (-9223372036854775808)", "principal has a.b.c"}) {
    const auto first = ParseExpr(text);
    ASSERT_TRUE(first.has_value()) << text << ": " << first.error().message;
    const std::string printed = ToText(*first->expr);
    const auto second = ParseExpr(printed);
    ASSERT_TRUE(second.has_value()) << printed << ": " << second.error().message;
    EXPECT_TRUE(SameExpr(*first->expr, *second->expr)) << text << " became " << printed;
  }
}

TEST(PolicyJson, ThereAndBack) {
  for (const std::string_view text : kGood) {
    const PolicySet policies = Policies(text);
    const Json json = ToJson(policies);
    const auto again = PoliciesFromJson(PrettyJson(json));
    ASSERT_TRUE(again.has_value()) << text << ": " << again.error().message;
    EXPECT_EQ(PrettyJson(ToJson(*again)), PrettyJson(json)) << text;
    for (const Policy& policy : policies.policies()) {
      const Policy* other = again->Find(policy.id);
      ASSERT_NE(other, nullptr);
      EXPECT_TRUE(SameExpr(*policy.body->condition, *other->body->condition)) << text;
      const auto printed = ParsePolicies(ToText(*other->body));
      ASSERT_TRUE(printed.has_value()) << ToText(*other->body);
      EXPECT_TRUE(SameExpr(*policy.body->condition, *printed->policies()[0].body->condition));
    }
  }
}

TEST(PolicyJson, ReadsTheReferencesForm) {
  const auto set = PoliciesFromJson(R"({"effect": "permit",
    "principal": {"op": "==", "entity": {"__entity": {"type": "User", "id": "a"}}},
    "action": {"op": "in", "entities": [{"type": "Action", "id": "v"}]},
    "resource": {"op": "is", "entity_type": "Photo", "in": {"entity": {"type": "Album", "id": "b"}}},
    "conditions": [{"kind": "when", "body": {"like": {"left": {"Var": "context"},
      "pattern": ["Wildcard", {"Literal": "*\\"}]}}},
      {"kind": "unless", "body": {"isInRange": [{"ip": [{"Value": "1.2.3.4"}]},
        {"Value": {"__extn": {"fn": "ip", "arg": "10.0.0.0/8"}}}]}}]})");
  ASSERT_TRUE(set.has_value()) << set.error().message;
  const std::string text = ToText(*set->policies()[0].body);
  EXPECT_NE(text.find("like \"*\\*\\\\\""), std::string::npos) << text;
  EXPECT_NE(text.find("resource is Photo in Album::\"b\""), std::string::npos) << text;
  for (
      const std::string_view bad :
      {R"({})", R"([])", R"({"staticPolicies": []})",
       R"({"effect":"allow","principal":{"op":"All"},"action":{"op":"All"},"resource":{"op":"All"},"conditions":[]})",
       R"({"effect":"permit","principal":{"op":"All"},"action":{"op":"==","entity":{"type":"User","id":""}},"resource":{"op":"All"},"conditions":[]})",
       R"({"effect":"permit","principal":{"op":"All"},"action":{"op":"All"},"resource":{"op":"All"},"conditions":[{"kind":"when","body":{"foo":[]}}]})"}) {
    const auto parsed = PoliciesFromJson(bad);
    EXPECT_FALSE(parsed.has_value() && !parsed->policies().empty()) << bad;
  }
}

TEST(Format, KeepsTokensAndCommentsAndSettles) {
  constexpr std::string_view kText =
      "// first\n@id(\"x\")permit(principal==User::\"alice\",action "
      "in[Action::\"a\",Action::\"b\"],"
      "resource)when{principal.age>17&&resource.owner==principal/* */};";
  EXPECT_FALSE(Format(kText).has_value());  // Cedar has no such comments
  constexpr std::string_view kMessy =
      "// first\n@id(\"x\")permit(principal==User::\"alice\",action "
      "in[Action::\"a\",Action::\"b\"],"
      "resource)when{principal.age>-17&&resource.owner==principal&&!(context.something like "
      "\"*long*\")||(context has a.b&&[1,2,3].contains(context.number_of_things)) // why\n && "
      "true};"
      "// after\nforbid(principal,action,resource // all\n)unless{ // go\n {a:1,\"b\":2}.a==1};";
  for (const std::size_t width : {20U, 40U, 80U, 200U}) {
    const FormatOptions options{.line_width = width};
    const auto once = Format(kMessy, options);
    ASSERT_TRUE(once.has_value()) << once.error().message;
    const auto twice = Format(*once, options);
    ASSERT_TRUE(twice.has_value()) << *once;
    EXPECT_EQ(*once, *twice);
    EXPECT_NE(once->find("// why"), std::string::npos);
  }
  EXPECT_EQ(*Format("permit(principal,action,resource)when{1+1==2};"),
            "permit (principal, action, resource)\nwhen { 1 + 1 == 2 };\n");
}

}  // namespace
}  // namespace ringfence::cedar
