// Goal: schemas in both syntaxes mean the same; the validator accepts and refuses as the reference
// does, and requests and entities are held against the schema.
// Method: one schema, many conditions with the verdict that each must get.

#include "cedar/validator.h"

#include "cedar/json.h"
#include "cedar/test_support.h"

namespace ringfence::cedar {
namespace {

constexpr std::string_view kSchema = R"(
type Address = { city: String, zip?: Long };
entity Color enum ["red", "green"];
entity Group in [Group];
@doc("people")
entity User in [Group] = {
  age: Long, name?: String, home: Address, work?: Address, friends: Set<User>,
  ip?: ipaddr, born?: datetime, ratio?: decimal, wait?: duration, color?: Color,
} tags Set<String>;
entity Photo, Video in [Album] { owner: User };
entity Album;
action view, edit in ["look"] appliesTo { principal: [User], resource: [Photo, Video], context: { mfa: Bool, from?: __cedar::ipaddr } };
action "look" in [all];
action all;
action enter appliesTo { principal: User, resource: [Album], context: {}, };
)";

std::string Check(const Schema& schema, std::string_view policy,
                  ValidationMode mode = ValidationMode::kStrict) {
  const ValidationResult result = Validate(Policies(policy), schema, mode);
  if (result.passed()) {
    return result.warnings.empty() ? "ok" : "warning: " + result.warnings[0].message;
  }
  return result.errors[0].message;
}

std::string When(std::string_view expr) {
  return "permit(principal is User, action in Action::\"look\", resource is Photo) when { " +
         std::string(expr) + " };";
}

TEST(Validator, ConditionsThatPass) {
  const Schema schema = SchemaOf(kSchema);
  for (const std::string_view expr :
       {"principal.age > 17 && context.mfa", "principal has name && principal.name == \"x\"",
        "principal.home has zip && principal.home.zip == 1",
        "principal has work.zip && principal.work.zip < 3",
        "if principal has name then principal.name like \"*\" else false",
        "resource.owner == principal && resource.owner.age == principal.age",
        "principal.friends.contains(resource.owner)", "principal.friends == [principal]",
        "principal in Group::\"g\" && resource in Album::\"a\"",
        "principal in [Group::\"g\", Group::\"h\"]", "action == Action::\"view\"",
        "action in [Action::\"look\", Action::\"all\"]",
        "principal.hasTag(\"t\") && principal.getTag(\"t\").contains(\"u\")",
        "principal has born && principal.born < datetime(\"2020-01-01\")",
        "context has from && context.from.isInRange(ip(\"10.0.0.0/8\"))",
        "principal has ratio && principal.ratio.lessThan(decimal(\"0.5\"))",
        "principal has wait && principal.wait.toHours() < 3", "{a: 1}.a == 1 && [1, 2].contains(3)",
        "principal has color && principal.color == Color::\"red\"", "1 == \"a\" || true",
        "!(principal has name) || principal has name",
        "principal has name && (if principal.age > 3 then principal.name == \"a\" else true)",
        "(principal has name || false) && principal.name == \"a\"",
        "principal.friends.isEmpty() || principal.friends.containsAny([principal])",
        // What short-circuits is not looked at.
        "false && principal.nonsense", "true || principal.nonsense",
        "principal is Group && principal.nonsense",
        "context.mfa || (if true then true else 1 + true)"}) {
    const std::string verdict = Check(schema, When(expr));
    EXPECT_TRUE(verdict == "ok" || verdict.starts_with("warning")) << expr << ": " << verdict;
  }
}

TEST(Validator, ConditionsThatFail) {
  const Schema schema = SchemaOf(kSchema);
  for (const std::string_view expr :
       {"principal.name == \"x\"",
        "principal.home.zip == 1",
        "principal.nope == 1",
        "context.from.isIpv4()",
        "principal has work && principal.work.zip == 1",
        "principal has name || principal.name == \"a\"",
        "1 + \"a\" == 2",
        "principal.age",
        "principal.age == \"30\"",
        "principal.age < true",
        "principal == 1",
        "[].isEmpty()",
        "[1, \"a\"].contains(1)",
        "[1].contains(\"a\")",
        "principal.friends.contains(resource)",
        "[principal, resource].contains(principal)",
        "principal.friends.containsAll([1])",
        "(if context.mfa then 1 else \"a\") == 1",
        "(if context.mfa then principal else resource) == principal",
        "{a: 1} == {a: 1, b: 2}",
        "{a: 1} == {b: 1}",
        "principal.home == {city: \"x\"}",
        "ip(principal.name).isIpv4()",
        "ip(\"nope\").isIpv4()",
        "ip(\"::\", \"::\").isIpv4()",
        "decimal(\"1.0\") < decimal(\"2.0\")",
        "datetime(\"2020-01-01\") < duration(\"1h\")",
        "principal.getTag(\"t\").isEmpty()",
        "principal.hasTag(\"a\") && principal.getTag(\"b\").isEmpty()",
        "resource.hasTag(\"t\") || resource.getTag(\"t\") == 1",
        "Nope::\"x\" == principal",
        "principal is Nope",
        "action == Action::\"nope\"",
        "principal in Action::\"nope\"",
        "Color::\"blue\" == Color::\"red\"",
        "principal.age like \"3*\"",
        "principal has age.x",
        "\"a\" in principal",
        "principal in 1",
        "principal in [1]",
        "!principal.age",
        "-principal.friends == 1",
        "context.mfa && 1",
        "\"a\".contains(1)",
        "1.isIpv4()"}) {
    const std::string verdict = Check(schema, When(expr));
    EXPECT_FALSE(verdict == "ok" || verdict.starts_with("warning")) << expr;
  }
}

TEST(Validator, ImpossiblePoliciesAreWarnings) {
  const Schema schema = SchemaOf(kSchema);
  for (const std::string_view expr :
       {"false", "principal == resource", "principal in Album::\"a\"",
        "action == Action::\"enter\"", "principal has nope", "action in Action::\"enter\"",
        "principal is Group", "resource.hasTag(\"t\")", "1 == 2", "!(true)"}) {
    EXPECT_TRUE(Check(schema, When(expr)).starts_with("warning")) << expr;
  }
}

TEST(Validator, Scopes) {
  const Schema schema = SchemaOf(kSchema);
  for (const std::string_view policy :
       {"permit(principal == User::\"a\", action == Action::\"view\", resource in Album::\"b\");",
        "permit(principal in Group::\"g\", action in Action::\"all\", resource);",
        "permit(principal in ?principal, action, resource == ?resource);",
        "permit(principal is User in Group::\"g\", action, resource is Album);"}) {
    EXPECT_EQ(Check(schema, policy), "ok") << policy;
  }
  for (const std::string_view policy :
       {"permit(principal == Photo::\"a\", action, resource);",
        "permit(principal in Album::\"g\", action, resource);",
        "permit(principal, action == Action::\"enter\", resource is Photo);",
        "permit(principal, action == Action::\"all\", resource);",
        "permit(principal, action in [], resource);",
        "permit(principal is Group, action, resource);",
        "permit(principal is User in Album::\"a\", action, resource);",
        "permit(principal, action == Action::\"nope\", resource);",
        "permit(principal == Nope::\"a\", action, resource);"}) {
    EXPECT_NE(Check(schema, policy), "ok") << policy;
    EXPECT_FALSE(Check(schema, policy).starts_with("warning")) << policy;
  }
  PolicySet linked = Policies("permit(principal == ?principal, action, resource);");
  ASSERT_TRUE(linked.Link("policy0", "good", {{Slot::kPrincipal, {"User", "a"}}}).has_value());
  EXPECT_TRUE(Validate(linked, schema).passed());
  ASSERT_TRUE(linked.Link("policy0", "bad", {{Slot::kPrincipal, {"Album", "a"}}}).has_value());
  EXPECT_FALSE(Validate(linked, schema).passed());
}

TEST(Validator, PermissiveModeTakesMore) {
  const Schema schema = SchemaOf(kSchema);
  for (const std::string_view expr : {"[].isEmpty()", "[1].contains(\"a\")",
                                      "(if context.mfa then principal else resource) == principal",
                                      "principal == principal.age"}) {
    const std::string verdict = Check(schema, When(expr), ValidationMode::kPermissive);
    EXPECT_TRUE(verdict == "ok" || verdict.starts_with("warning")) << expr << ": " << verdict;
  }
}

TEST(Schema, JsonMeansTheSame) {
  const Schema schema = SchemaOf(R"({"NS": {
    "commonTypes": {"Address": {"type": "Record", "attributes": {
       "city": {"type": "String"}, "zip": {"type": "Long", "required": false}}}},
    "entityTypes": {
      "Group": {"memberOfTypes": ["Group"]},
      "User": {"memberOfTypes": ["NS::Group"], "shape": {"type": "Record", "attributes": {
         "home": {"type": "Address"}, "ip": {"type": "Extension", "name": "ipaddr"},
         "friends": {"type": "Set", "element": {"type": "Entity", "name": "User"}},
         "ok": {"type": "EntityOrCommon", "name": "Bool"}}}, "tags": {"type": "String"}},
      "Color": {"enum": ["red"]}},
    "actions": {"view": {"memberOf": [{"id": "all"}],
        "appliesTo": {"principalTypes": ["User"], "resourceTypes": ["NS::User"],
                      "context": {"type": "Record", "attributes": {"c": {"type": "Entity", "name": "Color"}}}}},
      "all": {}}}})",
                                 SchemaFormat::kJson);
  EXPECT_EQ(Check(schema,
                  "permit(principal, action == NS::Action::\"view\", resource) when "
                  "{ principal.home has zip && principal.home.zip == 1 && principal.ok && "
                  "context.c == NS::Color::\"red\" && principal in NS::Group::\"g\" };"),
            "ok");
  EXPECT_NE(Check(schema,
                  "permit(principal, action in NS::Action::\"all\", resource) when "
                  "{ principal.home.zip == 1 };"),
            "ok");
}

TEST(Schema, RefusesWhatMeansNothing) {
  for (const std::string_view text :
       {"entity A = { x: Nope };",
        "entity A in [Nope];",
        "entity A; entity A;",
        "type T = T;",
        "type T = Set<U>; type U = { t: T };",
        "entity Action;",
        "entity A enum [];",
        "type String = Long;",
        "entity __cedar;",
        "action a in [b]; action b in [a];",
        "action a in [nope];",
        "action a appliesTo { principal: [Nope], resource: [Nope] };",
        "entity A; action a appliesTo { principal: [A] };",
        "entity A = Long;",
        "entity A = { x: Long, x: Long };",
        "entity A; namespace N { entity A; }",
        "namespace N {} namespace N {}",
        "@a @a entity A;",
        "entity A",
        "entity if;",
        "entity A; action a appliesTo { principal: A, resource: A, context: Long };",
        "action a; action a;"}) {
    EXPECT_FALSE(ParseSchema(text, SchemaFormat::kCedar).has_value()) << text;
  }
  for (const std::string_view text :
       {"[]", R"({"": {"entityTypes": {}}})", R"({"": {"entityTypes": {}, "actions": {}, "x": 1}})",
        R"({"": {"entityTypes": {"A": {"shape": {"type": "Nope"}}}, "actions": {}}})",
        R"({"": {"entityTypes": {"A": {"shape": {"type": "Record"}}}, "actions": {}}})",
        R"({"": {"entityTypes": {"A": {"enum": []}}, "actions": {}}})",
        R"({"": {"entityTypes": {}, "actions": {"a": {"appliesTo": {"principalTypes": []}}}}})"}) {
    EXPECT_FALSE(ParseSchema(text, SchemaFormat::kJson).has_value()) << text;
  }
}

TEST(Schema, NamesAreFoundInTheNamespaceFirst) {
  const Schema schema = SchemaOf(R"(
    entity Top; type Flag = Bool;
    namespace N { entity String; type Inner = { a: Top, b: Flag, c: String, d: __cedar::String };
                  entity User = { i: Inner, m?: M::Other, l: Long }; }
    namespace M { entity Other; action go appliesTo { principal: N::User, resource: Other }; }
  )");
  EXPECT_EQ(Check(schema,
                  "permit(principal, action == M::Action::\"go\", resource) when "
                  "{ principal.i.b && principal.i.a == Top::\"\" && principal.i.c == "
                  "N::String::\"\" && principal.i.d == \"\" };"),
            "ok");
}

TEST(Schema, RequestsMustConform) {
  const Schema schema = SchemaOf(kSchema);
  const auto valid = [&](const char* principal, const char* action, const char* resource,
                         std::string_view context) {
    const EntityUid uid{"Action", action};
    const ActionInfo* info = schema.FindAction(uid);
    const auto value =
        ContextFromJson(*ReadJson(context), info == nullptr ? nullptr : info->context.get());
    return value.has_value() &&
           ValidateRequest(schema, {principal, "x"}, uid, {resource, "y"}, *value).has_value();
  };
  EXPECT_TRUE(valid("User", "view", "Photo", R"({"mfa": true})"));
  EXPECT_TRUE(valid("User", "view", "Photo", R"({"mfa": true, "from": "10.0.0.1"})"));
  EXPECT_FALSE(valid("User", "view", "Photo", R"({})"));
  EXPECT_FALSE(valid("User", "view", "Photo", R"({"mfa": 1})"));
  EXPECT_FALSE(valid("User", "view", "Photo", R"({"mfa": true, "x": 1})"));
  EXPECT_FALSE(valid("User", "view", "Photo", R"({"mfa": true, "from": "nope"})"));
  EXPECT_FALSE(valid("User", "view", "Album", R"({"mfa": true})"));
  EXPECT_FALSE(valid("Photo", "view", "Photo", R"({"mfa": true})"));
  EXPECT_FALSE(valid("User", "all", "Photo", R"({})"));
  EXPECT_FALSE(valid("User", "nope", "Photo", R"({})"));
  EXPECT_FALSE(valid("Nope", "view", "Photo", R"({"mfa": true})"));
}

TEST(Schema, EntitiesMustConform) {
  const Schema schema = SchemaOf(kSchema);
  const auto user = [](std::string_view attrs, std::string_view more = "") {
    return R"([{"uid": {"type": "User", "id": "a"}, "attrs": {)" + std::string(attrs) +
           R"(}, "parents": [])" + std::string(more) + "}]";
  };
  const std::string good =
      R"("age": 1, "home": {"city": "x"}, "friends": [{"type": "User", "id": "b"}])";
  const auto conforms = [&](const std::string& json) {
    return Entities::FromJson(json, &schema).has_value();
  };
  EXPECT_TRUE(conforms(user(good)));
  EXPECT_TRUE(conforms(user(good + R"(, "ip": "::1", "color": {"type": "Color", "id": "red"})")));
  EXPECT_TRUE(conforms(user(good, R"(, "tags": {"t": ["x"]})")));
  EXPECT_FALSE(conforms(user(good, R"(, "tags": {"t": [1]})")));
  EXPECT_FALSE(conforms(user(good + R"(, "color": {"type": "Color", "id": "blue"})")));
  EXPECT_FALSE(conforms(user(good + R"(, "name": 1)")));
  EXPECT_FALSE(conforms(user(good + R"(, "nope": 1)")));
  EXPECT_FALSE(conforms(user(R"("age": 1)")));
  EXPECT_FALSE(conforms(R"([{"uid": {"type": "Nope", "id": ""}, "attrs": {}, "parents": []}])"));
  EXPECT_FALSE(conforms(R"([{"uid": {"type": "Color", "id": "x"}, "attrs": {}, "parents": []}])"));
  EXPECT_FALSE(conforms(R"([{"uid": {"type": "Album", "id": ""}, "attrs": {},
                            "parents": [{"type": "Group", "id": ""}]}])"));
  EXPECT_TRUE(conforms(R"([{"uid": {"type": "Action", "id": "look"}, "attrs": {},
                           "parents": [{"type": "Action", "id": "all"}]}])"));
  EXPECT_FALSE(
      conforms(R"([{"uid": {"type": "Action", "id": "look"}, "attrs": {}, "parents": []}])"));
  // The schema's actions and their groups are entities too.
  EXPECT_TRUE(EntitiesOf("[]", &schema).IsAncestor({"Action", "all"}, {"Action", "view"}));
}

}  // namespace
}  // namespace ringfence::cedar
