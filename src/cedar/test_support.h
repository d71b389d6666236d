#pragma once

// What the tests of this folder share.

#include <gtest/gtest.h>

#include <string>
#include <string_view>

#include "cedar/engine.h"
#include "cedar/evaluator.h"
#include "cedar/parser.h"
#include "cedar/schema.h"

namespace ringfence::cedar {

inline PolicySet Policies(std::string_view text) {
  auto set = ParsePolicies(text);
  EXPECT_TRUE(set.has_value()) << text << "\n" << set.error().message;
  return set.has_value() ? *set : PolicySet();
}

inline Schema SchemaOf(std::string_view text, SchemaFormat format = SchemaFormat::kCedar) {
  auto schema = ParseSchema(text, format);
  EXPECT_TRUE(schema.has_value()) << text << "\n" << schema.error().message;
  return schema.has_value() ? *schema : Schema();
}

inline Entities EntitiesOf(std::string_view json, const Schema* schema = nullptr) {
  auto entities = Entities::FromJson(json, schema);
  EXPECT_TRUE(entities.has_value()) << json << "\n" << entities.error().message;
  return entities.has_value() ? *entities : Entities();
}

// What an expression comes to: as text, or "error: ...".
inline std::string Eval(std::string_view text, const Request& request = {},
                        const Entities& entities = {}) {
  const auto expr = ParseExpr(text);
  if (!expr.has_value()) {
    return "no expression: " + expr.error().message;
  }
  const auto value = Evaluate(*expr->expr, request, entities);
  return value.has_value() ? ToText(*value) : "error: " + value.error().message;
}

// "allow [policy0] []": decision, reasons and errors, the same from both evaluators.
inline std::string Decide(const PolicySet& policies, const Request& request,
                          const Entities& entities) {
  const auto text = [](const Response& response) {
    std::string out = std::string(Name(response.decision)) + " [";
    for (const std::string& reason : response.reasons) {
      out += (out.back() == '[' ? "" : " ") + reason;
    }
    out += "] [";
    for (const PolicyError& error : response.errors) {
      out += (out.back() == '[' ? "" : " ") + error.policy;
    }
    return out + "]";
  };
  Engine::Scratch scratch;
  const auto engine = Engine::Make(policies, EntityStore::Make(entities));
  const std::string plain = text(IsAuthorized(policies, request, entities));
  EXPECT_EQ(text(engine->Answer(request, scratch)), plain);
  return plain;
}

}  // namespace ringfence::cedar
