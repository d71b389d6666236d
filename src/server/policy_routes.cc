// The policy in force, and reading its folder again.

#include "server/routes.h"

namespace ringfence::server {
namespace {

JsonObject FactsOf(Core& core) {
  const auto policy = core.policy();
  return {{"digest", policy->digest()},
          {"tenants", policy->tenants().size()},
          {"principals", policy->principals().size()},
          {"bindings", policy->bindings().size()},
          {"loaded", FormatTime(core.policy_loaded())}};
}

}  // namespace

void GetPolicy(const Call& call, const net::Responder& responder) {
  responder.Send(net::Response::OfJson(200, FactsOf(call.core)));
}

void ReloadPolicy(const Call& call, const net::Responder& responder) {
  Answer(responder, [&]() -> Result<net::Response> {
    auto loaded = call.core.LoadPolicy();
    if (!loaded.has_value()) {
      audit::Entry entry = call.core.NewEntry(ActorOf(call.caller), "policy.apply");
      entry.decision = "allow";
      entry.result = "error";
      entry.detail["new_policy"] = loaded.error().message.substr(0, 2048);
      RINGFENCE_TRY(call.core.RecordAlone(entry));
      return Error{Code::kInvalidArgument,
                   "the policy folder has errors; the old policy stays:\n" + loaded.error().message,
                   "mend them and check with `ringfence policy check`"};
    }
    RINGFENCE_TRY(call.core.ApplyPolicy(std::move(loaded).value(), ActorOf(call.caller)));
    return net::Response::OfJson(200, FactsOf(call.core));
  });
}

}  // namespace ringfence::server
