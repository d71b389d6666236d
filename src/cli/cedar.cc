// `ringfence cedar authorize`, `validate` and `evaluate`: plain Cedar files, with the arguments and
// exit codes of the reference's command line.

#include "base/code.h"
#include "cedar/json.h"
#include "cedar/parser.h"
#include "cedar/validator.h"
#include "cli/cedar_files.h"
#include "cli/commands.h"
#include "cli/console.h"
#include "cli/human.h"
#include "cli/suggest.h"
#include "cli/text.h"

namespace ringfence::cli {
namespace {

constexpr std::string_view kExitCodes = "0 allow, 1 it could not be decided, 2 deny";

Json ToJson(const cedar::Response& response) {
  JsonArray reasons(response.reasons.begin(), response.reasons.end());
  JsonArray errors;
  for (const cedar::PolicyError& error : response.errors) {
    errors.push_back(JsonObject{{"policy", error.policy}, {"message", error.message}});
  }
  return JsonObject{{"decision", std::string(Name(response.decision))},
                    {"reasons", std::move(reasons)},
                    {"errors", std::move(errors)}};
}

Result<int> AuthorizeNow(Invocation& invocation) {
  const Parsed& parsed = invocation.parsed;
  RINGFENCE_ASSIGN(const LoadedPolicies policies, LoadPolicies(parsed));
  RINGFENCE_ASSIGN(const std::optional<cedar::Schema> schema, LoadCedarSchema(parsed));
  const cedar::Schema* rules = schema ? &*schema : nullptr;
  RINGFENCE_ASSIGN(const cedar::Entities entities, LoadEntities(parsed, rules));
  RINGFENCE_ASSIGN(const cedar::Request request, LoadRequest(parsed, rules));
  const cedar::Response response = cedar::IsAuthorized(policies.set, request, entities);
  const int status = response.decision == cedar::Decision::kAllow ? kExitOk : kCedarDeny;
  Console& console = invocation.console;
  if (!console.table()) {
    console.Show(ToJson(response));
    return status;
  }
  for (const cedar::PolicyError& error : response.errors) {
    console.Warn("error while evaluating policy " + error.policy + ": " + error.message);
  }
  console.out() << (response.decision == cedar::Decision::kAllow ? console.Good("ALLOW")
                                                                 : console.Bad("DENY"))
                << '\n';
  if (parsed.Has("verbose")) {
    if (response.reasons.empty()) {
      console.out() << "\nnote: no policies applied to this request\n";
    } else {
      console.out() << "\nnote: this decision was due to the following policies:\n";
      for (const std::string& reason : response.reasons) {
        console.out() << "  " << Safe(reason) << '\n';
      }
    }
  }
  return status;
}

Result<int> Authorize(Invocation& invocation) { return CedarHandler(invocation, AuthorizeNow); }

Result<cedar::ValidationMode> ModeOf(const Parsed& parsed) {
  const std::string mode = parsed.Value("validation-mode").value_or("strict");
  if (mode != "strict" && mode != "permissive") {
    return Error{Code::kInvalidArgument,
                 "--validation-mode: \"" + mode + "\" is not strict or permissive",
                 DidYouMean(mode, {"strict", "permissive"}, "choose one of them")};
  }
  return mode == "strict" ? cedar::ValidationMode::kStrict : cedar::ValidationMode::kPermissive;
}

// "policies.cedar:3:14: policy0: ..."
std::string Line(const LoadedPolicies& policies, const cedar::Finding& finding) {
  return policies.file + ":" +
         (policies.text.empty() ? "" : cedar::LineColumn(policies.text, finding.offset) + ":") +
         " " + finding.policy + ": " + finding.message;
}

JsonArray FindingsToJson(const LoadedPolicies& policies,
                         const std::vector<cedar::Finding>& findings) {
  JsonArray out;
  for (const cedar::Finding& finding : findings) {
    JsonObject one{{"policy", finding.policy}, {"message", finding.message}};
    if (!policies.text.empty()) {
      one.emplace("at", cedar::LineColumn(policies.text, finding.offset));
    }
    out.push_back(std::move(one));
  }
  return out;
}

Result<int> ValidateNow(Invocation& invocation) {
  const Parsed& parsed = invocation.parsed;
  RINGFENCE_ASSIGN(const cedar::ValidationMode mode, ModeOf(parsed));
  RINGFENCE_ASSIGN(const std::optional<cedar::Schema> schema, LoadCedarSchema(parsed));
  if (!schema) {
    return Error{Code::kInvalidArgument, "--schema is missing"};
  }
  RINGFENCE_ASSIGN(const LoadedPolicies policies, LoadPolicies(parsed));
  const cedar::ValidationResult result = cedar::Validate(policies.set, *schema, mode);
  const bool good = result.passed() && (!parsed.Has("deny-warnings") || result.warnings.empty());
  Console& console = invocation.console;
  if (!console.table()) {
    console.Show(JsonObject{{"ok", good},
                            {"errors", FindingsToJson(policies, result.errors)},
                            {"warnings", FindingsToJson(policies, result.warnings)}});
    return good ? kExitOk : kCedarInvalid;
  }
  for (const cedar::Finding& finding : result.errors) {
    console.out() << console.Bad("error") << ": " << Safe(Line(policies, finding)) << '\n';
  }
  for (const cedar::Finding& finding : result.warnings) {
    console.out() << console.Doubtful("warning") << ": " << Safe(Line(policies, finding)) << '\n';
  }
  console.out() << (good ? "policy set validates against the schema"
                         : "policy set does not validate: " + Count(result.errors.size(), "error") +
                               ", " + Count(result.warnings.size(), "warning"))
                << '\n';
  return good ? kExitOk : kCedarInvalid;
}

Result<int> ValidateCommand(Invocation& invocation) {
  return CedarHandler(invocation, ValidateNow);
}

Result<int> EvaluateNow(Invocation& invocation) {
  const Parsed& parsed = invocation.parsed;
  RINGFENCE_ASSIGN(const cedar::ParsedExpr expr, cedar::ParseExpr(parsed.Argument(0)));
  RINGFENCE_ASSIGN(const std::optional<cedar::Schema> schema, LoadCedarSchema(parsed));
  const cedar::Schema* rules = schema ? &*schema : nullptr;
  RINGFENCE_ASSIGN(const cedar::Entities entities, LoadEntities(parsed, rules));
  cedar::Request request{{"None", "none"}, {"Action", "none"}, {"None", "none"}};
  if (parsed.Has("principal") || parsed.Has("action") || parsed.Has("resource") ||
      parsed.Has("context") || parsed.Has("request-json")) {
    RINGFENCE_ASSIGN(request, LoadRequest(parsed, rules));
  }
  RINGFENCE_ASSIGN(const cedar::Value value, cedar::Evaluate(*expr.expr, request, entities));
  if (invocation.console.table()) {
    invocation.console.out() << SafeLines(ToText(value)) << '\n';
  } else {
    invocation.console.Show(JsonObject{{"value", cedar::ToJson(value)}});
  }
  return kExitOk;
}

Result<int> EvaluateCommand(Invocation& invocation) {
  return CedarHandler(invocation, EvaluateNow);
}

std::vector<OptionSpec> With(std::vector<OptionSpec> options, std::vector<OptionSpec> more) {
  options.insert(options.end(), more.begin(), more.end());
  return options;
}

}  // namespace

CommandTable CedarCommands() {
  CommandTable table = {
      {.path = "cedar authorize",
       .group = Group::kAccess,
       .summary = "Decide one request by plain Cedar policies.",
       .details = "Arguments and exit codes are those of the reference's command line. With\n"
                  "--schema, entities and request must conform to it. -v says which policies\n"
                  "decided.",
       .options = With({PoliciesOption(), PolicyFormatOption(), LinksOption(), EntitiesOption(),
                        SchemaOption(), SchemaFormatOption()},
                       RequestOptions()),
       .examples = {{"ringfence cedar authorize -p p.cedar --entities e.json -l 'User::\"alice\"' "
                     "-a 'Action::\"view\"' -r 'Photo::\"1.jpg\"' -v",
                     "allow or deny, and why"},
                    {"ringfence cedar authorize -p p.cedar --entities e.json --request-json r.json",
                     "the request from a file"}},
       .exit_codes = kExitCodes,
       .handler = Authorize},
      {.path = "cedar validate",
       .group = Group::kAccess,
       .summary = "Check Cedar policies against a schema.",
       .options = {PoliciesOption(),
                   PolicyFormatOption(),
                   LinksOption(),
                   SchemaOption(),
                   SchemaFormatOption(),
                   {.name = "deny-warnings", .help = "a warning fails too"},
                   {.name = "validation-mode",
                    .value = "MODE",
                    .help = "strict (default) or permissive",
                    .completes = Completes::kWords,
                    .words = "strict permissive"}},
       .examples = {{"ringfence cedar validate -s s.cedarschema -p p.cedar", "before they go live"},
                    {"ringfence cedar validate -s s.json --schema-format json -p p.cedar "
                     "--deny-warnings",
                     "policies that can never apply fail too"}},
       .exit_codes = "0 valid, 1 a file cannot be read, 3 the policies do not validate",
       .handler = ValidateCommand},
      {.path = "cedar evaluate",
       .group = Group::kAccess,
       .summary = "Evaluate one Cedar expression.",
       .options = With({EntitiesOption(), SchemaOption(), SchemaFormatOption()}, RequestOptions()),
       .arguments = {{.name = "EXPRESSION", .help = "such as 'ip(\"10.0.0.1\").isIpv4()'"}},
       .examples = {{"ringfence cedar evaluate '1 + 2 < 4'", "true"},
                    {"ringfence cedar evaluate 'principal.age > 17' --entities e.json -l "
                     "'User::\"alice\"' -a 'Action::\"view\"' -r 'Photo::\"1.jpg\"'",
                     "with a request"}},
       .exit_codes = "0 evaluated, 1 it has no value",
       .handler = EvaluateCommand},
  };
  for (CommandSpec& command : CedarToolCommands()) {
    table.push_back(std::move(command));
  }
  return table;
}

}  // namespace ringfence::cli
