// Goal: every operator does what the language says, errors included.
// Method: expressions with the value that they must have; policies with the decision that they
// must give, from the plain evaluator and from the engine.

#include "cedar/extension.h"
#include "cedar/test_support.h"

namespace ringfence::cedar {
namespace {

constexpr std::string_view kPeople = R"([
  {"uid": {"type": "User", "id": "alice"},
   "attrs": {"age": 30, "boss": {"__entity": {"type": "User", "id": "bob"}},
             "home": {"city": "Wien", "zip": 1010}, "ip": {"__extn": {"fn": "ip", "arg": "10.1.2.3"}}},
   "tags": {"team": "red"},
   "parents": [{"type": "Group", "id": "staff"}]},
  {"uid": {"type": "User", "id": "bob"}, "attrs": {}, "parents": []},
  {"uid": {"type": "Group", "id": "staff"}, "attrs": {}, "parents": [{"type": "Group", "id": "all"}]}
])";

const Request kAlice{{"User", "alice"}, {"Action", "view"}, {"Photo", "p"}};

TEST(Evaluator, Operators) {
  const std::pair<std::string_view, std::string_view> kCases[] = {
      {"1 + 2 * 3 - 4", "3"},
      {"-9223372036854775808", "-9223372036854775808"},
      {"--1", "1"},
      {"-(-1)", "1"},
      {"!(1 == 1)", "false"},
      {"1 == \"1\"", "false"},
      {"1 != 2 && 2 >= 2 && 2 <= 2 && !(2 > 2)", "true"},
      {"if 1 < 2 then \"a\" else 1 + \"\"", "\"a\""},
      {"false && 1", "false"},
      {"true || 1", "true"},
      {"[1, 2, 2, 1] == [2, 1]", "true"},
      {"[1, 2].contains(2) && ![1].contains(true)", "true"},
      {"[1, 2].containsAll([]) && [1, 2].containsAny([7, 2])", "true"},
      {"[].containsAny([])", "false"},
      {"[].isEmpty() && ![[]].isEmpty()", "true"},
      {"{a: 1, \"b c\": 2} == {\"b c\": 2, a: 1}", "true"},
      {"{a: {b: 3}}.a.b + {\"\": 4}[\"\"]", "7"},
      {"{a: {b: 3}} has a.b && !({a: {b: 3}} has a.c)", "true"},
      {"\"abc\" like \"a*c\" && \"a*c\" like \"a\\*c\" && !(\"abc\" like \"a\\*c\")", "true"},
      {"\"\" like \"*\" && \"\" like \"\" && !(\"x\" like \"\")", "true"},
      {"\"n\xc3\xa4he\" like \"n*he\" && \"aXbXc\" like \"*X*c\"", "true"},
      {"\"\\u{e4}\\x41\\0\" == \"\xc3\xa4\x41\\0\"", "true"},
      {"User::\"a\" is User && !(User::\"a\" is A::User)", "true"},
      {"User::\"a\" in User::\"a\" && User::\"a\" in [User::\"b\", User::\"a\"]", "true"},
      {"User::\"a\" is User in [User::\"a\"]", "true"},
      {"User::\"a\" is Group in 1", "false"},
  };
  for (const auto& [text, expected] : kCases) {
    EXPECT_EQ(Eval(text), expected) << text;
  }
}

TEST(Evaluator, Errors) {
  for (const std::string_view text : {"9223372036854775807 + 1",
                                      "-9223372036854775808 - 1",
                                      "4611686018427387904 * 2",
                                      "-(-9223372036854775808)",
                                      "1 + true",
                                      "1 < \"2\"",
                                      "true && 1",
                                      "1 && true",
                                      "!1",
                                      "if 1 then 2 else 3",
                                      "[1].containsAll(1)",
                                      "1.contains(1)",
                                      "{}.a",
                                      "1.a",
                                      "1 has a",
                                      "1 like \"\"",
                                      "1 is User",
                                      "User::\"a\" in 1",
                                      "User::\"a\" in [User::\"a\", 1]",
                                      "User::\"a\".x",
                                      "User::\"a\".getTag(\"x\")",
                                      "User::\"a\".hasTag(1)",
                                      "ip(\"\")",
                                      "ip(\"1.2.3.4\", \"\")",
                                      "decimal(\"1.0\") < decimal(\"2.0\")",
                                      "1.isIpv4()",
                                      "datetime(\"2024-01-01\") < duration(\"1h\")",
                                      "\"\".isEmpty()"}) {
    EXPECT_TRUE(Eval(text).starts_with("error: ")) << text << ": " << Eval(text);
  }
}

TEST(Evaluator, Entities) {
  const Entities entities = EntitiesOf(kPeople);
  const std::pair<std::string_view, std::string_view> kCases[] = {
      {"principal in Group::\"staff\" && principal in Group::\"all\"", "true"},
      {"User::\"bob\" in Group::\"all\"", "false"},
      {"User::\"nobody\" in Group::\"all\" || User::\"nobody\" has age", "false"},
      {"principal.age", "30"},
      {"principal has age && principal has \"home\" && !(principal has boss.age)", "true"},
      {"principal.boss == User::\"bob\"", "true"},
      {"principal.home.city", "\"Wien\""},
      {"principal.hasTag(\"team\") && !principal.hasTag(\"x\")", "true"},
      {"principal.getTag(\"team\")", "\"red\""},
      {"principal.ip.isInRange(ip(\"10.0.0.0/8\"))", "true"},
      {"action == Action::\"view\" && resource == Photo::\"p\" && context == {}", "true"},
  };
  for (const auto& [text, expected] : kCases) {
    EXPECT_EQ(Eval(text, kAlice, entities), expected) << text;
  }
}

TEST(Evaluator, Extensions) {
  const std::pair<std::string_view, std::string_view> kCases[] = {
      {"decimal(\"1.50\") == decimal(\"1.5\") && decimal(\"-0.5\").lessThan(decimal(\"0.0\"))",
       "true"},
      {"decimal(\"922337203685477.5807\").greaterThan(decimal(\"-922337203685477.5808\"))", "true"},
      {"ip(\"127.0.0.1\").isLoopback() && ip(\"::1\").isLoopback()", "true"},
      {"ip(\"127.0.0.1/7\").isLoopback() || ip(\"::1/127\").isLoopback()", "false"},
      {"ip(\"224.0.0.1\").isMulticast() && ip(\"ff02::1\").isMulticast()", "true"},
      {"ip(\"10.0.0.0/8\").isInRange(ip(\"10.0.0.0/9\"))", "false"},
      {"ip(\"1.2.3.4\").isInRange(ip(\"::/0\"))", "false"},
      {"ip(\"1:2::/32\") == ip(\"1:2:0::/32\")", "true"},
      {"datetime(\"1970-01-01T00:00:00.001Z\") > datetime(\"1970-01-01\")", "true"},
      {"datetime(\"2024-02-29T23:59:59+0100\").toDate() == datetime(\"2024-02-29\")", "true"},
      {"datetime(\"1969-12-31T23:00:00Z\").toTime().toHours()", "23"},
      {"datetime(\"1969-12-31T23:00:00Z\").toDate() == datetime(\"1969-12-31\")", "true"},
      {"datetime(\"2024-01-02\").durationSince(datetime(\"2024-01-01\")).toSeconds()", "86400"},
      {"datetime(\"2024-01-01\").offset(duration(\"-1d\")) == datetime(\"2023-12-31\")", "true"},
      {"duration(\"1d2h3m4s5ms\").toMilliseconds()", "93784005"},
      {"duration(\"-9223372036854775808ms\").toMilliseconds()", "-9223372036854775808"},
      {"duration(\"-90m\").toHours()", "-1"},
      {"duration(\"1h\") < duration(\"61m\")", "true"},
  };
  for (const auto& [text, expected] : kCases) {
    EXPECT_EQ(Eval(text), expected) << text;
  }
}

TEST(Evaluator, ExtensionTextThatIsRefused) {
  const auto refused = [](Extension type, std::initializer_list<std::string_view> texts) {
    for (const std::string_view text : texts) {
      EXPECT_FALSE(ParseExtension(type, text).has_value()) << Name(type) << " " << text;
    }
  };
  refused(Extension::kDecimal, {"", "1", ".1", "1.", "1.23456", "+1.0", "1.0 ", "-.5", "1e0",
                                "922337203685477.5808", "99999999999999999999.0"});
  refused(Extension::kIp,
          {"", "1.2.3", "1.2.3.4.5", "01.2.3.4", "256.0.0.1", "1.2.3.4/33", "1.2.3.4/032",
           "1.2.3.4/", "1.2.3.4/+1", "::ffff:1.2.3.4", "1:2:3:4:5:6:7", ":::", "12345::", "::/129",
           "1::2::3", "::%eth0", "1:2:3:4:5:6:7:8::", " ::1"});
  refused(Extension::kDatetime,
          {"", "2024-1-01", "2024-13-01", "2023-02-29", "2024-01-01Z", "2024-01-01T00:00:00",
           "2024-01-01T24:00:00Z", "2024-01-01T00:60:00Z", "2024-01-01T00:00:60Z",
           "2024-01-01T00:00:00.1Z", "2024-01-01T00:00:00+2400", "2024-01-01T00:00:00+0060",
           "2024-01-01T00:00:00+01:00", "2024-01-01T00:00:00.000ZZ", "-2024-01-01"});
  refused(Extension::kDuration,
          {"", "-", "1", "d", "1h1d", "1d1d", "1d 1h", "+1h", "1H", "9223372036854775808ms",
           "106751991168d", "1ms1s", "99999999999999999999999ms"});
}

TEST(Authorizer, DefaultDenyForbidWinsErrorsAreSkipped) {
  const Entities entities = EntitiesOf(kPeople);
  EXPECT_EQ(Decide(Policies(""), kAlice, entities), "deny [] []");
  EXPECT_EQ(Decide(Policies("permit(principal, action, resource);"), kAlice, entities),
            "allow [policy0] []");
  EXPECT_EQ(Decide(Policies("permit(principal, action, resource);"
                            "forbid(principal, action, resource) when { principal.age == 30 };"
                            "permit(principal, action, resource) when { principal.nope };"),
                   kAlice, entities),
            "deny [policy1] [policy2]");
  EXPECT_EQ(Decide(Policies("forbid(principal, action, resource) when { resource.x };"
                            "permit(principal, action, resource) unless { 1 };"
                            "permit(principal in Group::\"all\", action, resource is Photo);"),
                   kAlice, entities),
            "allow [policy2] [policy0 policy1]");
}

TEST(Authorizer, ScopesAreIndexed) {
  const Entities entities = EntitiesOf(kPeople);
  const PolicySet policies = Policies(R"(
    permit(principal == User::"alice", action == Action::"view", resource == Photo::"p");
    permit(principal == User::"bob", action, resource);
    permit(principal is User in Group::"all", action in [Action::"edit", Action::"view"], resource);
    permit(principal is Robot, action, resource);
    permit(principal, action in Action::"view", resource);
    permit(principal, action, resource in Photo::"p");
    permit(principal, action == Action::"edit", resource);
    permit(principal, action in [], resource);
    forbid(principal, action, resource is Video);
    permit(principal, action, resource is Photo) when { false };
  )");
  EXPECT_EQ(Decide(policies, kAlice, entities), "allow [policy0 policy2 policy4 policy5] []");
  EXPECT_EQ(Decide(policies, {{"Robot", "r"}, {"Action", "edit"}, {"Video", "v"}}, entities),
            "deny [policy8] []");
}

TEST(Authorizer, TemplatesApplyThroughTheirLinks) {
  const Entities entities = EntitiesOf(kPeople);
  PolicySet policies = Policies("permit(principal in ?principal, action, resource == ?resource);");
  EXPECT_EQ(Decide(policies, kAlice, entities), "deny [] []");
  ASSERT_TRUE(policies
                  .Link("policy0", "link",
                        {{Slot::kPrincipal, {"Group", "all"}}, {Slot::kResource, {"Photo", "p"}}})
                  .has_value());
  EXPECT_EQ(Decide(policies, kAlice, entities), "allow [link] []");
  EXPECT_FALSE(
      policies.Link("policy0", "other", {{Slot::kPrincipal, {"Group", "all"}}}).has_value());
  EXPECT_FALSE(policies
                   .Link("policy0", "link",
                         {{Slot::kPrincipal, {"Group", "all"}}, {Slot::kResource, {"Photo", "p"}}})
                   .has_value());
}

TEST(Entities, RefusesCyclesAndRepetitions) {
  const auto refused = [](std::string_view json) {
    const auto entities = Entities::FromJson(json);
    return entities.has_value() ? std::string() : entities.error().message;
  };
  EXPECT_NE(
      refused(R"([{"uid":{"type":"A","id":"1"},"attrs":{},"parents":[{"type":"A","id":"1"}]}])")
          .find("cycle"),
      std::string::npos);
  EXPECT_NE(refused(R"([{"uid":{"type":"A","id":"1"},"attrs":{},"parents":[{"type":"A","id":"2"}]},
                        {"uid":{"type":"A","id":"2"},"attrs":{},"parents":[{"type":"A","id":"1"}]}])")
                .find("cycle"),
            std::string::npos);
  EXPECT_NE(refused(R"([{"uid":{"type":"A","id":"1"},"attrs":{},"parents":[]},
                        {"uid":{"type":"A","id":"1"},"attrs":{"x":1},"parents":[]}])")
                .find("twice"),
            std::string::npos);
  EXPECT_NE(refused(R"([{"uid":{"type":"A","id":"1"},"attrs":{"x":1,"x":2},"parents":[]}])")
                .find("twice"),
            std::string::npos);
  for (
      const std::string_view json :
      {R"({})", R"([{"uid":{"type":"A"},"attrs":{},"parents":[]}])",
       R"([{"uid":{"type":"A b","id":"1"},"attrs":{},"parents":[]}])",
       R"([{"uid":{"type":"A","id":"1"},"attrs":{"x":null},"parents":[]}])",
       R"([{"uid":{"type":"A","id":"1"},"attrs":{"x":1.5},"parents":[]}])",
       R"([{"uid":{"type":"A","id":"1"},"attrs":{"x":9223372036854775808},"parents":[]}])",
       R"([{"uid":{"type":"A","id":"1"},"attrs":{"x":{"__extn":{"fn":"no","arg":""}}},"parents":[]}])",
       R"([{"uid":{"type":"A","id":"1"},"attrs":{},"parents":[],"more":1}])", "[", ""}) {
    EXPECT_FALSE(refused(json).empty()) << json;
  }
}

TEST(Entities, ALongChainNeedsNoDeepStack) {
  std::vector<Entity> list;
  for (int i = 0; i < 500; ++i) {
    list.push_back({.uid = {"A", std::to_string(i)}, .parents = {{"A", std::to_string(i + 1)}}});
  }
  const auto entities = Entities::Make(std::move(list));
  ASSERT_TRUE(entities.has_value());
  EXPECT_TRUE(entities->IsAncestor({"A", "500"}, {"A", "0"}));
  EXPECT_FALSE(entities->IsAncestor({"A", "0"}, {"A", "500"}));
}

}  // namespace
}  // namespace ringfence::cedar
