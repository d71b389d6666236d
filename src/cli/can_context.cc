#include "cli/can_context.h"

#include "cli/policy_folder.h"
#include "policy/query.h"
#include "policy/roles.h"

namespace ringfence::cli {
namespace {

Result<cedar::ValueRecord> ContextFrom(const Invocation& invocation, policy::WhenAsked when) {
  if (const auto at = invocation.parsed.Value("at")) {
    auto time = policy::ParseTimeOrDay(*at);
    if (!time.has_value()) {
      return Prefix("--at", time.error());
    }
    when.at = *time;
  }
  return policy::ReadContext(invocation.parsed.Values("context"), when);
}

}  // namespace

Result<cedar::ValueRecord> KnownContext(const Invocation& invocation) {
  return ContextFrom(invocation, {});
}

Result<cedar::ValueRecord> ContextAtOrNow(const Invocation& invocation) {
  return ContextFrom(invocation, {.usual = invocation.clock.Now()});
}

model::TenantPath AboutWhat(Console& console, policy::Action action,
                            const model::TenantPath& named) {
  if (policy::ScopeOf(action) == policy::ActionScope::kTenant || named.is_root()) {
    return named;
  }
  console.Warn(std::string(policy::Name(action)) +
               (policy::ScopeOf(action) == policy::ActionScope::kCluster
                    ? " is about the whole cluster"
                    : " goes with a role at any tenant") +
               ": this answers for /, not for " + named.text());
  return model::TenantPath::Root();
}

std::vector<OptionSpec> KnownContextOptions() {
  return {PolicyFolderOption(),
          InForceOption(),
          {.name = "at", .value = "TIME", .help = "as of this time or day, in UTC"},
          {.name = "context",
           .value = "K=V",
           .help = "what else is known, as class=mig; mfa.age=10m needs mfa.kind=totp beside it",
           .repeated = true}};
}

}  // namespace ringfence::cli
