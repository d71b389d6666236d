// `ringfence can`: one question to a policy folder.

#include "base/code.h"
#include "cli/commands.h"
#include "cli/console.h"
#include "cli/policy_folder.h"
#include "cli/text.h"
#include "policy/query.h"

namespace ringfence::cli {
namespace {

Json ToJson(const policy::RuleInWords& rule) {
  return JsonObject{{"id", rule.id}, {"where", rule.where}, {"words", rule.words}};
}

Result<cedar::ValueRecord> ContextFrom(const Invocation& invocation) {
  policy::Circumstances circumstances{.now = invocation.clock.Now()};
  if (const auto at = invocation.parsed.Value("at")) {
    auto time = ParseTime(*at);
    if (!time.has_value()) {
      return Prefix("--at", time.error());
    }
    circumstances.now = *time;
  }
  cedar::ValueRecord context = policy::ContextOf(circumstances);
  for (const std::string& assignment : invocation.parsed.Values("context")) {
    RINGFENCE_TRY(policy::AddContext(assignment, context));
  }
  RINGFENCE_TRY(policy::CheckContext(context));
  return context;
}

void Explain(Console& console, const policy::Explanation& answer) {
  const auto show = [&](std::string_view title, const policy::RuleInWords& rule) {
    console.out() << title << Safe(rule.words) << " (" << Safe(rule.where) << ")\n";
  };
  for (const policy::RuleInWords& rule : answer.rules) {
    show(answer.allowed ? "allowed by:  " : "forbidden by:  ", rule);
  }
  for (const std::string& error : answer.errors) {
    console.out() << "did not count:  " << Safe(error) << '\n';
  }
  if (answer.nearest.has_value()) {
    show("nearest rule:  ", *answer.nearest);
    for (const std::string& missing : answer.missing) {
      console.out() << "  missing:  " << Safe(missing) << '\n';
    }
  }
}

Result<int> Can(Invocation& invocation) {
  const Parsed& parsed = invocation.parsed;
  RINGFENCE_ASSIGN(const auto policy,
                   LoadPolicyFolder(invocation, parsed.Value("policy").value_or("")));
  policy::Query query;
  query.principal = parsed.Argument(0);
  RINGFENCE_ASSIGN(query.action, policy::FindAction(parsed.Argument(1)));
  RINGFENCE_ASSIGN(query.tenant, policy::FindResource(*policy, parsed.Argument(2)));
  RINGFENCE_ASSIGN(const cedar::ValueRecord context, ContextFrom(invocation));
  const policy::Explanation answer = policy::Explain(*policy, query, context);
  const int status = answer.allowed ? kExitOk : kExitFindings;
  Console& console = invocation.console;
  if (!console.table()) {
    JsonArray rules;
    for (const policy::RuleInWords& rule : answer.rules) {
      rules.push_back(ToJson(rule));
    }
    JsonObject object{{"allowed", answer.allowed},
                      {"reason", answer.reason},
                      {"rules", std::move(rules)},
                      {"errors", JsonArray(answer.errors.begin(), answer.errors.end())},
                      {"policy", policy->digest()}};
    if (answer.nearest.has_value()) {
      object.emplace("nearest", ToJson(*answer.nearest));
      object.emplace("missing", JsonArray(answer.missing.begin(), answer.missing.end()));
    }
    console.Show(object);
    return status;
  }
  console.out() << (answer.allowed ? console.Good("yes") : console.Bad("no")) << ": "
                << Safe(answer.reason) << '\n';
  if (parsed.Has("explain")) {
    Explain(console, answer);
  }
  return status;
}

}  // namespace

CommandTable CanCommands() {
  return {{.path = "can",
           .group = Group::kAccess,
           .summary = "Ask a policy folder whether somebody may do something; needs no server.",
           .details =
               "RESOURCE is a tenant, or / for what is about the cluster. What a rule's condition "
               "asks for and --context does not say counts as absent.",
           .options = {PolicyFolderOption(),
                       {.name = "at", .value = "TIME", .help = "as of this time (default: now)"},
                       {.name = "context",
                        .value = "K=V",
                        .help = "what else is known, as class=mig or mfa.age=10m",
                        .repeated = true},
                       {.name = "explain",
                        .help = "show the rules that decided, or the nearest and what it lacks"}},
           .arguments = {{.name = "PRINCIPAL", .help = "who, as the policy names them"},
                         {.name = "ACTION", .help = "such as lease.request"},
                         {.name = "RESOURCE", .help = "a tenant, or /"}},
           .examples = {{"ringfence can alice@acme.example lease.request acme/research",
                         "yes or no, and why"},
                        {"ringfence can bob@acme.example audit.read / --explain",
                         "what he would need"}},
           .exit_codes = "0 yes, 1 no",
           .handler = Can}};
}

}  // namespace ringfence::cli
