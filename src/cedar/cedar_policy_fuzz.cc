// Goal: no text makes the policy parser, printer, formatter or either evaluator do anything but
// answer; the two evaluators give one answer.
// Method: what parses must print, format and pass through JSON unchanged in meaning, and is decided
// by both evaluators for fixed requests.

#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "cedar/engine.h"
#include "cedar/parser.h"
#include "cedar/policy_json.h"
#include "cedar/print.h"
#include "cedar/validator.h"

namespace cedar = ringfence::cedar;

namespace {

void Require(bool condition) {
  if (!condition) {
    std::abort();
  }
}

const cedar::Schema& FixedSchema() {
  static const cedar::Schema kSchema =
      cedar::ParseSchema(
          "entity Group in Group; entity User in Group = {a: Long, b?: String, c: {d?: Bool}, "
          "e: Set<User>} tags String; action x, y in z appliesTo {principal: User, resource: "
          "[User, Group], context: {f?: ipaddr}}; action z;",
          cedar::SchemaFormat::kCedar)
          .value();
  return kSchema;
}

const cedar::Entities& FixedEntities() {
  static const cedar::Entities kEntities =
      cedar::Entities::FromJson(
          R"([{"uid":{"type":"User","id":"u"},"attrs":{"a":1,"c":{},"e":[{"type":"User","id":"u"}]},
               "parents":[{"type":"Group","id":"g"}],"tags":{"t":"v"}}])",
          &FixedSchema())
          .value();
  return kEntities;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto policies = cedar::ParsePolicies(text);
  if (!policies.has_value()) {
    return 0;
  }
  const auto formatted = cedar::Format(text);
  Require(formatted.has_value());
  const auto json = cedar::PoliciesFromJson(ringfence::PrettyJson(cedar::ToJson(*policies)));
  // Deep policies may be deeper in JSON than JSON may be.
  Require(json.has_value() || json.error().message.find("deep") != std::string::npos ||
          json.error().message.find("JSON") != std::string::npos);
  for (const cedar::Policy& policy : policies->policies()) {
    const auto again = cedar::ParsePolicies(cedar::ToText(*policy.body));
    if (again.has_value()) {
      Require(cedar::SameExpr(*again->policies()[0].body->condition, *policy.body->condition));
    } else {
      Require(again.error().message.find("deep") != std::string::npos);
    }
  }
  (void)cedar::Validate(*policies, FixedSchema());
  static const auto kStore = cedar::EntityStore::Make(FixedEntities());
  const auto engine = cedar::Engine::Make(*policies, kStore);
  cedar::Engine::Scratch scratch;
  for (const char* resource : {"u", "v"}) {
    const cedar::Request request{{"User", "u"}, {"Action", "x"}, {"User", resource}};
    const cedar::Response plain = cedar::IsAuthorized(*policies, request, FixedEntities());
    const cedar::Response fast = engine->Answer(request, scratch);
    Require(plain.decision == fast.decision && plain.reasons == fast.reasons &&
            plain.errors.size() == fast.errors.size());
  }
  return 0;
}
