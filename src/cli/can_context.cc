#include "cli/can_context.h"

#include "cli/policy_folder.h"
#include "policy/query.h"

namespace ringfence::cli {
namespace {

Result<cedar::ValueRecord> ContextFrom(const Invocation& invocation,
                                       policy::Circumstances circumstances) {
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

}  // namespace

Result<cedar::ValueRecord> KnownContext(const Invocation& invocation) {
  return ContextFrom(invocation, {});
}

Result<cedar::ValueRecord> ContextAtOrNow(const Invocation& invocation) {
  return ContextFrom(invocation, {.now = invocation.clock.Now()});
}

std::vector<OptionSpec> KnownContextOptions() {
  return {PolicyFolderOption(),
          {.name = "at", .value = "TIME", .help = "as of this time"},
          {.name = "context",
           .value = "K=V",
           .help = "what else is known, as class=mig or mfa.age=10m",
           .repeated = true}};
}

}  // namespace ringfence::cli
