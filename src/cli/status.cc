// `ringfence status`, `ringfence whoami`

#include "base/code.h"
#include "cli/api.h"
#include "cli/commands.h"
#include "cli/console.h"
#include "cli/fields.h"
#include "cli/human.h"
#include "cli/settings.h"
#include "cli/text.h"

namespace ringfence::cli {
namespace {

// "3 of 4 ready": the named counts of an object, in order, zeros left out but for the first.
std::string Counts(const Json& status, std::string_view object,
                   const std::vector<std::pair<std::string_view, std::string_view>>& names) {
  const Json* counts = Field(status, object);
  std::string text;
  for (const auto& [name, shown] : names) {
    const auto count = counts == nullptr ? std::nullopt : IntOf(*counts, name);
    if (count && (*count != 0 || text.empty())) {
      text += (text.empty() ? "" : ", ") + std::to_string(*count) + " " + std::string(shown);
    }
  }
  return text;
}

void ShowStatus(Invocation& invocation, const Json& status, const std::string& server) {
  Console& console = invocation.console;
  const bool healthy = BoolOf(status, "healthy");
  const std::string verdict = std::string(healthy ? console.Tick() : console.Cross()) +
                              (healthy ? " healthy" : " not healthy");
  console.out() << (healthy ? console.Good(verdict) : console.Bad(verdict)) << "  "
                << console.Dim("https://" + Safe(server) + ", version " +
                               Safe(TextOf(status, "version")))
                << '\n';
  for (const Json& problem : ArrayOf(status, "problems")) {
    console.out() << "  " << console.Bad(console.Cross()) << ' ' << Safe(TextOf(problem, "what"))
                  << '\n';
    if (const std::string fix = TextOf(problem, "fix"); !fix.empty()) {
      console.out() << "      fix: " << Safe(fix) << '\n';
    }
  }
  for (const Json& exception : ArrayOf(status, "exceptions")) {
    if (exception.is_string()) {
      console.out() << "  ! "
                    << Safe({exception.get_string().data(), exception.get_string().size()}) << '\n';
    }
  }
  const std::string simulated = BoolOf(status, "simulated") ? " (simulated)" : "";
  FactList facts;
  facts.Add("Nodes", Counts(status, "nodes", {{"total", "known"}, {"ready", "ready"}}));
  facts.Add("GPUs", Counts(status, "gpus",
                           {{"total", "in all"},
                            {"free", "free"},
                            {"leased", "leased"},
                            {"dirty", "to be scrubbed"},
                            {"quarantined", "quarantined"}}) +
                        simulated);
  facts.Add("Leases", Counts(status, "leases", {{"open", "open"}, {"active", "active"}}));
  facts.Add("Audit", Counts(status, "audit",
                            {{"entries", "entries"},
                             {"proven", "proven"},
                             {"witnesses", "cosigned by witnesses"}}));
  facts.Add("Detection", Counts(status, "detection",
                                {{"rules", "rules"},
                                 {"alerts_open", "open alerts"},
                                 {"behind", "events behind"},
                                 {"silent_nodes", "silent nodes"},
                                 {"not_kept", "failed sign-ins only counted"}}));
  facts.Add("Telemetry", Counts(status, "telemetry",
                                {{"blind_percent", "% of GPUs without readings"},
                                 {"waiting", "records on their way"},
                                 {"dropped", "dropped"},
                                 {"missing", "missing"}}));
  if (const Json* policy = Field(status, "policy")) {
    facts.Add("Policy", TextOf(*policy, "tenants") + " tenants, " + TextOf(*policy, "principals") +
                            " principals, digest " + TextOf(*policy, "digest").substr(0, 12));
  }
  facts.Print(console);
}

Result<int> StatusHandler(Invocation& invocation) {
  RINGFENCE_ASSIGN(const auto api, Api::Open(invocation.settings));
  RINGFENCE_ASSIGN(const Json status, api->Get("/v1/status"));
  if (invocation.console.table()) {
    ShowStatus(invocation, status, api->connection().server);
  } else {
    invocation.console.Show(status);
  }
  return BoolOf(status, "healthy") ? kExitOk : kExitFindings;
}

Result<int> WhoAmI(Invocation& invocation) {
  RINGFENCE_ASSIGN(const auto api, Api::Open(invocation.settings));
  RINGFENCE_ASSIGN(const Json who, api->Get("/v1/whoami"));
  Console& console = invocation.console;
  if (!console.table()) {
    console.Show(who);
    return 0;
  }
  FactList facts;
  facts.Add("Principal", TextOf(who, "principal") + " (" + TextOf(who, "kind") + ")");
  facts.Add("Token", TextOf(who, "token"));
  facts.Add("Expires", RelativeTime(TextOf(who, "expires"), invocation.clock.Now()));
  facts.Add("Server", api->connection().server);
  for (const Json& binding : ArrayOf(who, "bindings")) {
    facts.Add("Role", TextOf(binding, "role") + " at " + TextOf(binding, "tenant"));
  }
  facts.Print(console);
  return 0;
}

}  // namespace

CommandTable StatusCommands() {
  return {
      {.path = "status",
       .group = Group::kCluster,
       .summary = "Healthy or not, and why, at a glance.",
       .examples = {{"ringfence status", "look"},
                    {"ringfence status -q -o json | jq .problems", "what is wrong, for a program"}},
       .exit_codes = "0 healthy, 1 not healthy, 5 not reachable",
       .handler = StatusHandler},
      {.path = "whoami",
       .group = Group::kAccess,
       .summary = "Show who you are to the server, and your roles.",
       .examples = {{"ringfence whoami", "principal, token and bindings"}},
       .handler = WhoAmI},
  };
}

}  // namespace ringfence::cli
