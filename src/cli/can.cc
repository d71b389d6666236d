// `ringfence can`: one question to a policy folder.

#include "base/code.h"
#include "cli/can_context.h"
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
  RINGFENCE_ASSIGN(const auto policy, LoadAskedPolicy(invocation));
  policy::Query query;
  query.principal = parsed.Argument(0);
  RINGFENCE_ASSIGN(query.action, policy::FindAction(parsed.Argument(1)));
  RINGFENCE_ASSIGN(const auto named, policy::FindResource(*policy, parsed.Argument(2)));
  RINGFENCE_TRY(policy::CheckPrincipal(*policy, query.principal));
  query.tenant = AboutWhat(invocation.console, query.action, named);
  RINGFENCE_ASSIGN(const cedar::ValueRecord context, ContextAtOrNow(invocation));
  const policy::Explanation answer = policy::Explain(*policy, query, context);
  const int status = answer.allowed ? kExitOk : kExitFindings;
  Console& console = invocation.console;
  if (!console.table()) {
    JsonArray rules;
    for (const policy::RuleInWords& rule : answer.rules) {
      rules.push_back(ToJson(rule));
    }
    JsonObject object{{"allowed", answer.allowed},
                      {"principal", query.principal},
                      {"action", std::string(Name(query.action))},
                      {"resource", query.tenant.text()},
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
  std::vector<OptionSpec> options = KnownContextOptions();
  options.push_back(
      {.name = "explain", .help = "show the rules that decided, or the nearest and what it lacks"});
  return {
      {.path = "can",
       .group = Group::kAccess,
       .summary = "Ask a policy folder whether somebody may do something; needs no server.",
       .details =
           "RESOURCE is a tenant, or / for what is about the cluster. What a rule's condition "
           "asks for and --context does not say counts as absent; the time is now unless --at "
           "says.",
       .options = std::move(options),
       .arguments = {{.name = "PRINCIPAL", .help = "who, as the policy names them"},
                     {.name = "ACTION", .help = "such as lease.request"},
                     {.name = "RESOURCE", .help = "a tenant, or /"}},
       .examples = {{"ringfence can alice@acme.example lease.request acme/research",
                     "yes or no, and why"},
                    {"ringfence can bob@acme.example audit.read / --explain", "what he would need"},
                    {"ringfence can eve@acme.example policy.apply / --at 2026-11-16 --context "
                     "mfa.age=10m --context mfa.kind=totp",
                     "with a second factor, ten minutes old"},
                    {"ringfence can ci lease.request acme --in-force",
                     "by the policy that the server has in force"}},
       .exit_codes = "0 yes, 1 no, 4 unknown principal or tenant",
       .handler = Can}};
}

}  // namespace ringfence::cli
