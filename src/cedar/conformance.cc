#include "cedar/conformance.h"

#include <algorithm>
#include <set>

#include "cedar/engine.h"
#include "cedar/evaluator.h"
#include "cedar/json.h"
#include "cedar/parser.h"
#include "cedar/validator.h"

namespace ringfence::cedar {
namespace {

std::string Listed(const std::set<std::string>& names) {
  std::string out = "[";
  for (const std::string& name : names) {
    out += (out.size() > 1 ? ", " : "") + name;
  }
  return out + "]";
}

Result<std::set<std::string>> Names(const JsonObject& object, std::string_view member) {
  std::set<std::string> out;
  const Json* array = object.if_contains(member);
  if (array == nullptr || !array->is_array()) {
    return Error{Code::kInvalidArgument, "a request needs the array " + std::string(member)};
  }
  for (const Json& name : array->get_array()) {
    if (!name.is_string()) {
      return Error{Code::kInvalidArgument, std::string(member) + " must hold policy ids"};
    }
    out.emplace(name.get_string());
  }
  return out;
}

Result<std::string> Text(const JsonObject& object, std::string_view member) {
  const Json* text = object.if_contains(member);
  if (text == nullptr || !text->is_string()) {
    return Error{Code::kInvalidArgument, "the test needs the text " + std::string(member)};
  }
  return std::string(text->get_string());
}

bool Flag(const JsonObject& object, std::string_view member, bool fallback) {
  const Json* flag = object.if_contains(member);
  return flag != nullptr && flag->is_bool() ? flag->get_bool() : fallback;
}

struct Setting {
  PolicySet policies;
  Schema schema;
  Entities entities;
  std::shared_ptr<const Engine> engine;
};

Result<Setting> Load(const JsonObject& test, const ConformanceFiles& files) {
  Setting out;
  const auto read = [&](std::string_view member, std::string& name) -> Result<std::string> {
    RINGFENCE_ASSIGN(name, Text(test, member));
    return files(name);
  };
  std::string name;
  RINGFENCE_ASSIGN(const std::string policies, read("policies", name));
  auto parsed = ParsePolicies(policies);
  if (!parsed.has_value()) {
    return Prefix(name, parsed.error());
  }
  out.policies = std::move(parsed).value();
  RINGFENCE_ASSIGN(const std::string schema, read("schema", name));
  auto resolved =
      ParseSchema(schema, name.ends_with(".json") ? SchemaFormat::kJson : SchemaFormat::kCedar);
  if (!resolved.has_value()) {
    return Prefix(name, resolved.error());
  }
  out.schema = std::move(resolved).value();
  RINGFENCE_ASSIGN(const std::string entities, read("entities", name));
  auto loaded = Entities::FromJson(entities, &out.schema);
  if (!loaded.has_value()) {
    return Prefix(name, loaded.error());
  }
  out.entities = std::move(loaded).value();
  out.engine = Engine::Make(out.policies, EntityStore::Make(out.entities));
  return out;
}

class RequestCheck {
 public:
  RequestCheck(const Setting& setting, const JsonObject& json, std::string name)
      : setting_(setting), json_(json), name_(std::move(name)) {}

  Status Run(std::vector<std::string>& disagreements) {
    const std::size_t before = disagreements.size();
    const auto say = [&](const std::string& what) { disagreements.push_back(name_ + ": " + what); };
    const auto request = Read();
    if (!request.has_value()) {
      say("cannot be read: " + request.error().message);
      return {};
    }
    const Status valid = ValidateRequest(setting_.schema, request->principal, request->action,
                                         request->resource, request->context);
    if (Flag(json_, "validateRequest", true) && !valid.has_value()) {
      say("should validate, but: " + valid.error().message);
    }
    RINGFENCE_ASSIGN(const std::string decision, Text(json_, "decision"));
    RINGFENCE_ASSIGN(const std::set<std::string> reasons, Names(json_, "reason"));
    RINGFENCE_ASSIGN(const std::set<std::string> errors, Names(json_, "errors"));
    const Response response = IsAuthorized(setting_.policies, *request, setting_.entities);
    std::string lower = decision;
    std::transform(lower.begin(), lower.end(), lower.begin(),
                   [](unsigned char c) { return static_cast<char>(c | 0x20); });
    if (Name(response.decision) != lower) {
      say("expected " + lower + ", got " + std::string(Name(response.decision)));
    }
    const std::set<std::string> own_reasons(response.reasons.begin(), response.reasons.end());
    std::set<std::string> own_errors;
    for (const PolicyError& error : response.errors) {
      own_errors.insert(error.policy);
    }
    if (own_reasons != reasons) {
      say("expected the reasons " + Listed(reasons) + ", got " + Listed(own_reasons));
    }
    if (own_errors != errors) {
      say("expected errors of " + Listed(errors) + ", got " + Listed(own_errors));
    }
    Engine::Scratch scratch;
    const Response fast = setting_.engine->Answer(*request, scratch);
    const auto same_error = [](const PolicyError& a, const PolicyError& b) {
      return a.policy == b.policy;
    };
    if (fast.decision != response.decision || fast.reasons != response.reasons ||
        !std::equal(fast.errors.begin(), fast.errors.end(), response.errors.begin(),
                    response.errors.end(), same_error)) {
      say("the engine and the plain evaluator differ");
    }
    agrees_ = disagreements.size() == before;
    return {};
  }

  bool agrees() const { return agrees_; }

 private:
  Result<Request> Read() const {
    Request out;
    for (const auto& [member, uid] :
         {std::pair{"principal", &out.principal}, std::pair{"action", &out.action},
          std::pair{"resource", &out.resource}}) {
      const Json* json = json_.if_contains(member);
      if (json == nullptr) {
        return Error{Code::kInvalidArgument, std::string(member) + " is missing"};
      }
      RINGFENCE_ASSIGN(*uid, UidFromJson(*json, member));
    }
    const Json* context = json_.if_contains("context");
    if (context == nullptr) {
      return Error{Code::kInvalidArgument, "context is missing"};
    }
    const ActionInfo* action = setting_.schema.FindAction(out.action);
    auto value = ContextFromJson(*context, action == nullptr ? nullptr : action->context.get());
    if (!value.has_value() && !Flag(json_, "validateRequest", true)) {
      value =
          ContextFromJson(*context, nullptr);  // need not fit, so its short forms may not either
    }
    if (!value.has_value()) {
      return value.error();
    }
    out.context = std::move(value).value();
    return out;
  }

  const Setting& setting_;
  const JsonObject& json_;
  std::string name_;
  bool agrees_ = false;
};

}  // namespace

bool IsConformanceTest(std::string_view text) {
  const auto json = ReadJson(text);
  return json.has_value() && json->is_object() && json->get_object().contains("policies") &&
         json->get_object().contains("requests");
}

Result<ConformanceResult> RunConformanceTest(std::string_view test, const ConformanceFiles& files) {
  RINGFENCE_ASSIGN(const Json json, ReadJson(test));
  const JsonObject* object = json.if_object();
  const Json* requests = object == nullptr ? nullptr : object->if_contains("requests");
  const Json* should = object == nullptr ? nullptr : object->if_contains("shouldValidate");
  if (requests == nullptr || !requests->is_array() || should == nullptr || !should->is_bool()) {
    return Error{Code::kInvalidArgument, "not a test: requests or shouldValidate is missing"};
  }
  ConformanceResult out;
  out.requests = requests->get_array().size();
  const auto setting = Load(*object, files);
  if (!setting.has_value()) {
    out.disagreements.push_back(setting.error().message);
    return out;
  }
  const ValidationResult validation = Validate(setting->policies, setting->schema);
  out.validation_agrees = validation.passed() == should->get_bool();
  if (!out.validation_agrees) {
    out.disagreements.push_back(validation.passed() ? "the policies should not validate, but do"
                                                    : "the policies should validate, but: " +
                                                          validation.errors.front().policy + ": " +
                                                          validation.errors.front().message);
  }
  std::size_t number = 0;
  for (const Json& request : requests->get_array()) {
    if (!request.is_object()) {
      return Error{Code::kInvalidArgument, "each request must be an object"};
    }
    RequestCheck check(*setting, request.get_object(), "request " + std::to_string(number++));
    RINGFENCE_TRY(check.Run(out.disagreements));
    out.requests_agree += check.agrees() ? 1 : 0;
  }
  return out;
}

}  // namespace ringfence::cedar
