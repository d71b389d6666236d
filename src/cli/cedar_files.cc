#include "cli/cedar_files.h"

#include "cedar/json.h"
#include "cedar/limits.h"
#include "cedar/parser.h"
#include "cedar/policy_json.h"
#include "cli/console.h"
#include "cli/suggest.h"
#include "os/file.h"

namespace ringfence::cli {
namespace {

Result<std::string> Needed(const Parsed& parsed, const std::string& option) {
  const auto value = parsed.Value(option);
  if (!value) {
    return Error{Code::kInvalidArgument, "--" + option + " is missing"};
  }
  return *value;
}

Result<bool> IsJson(const Parsed& parsed, const std::string& option) {
  const std::string format = parsed.Value(option).value_or("cedar");
  if (format != "cedar" && format != "json") {
    return Error{Code::kInvalidArgument,
                 "--" + option + ": \"" + format + "\" is not cedar or json",
                 DidYouMean(format, {"cedar", "json"}, "choose one of them")};
  }
  return format == "json";
}

Result<cedar::Request> RequestFromJson(const std::string& file, const cedar::Schema* schema) {
  RINGFENCE_ASSIGN(const std::string text, ReadCedarFile(file));
  const auto json = cedar::ReadJson(text);
  if (!json.has_value()) {
    return Prefix(file, json.error());
  }
  cedar::Request out;
  const JsonObject* object = json->if_object();
  for (const auto& [member, uid] :
       {std::pair{"principal", &out.principal}, std::pair{"action", &out.action},
        std::pair{"resource", &out.resource}}) {
    const Json* found = object == nullptr ? nullptr : object->if_contains(member);
    if (found == nullptr) {
      return Error{Code::kInvalidArgument, file + ": " + member + " is missing"};
    }
    auto read = found->is_string() ? cedar::ParseEntityUid(std::string_view(found->get_string()))
                                   : cedar::UidFromJson(*found, member);
    if (!read.has_value()) {
      return Prefix(file + ": " + member, read.error());
    }
    *uid = std::move(read).value();
  }
  const cedar::ActionInfo* action = schema == nullptr ? nullptr : schema->FindAction(out.action);
  if (const Json* context = object->if_contains("context")) {
    auto value =
        cedar::ContextFromJson(*context, action == nullptr ? nullptr : action->context.get());
    if (!value.has_value()) {
      return Prefix(file, value.error());
    }
    out.context = std::move(value).value();
  }
  return out;
}

}  // namespace

OptionSpec PoliciesOption() {
  return {.name = "policies",
          .letter = 'p',
          .value = "FILE",
          .help = "the policies (- or left out: standard input)",
          .completes = Completes::kFile};
}
OptionSpec PolicyFormatOption() {
  return {.name = "policy-format",
          .value = "FORMAT",
          .help = "form of the policies: cedar (default) or json",
          .completes = Completes::kWords,
          .words = "cedar json"};
}
OptionSpec LinksOption() {
  return {.name = "template-linked",
          .letter = 'k',
          .value = "FILE",
          .help = "links of templates, as JSON",
          .completes = Completes::kFile};
}
OptionSpec SchemaOption() {
  return {.name = "schema",
          .letter = 's',
          .value = "FILE",
          .help = "the schema",
          .completes = Completes::kFile};
}
OptionSpec SchemaFormatOption() {
  return {.name = "schema-format",
          .value = "FORMAT",
          .help = "form of the schema: cedar (default) or json",
          .completes = Completes::kWords,
          .words = "cedar json"};
}
OptionSpec EntitiesOption() {
  return {.name = "entities",
          .value = "FILE",
          .help = "the entities, as JSON",
          .completes = Completes::kFile};
}

std::vector<OptionSpec> RequestOptions() {
  return {{.name = "principal", .letter = 'l', .value = "UID", .help = "such as User::\"alice\""},
          {.name = "action", .letter = 'a', .value = "UID", .help = "such as Action::\"view\""},
          {.name = "resource", .letter = 'r', .value = "UID", .help = "such as Photo::\"1.jpg\""},
          {.name = "context",
           .letter = 'c',
           .value = "FILE",
           .help = "the request's context, as JSON",
           .completes = Completes::kFile},
          {.name = "request-json",
           .value = "FILE",
           .help = "principal, action, resource and context in one file",
           .completes = Completes::kFile},
          {.name = "request-validation",
           .value = "BOOL",
           .help = "false: do not hold the request against the schema",
           .completes = Completes::kWords,
           .words = "true false"}};
}

Result<std::string> ReadCedarFile(const std::string& path) {
  return os::ReadText(path == "-" ? "/dev/stdin" : path, cedar::kTextBytesMax);
}

Result<LoadedPolicies> LoadPolicies(const Parsed& parsed) {
  LoadedPolicies out;
  out.file = parsed.Value("policies").value_or("-");
  RINGFENCE_ASSIGN(const bool json, IsJson(parsed, "policy-format"));
  RINGFENCE_ASSIGN(std::string text, ReadCedarFile(out.file));
  auto set =
      json ? cedar::PoliciesFromJson(text) : cedar::ParsePolicies(text, {.id_annotations = true});
  if (!set.has_value()) {
    return Prefix(out.file, set.error());
  }
  out.set = std::move(set).value();
  out.text = json ? std::string() : std::move(text);
  if (const auto links = parsed.Value("template-linked")) {
    RINGFENCE_ASSIGN(const std::string linked, ReadCedarFile(*links));
    if (const Status added = cedar::AddLinksFromJson(linked, out.set); !added.has_value()) {
      return Prefix(*links, added.error());
    }
  }
  return out;
}

Result<std::optional<cedar::Schema>> LoadCedarSchema(const Parsed& parsed) {
  const auto file = parsed.Value("schema");
  if (!file) {
    return std::optional<cedar::Schema>();
  }
  RINGFENCE_ASSIGN(const bool json, IsJson(parsed, "schema-format"));
  RINGFENCE_ASSIGN(const std::string text, ReadCedarFile(*file));
  auto schema =
      cedar::ParseSchema(text, json ? cedar::SchemaFormat::kJson : cedar::SchemaFormat::kCedar);
  if (!schema.has_value()) {
    return Prefix(*file, schema.error());
  }
  return std::optional<cedar::Schema>(std::move(schema).value());
}

Result<cedar::Entities> LoadEntities(const Parsed& parsed, const cedar::Schema* schema) {
  const auto file = parsed.Value("entities");
  if (!file) {
    return cedar::Entities::Make({}, schema);
  }
  RINGFENCE_ASSIGN(const std::string text, ReadCedarFile(*file));
  auto entities = cedar::Entities::FromJson(text, schema);
  if (!entities.has_value()) {
    return Prefix(*file, entities.error());
  }
  return entities;
}

Result<cedar::Request> LoadRequest(const Parsed& parsed, const cedar::Schema* schema) {
  cedar::Request out;
  if (const auto file = parsed.Value("request-json")) {
    RINGFENCE_ASSIGN(out, RequestFromJson(*file, schema));
  } else {
    for (const auto& [option, uid] :
         {std::pair{"principal", &out.principal}, std::pair{"action", &out.action},
          std::pair{"resource", &out.resource}}) {
      RINGFENCE_ASSIGN(const std::string text, Needed(parsed, option));
      auto read = cedar::ParseEntityUid(text);
      if (!read.has_value()) {
        return Prefix(std::string("--") + option, read.error());
      }
      *uid = std::move(read).value();
    }
    if (const auto context = parsed.Value("context")) {
      RINGFENCE_ASSIGN(const std::string text, ReadCedarFile(*context));
      const cedar::ActionInfo* action =
          schema == nullptr ? nullptr : schema->FindAction(out.action);
      const auto json = cedar::ReadJson(text);
      if (!json.has_value()) {
        return Prefix(*context, json.error());
      }
      auto value =
          cedar::ContextFromJson(*json, action == nullptr ? nullptr : action->context.get());
      if (!value.has_value()) {
        return Prefix(*context, value.error());
      }
      out.context = std::move(value).value();
    }
  }
  if (schema != nullptr && parsed.Value("request-validation").value_or("true") != "false") {
    RINGFENCE_TRY(
        cedar::ValidateRequest(*schema, out.principal, out.action, out.resource, out.context));
  }
  return out;
}

Result<int> CedarHandler(Invocation& invocation, Result<int> (*handler)(Invocation&)) {
  auto status = handler(invocation);
  if (!status.has_value()) {
    invocation.console.Failure(status.error());
    return kCedarFailure;
  }
  return status;
}

}  // namespace ringfence::cli
