#include "server/router.h"

#include <vector>

#include "base/code.h"
#include "server/routes.h"

namespace ringfence::server {
namespace {

using policy::Action;

constexpr Route kRoutes[] = {
    {"GET", "/healthz", Door::kOpen, {}, false, GetHealth},
    {"GET", "/readyz", Door::kOpen, {}, false, GetReady},
    {"GET", "/metrics", Door::kOpen, {}, false, GetMetrics},
    {"GET", "/v1/status", Door::kToken, Action::kStatusRead, false, GetStatus},
    {"GET", "/v1/whoami", Door::kToken, Action::kStatusRead, true, GetWhoAmI},
    {"GET", "/v1/tenants", Door::kToken, Action::kTenantRead, true, ListTenants},
    {"GET", "/v1/boundary", Door::kToken, Action::kTenantRead, true, GetBoundary},
    {"GET", "/v1/nodes", Door::kToken, Action::kNodeRead, false, ListNodes},
    {"GET", "/v1/nodes/{node}", Door::kToken, Action::kNodeRead, false, GetNode},
    {"GET", "/v1/nodes/{node}/proofs", Door::kToken, Action::kNodeRead, false, GetProofs},
    {"POST", "/v1/nodes/{node}/proofs", Door::kToken, Action::kNodeProve, false, TakeProofs},
    {"GET", "/v1/nodes/{node}/assessment", Door::kToken, Action::kAssessRead, false, GetAssessment},
    {"GET", "/v1/assessments", Door::kToken, Action::kAssessRead, false, ListAssessments},
    {"POST", "/v1/node-tokens", Door::kToken, Action::kNodeJoin, false, CreateNodeToken},
    {"GET", "/v1/gpus", Door::kToken, Action::kNodeRead, false, ListGpus},
    {"GET", "/v1/gpus/{gpu}", Door::kToken, Action::kNodeRead, false, GetGpu},
    {"POST", "/v1/gpus/{gpu}/scrub", Door::kToken, Action::kGpuScrub, false, ScrubGpu},
    {"GET", "/v1/leases", Door::kToken, Action::kLeaseRead, true, ListLeases},
    {"POST", "/v1/leases", Door::kToken, Action::kLeaseRequest, true, RequestLease},
    {"GET", "/v1/leases/{lease}", Door::kToken, Action::kLeaseRead, true, GetLease},
    {"POST", "/v1/leases/{lease}/end", Door::kToken, Action::kLeaseEnd, true, EndLease},
    {"GET", "/v1/leases/{lease}/logs", Door::kToken, Action::kLeaseLogs, true, GetLeaseLogs},
    {"GET", "/v1/leases/{lease}/receipts", Door::kToken, Action::kLeaseRead, true,
     GetLeaseReceipts},
    {"GET", "/v1/tokens", Door::kToken, Action::kTokenRead, false, ListTokens},
    {"POST", "/v1/tokens", Door::kToken, Action::kTokenCreate, false, CreateToken},
    {"DELETE", "/v1/tokens/{token}", Door::kToken, Action::kTokenRevoke, false, RevokeToken},
    {"GET", "/v1/policy", Door::kToken, Action::kPolicyRead, false, GetPolicy},
    {"GET", "/v1/policy/versions", Door::kToken, Action::kPolicyRead, false, ListPolicyVersions},
    {"POST", kPolicyVersionsPath, Door::kToken, Action::kPolicyApply, false, ApplyPolicy},
    {"GET", "/v1/policy/versions/{version}", Door::kToken, Action::kPolicyRead, false,
     GetPolicyVersion},
    {"POST", "/v1/policy/rollback", Door::kToken, Action::kPolicyApply, false, RollbackPolicy},
    {"POST", "/v1/policy/reload", Door::kToken, Action::kPolicyApply, false, ReloadPolicy},
    {"GET", "/v1/access", Door::kToken, Action::kPolicyRead, false, ListAccess},
    {"GET", "/v1/audit/entries", Door::kToken, Action::kAuditRead, false, ListAuditEntries},
    {"GET", "/v1/audit/entries/{index}", Door::kToken, Action::kAuditRead, false, GetAuditEntry},
    {"GET", "/v1/audit/entries/{index}/proof", Door::kToken, Action::kAuditRead, false,
     ProveAuditEntry},
    {"GET", "/v1/audit/checkpoint", Door::kToken, Action::kAuditRead, false, GetCheckpoint},
    {"GET", "/v1/audit/keys", Door::kToken, Action::kStatusRead, false, GetAuditKeys},
    {"GET", "/v1/audit/log/{file}", Door::kToken, Action::kAuditRead, false, GetLogFile},
    {"POST", "/v1/audit/evidence", Door::kToken, Action::kAuditRead, false, RecordEvidence},
    {"GET", "/v1/events", Door::kToken, Action::kEventRead, true, ListEvents},
    {"GET", "/v1/events/count", Door::kToken, Action::kEventRead, true, CountEvents},
    {"GET", "/v1/alerts", Door::kToken, Action::kAlertRead, true, ListAlerts},
    {"GET", "/v1/alerts/{alert}", Door::kToken, Action::kAlertRead, true, GetAlert},
    {"POST", "/v1/alerts/{alert}/ack", Door::kToken, Action::kAlertManage, true, AckAlert},
    {"POST", "/v1/alerts/{alert}/silence", Door::kToken, Action::kAlertManage, true, SilenceAlert},
    {"GET", "/v1/intel/feeds", Door::kToken, Action::kAlertRead, false, ListIntelFeeds},
    {"POST", "/v1/intel/feeds/{feed}", Door::kToken, Action::kAlertManage, false, PutIntelFeed},
    {"POST", "/v1/intel/feeds/{feed}/parts", Door::kToken, Action::kAlertManage, false,
     PutIntelPart},
    {"DELETE", "/v1/intel/feeds/{feed}", Door::kToken, Action::kAlertManage, false,
     RemoveIntelFeed},
    {"GET", "/v1/usage", Door::kToken, Action::kUsageRead, true, GetUsage},
    {"POST", "/v1/agent/join", Door::kOpen, {}, false, AgentJoin},
    {"POST", "/v1/agent/renew", Door::kNode, {}, false, AgentRenew},
    {"POST", "/v1/agent/report", Door::kNode, {}, false, AgentReport},
    {"GET", "/v1/agent/work", Door::kNode, {}, false, AgentWork},
    {"POST", "/v1/agent/leases/{lease}/step", Door::kNode, {}, false, AgentLeaseStep},
    {"POST", "/v1/agent/leases/{lease}/output", Door::kNode, {}, false, AgentLeaseOutput},
    {"POST", "/v1/agent/receipts", Door::kNode, {}, false, AgentReceipt},
    {"POST", "/v1/agent/cosignatures", Door::kNode, {}, false, AgentCosign},
    {"POST", "/v1/agent/incidents", Door::kNode, {}, false, AgentIncidents},
    {"POST", "/v1/agent/telemetry", Door::kNode, {}, false, AgentTelemetry},
    {"POST", "/v1/agent/assessment", Door::kNode, {}, false, AgentAssessment},
};

std::string_view TakeSegment(std::string_view& path) {
  const std::size_t slash = path.find('/', 1);
  const std::string_view segment =
      path.substr(1, slash == std::string_view::npos ? std::string_view::npos : slash - 1);
  path.remove_prefix(slash == std::string_view::npos ? path.size() : slash);
  return segment;
}

bool Matches(std::string_view pattern, std::string_view path, Params& params) {
  while (!pattern.empty()) {
    if (pattern == "/{file}" && path.size() > 1) {
      params["file"] = std::string(path.substr(1));
      return true;
    }
    if (path.empty() || path[0] != '/') {
      return false;
    }
    const std::string_view want = TakeSegment(pattern);
    const std::string_view have = TakeSegment(path);
    if (want.starts_with('{')) {
      if (have.empty()) {
        return false;
      }
      params[std::string(want.substr(1, want.size() - 2))] = std::string(have);
    } else if (want != have) {
      return false;
    }
  }
  return path.empty();
}

// `failed` is filled in as far as it is known who it was, for when it is an error.
Result<Caller> FromToken(Core& core, const net::Request& request, FailedSignIn& failed) {
  const std::string_view header = request.Header("authorization");
  failed.why = "no_token";
  if (!header.starts_with("Bearer ")) {
    return Error{Code::kUnauthenticated, "no token was presented",
                 "send Authorization: Bearer TOKEN; `ringfence up` signs its CLI in by itself"};
  }
  failed.why = "token_unknown";
  RINGFENCE_ASSIGN(const std::string id, core.mint().Open(header.substr(7)));
  failed.token = id;
  Caller caller;
  RINGFENCE_TRY(core.database().Read([&](store::Connection& db) -> Status {
    RINGFENCE_ASSIGN(const store::TokenUse token, store::GetTokenUse(db, id));
    const Timestamp now = core.Now();
    failed.principal = token.principal;
    if (!token.revoked.empty() || token.expires <= now) {
      failed.why = token.revoked.empty() ? "token_expired" : "token_revoked";
      return Error{Code::kUnauthenticated,
                   token.revoked.empty() ? "the token expired at " + FormatTime(token.expires)
                                         : "the token was revoked at " + token.revoked,
                   "ask an administrator for a new one: `ringfence token create --as " +
                       token.principal + "`"};
    }
    caller = {token.principal, "user", id, request.remote_address, token.expires};
    return {};
  }));
  const policy::Principal* principal = core.policy()->FindPrincipal(caller.principal);
  if (principal == nullptr) {
    failed.why = "principal_unknown";
    return Error{Code::kUnauthenticated,
                 "principal " + caller.principal + " is no longer in the policy",
                 "declare it in the policy folder and reload"};
  }
  caller.kind = principal->service ? "service" : "user";
  return caller;
}

Result<Caller> FromCertificate(Core& core, const net::Request& request, FailedSignIn& failed) {
  failed.why = "certificate_unknown";
  constexpr std::string_view kNodeUri = "ringfence://node/";
  const Error bad{Code::kUnauthenticated, "this route is for nodes with a certificate of ours",
                  "join the node: `ringfence node token create NAME`"};
  if (!request.peer.has_value()) {
    return bad;
  }
  for (const std::string& uri : request.peer->uris) {
    if (!uri.starts_with(kNodeUri)) {
      continue;
    }
    const std::string name = uri.substr(kNodeUri.size());
    Caller caller{name, "node", request.peer->fingerprint, request.remote_address, {}};
    failed.principal = name;
    RINGFENCE_TRY(core.database().Read([&](store::Connection& db) -> Status {
      const auto node = store::GetNode(db, name);
      if (!node.has_value()) {
        return bad;
      }
      if (node->certificate_fingerprint != caller.via && node->certificate_previous != caller.via) {
        failed.why = "certificate_replaced";
        return Error{Code::kUnauthenticated,
                     "the certificate of node " + name + " was replaced by a later one",
                     "join the node again with a new token"};
      }
      caller.expires = node->certificate_expires;
      if (node->certificate_fingerprint == caller.via && caller.expires <= core.Now()) {
        failed.why = "certificate_expired";
        return Error{Code::kUnauthenticated, "the certificate of node " + name + " has expired",
                     "join the node again with a new token"};
      }
      return {};
    }));
    return caller;
  }
  return bad;
}

Status LetIn(Core& core, const Route& route, Call& call) {
  if (route.door == Door::kOpen) {
    return {};
  }
  FailedSignIn failed{call.request.remote_address, {}, {}, {}};
  auto caller = route.door == Door::kToken ? FromToken(core, call.request, failed)
                                           : FromCertificate(core, call.request, failed);
  if (!caller.has_value()) {
    // A token that is not there or not ours says nothing about who it was: counted and told to
    // detection, not audited, so that a flood of guesses cannot fill the log.
    ++core.counters().unauthenticated;
    const Code code = caller.error().code;
    if (core.detector() != nullptr && (code == Code::kUnauthenticated || code == Code::kNotFound)) {
      core.detector()->Saw(failed);
    }
    if (caller.error().code == Code::kNotFound) {
      return Error{Code::kUnauthenticated, "the token is not one of ours"};
    }
    return caller.error();
  }
  call.caller = std::move(caller).value();
  if (route.door == Door::kNode || route.decides_itself) {
    return {};
  }
  return Authorize(call, *route.action, model::TenantPath::Root());
}

// The one status that no code of ours has: the route is there, for another method.
net::Response NotAllowed(const std::string& method, const std::string& allowed) {
  const std::string label(Facts(Code::kInvalidArgument).label);
  net::Response response =
      net::Response::OfJson(405, JsonObject{{"type", "https://ringfence.dev/problems/" + label},
                                            {"title", "method not allowed"},
                                            {"status", 405},
                                            {"detail", method + " is not possible here"},
                                            {"code", label},
                                            {"hint", "use " + allowed}});
  response.content_type = "application/problem+json";
  response.headers.emplace_back("Allow", allowed);
  return response;
}

}  // namespace

std::span<const Route> AllRoutes() { return kRoutes; }

policy::Decision Decide(const Call& call, policy::Action action, const model::TenantPath& tenant) {
  policy::Decision decision = call.core.policy()->Decide(
      {call.caller.principal, action, tenant, {call.core.Now(), call.caller.address}});
  if (decision.allowed) {
    call.core.uses().Used(call.caller.principal, action, tenant, call.core.Now());
  }
  return decision;
}

void Note(const Call& call, audit::Entry& entry) { Note(call.core, call.decision, entry); }

void Note(const Core& core, const policy::Decision& decision, audit::Entry& entry) {
  // More would help nobody, and an entry has a limit.
  constexpr std::size_t kRulesMax = 8;
  entry.decision = decision.allowed ? "allow" : "deny";
  entry.decision_reason = decision.reason;
  JsonArray rules;
  for (std::size_t i = 0; i < decision.rules.size() && i < kRulesMax; ++i) {
    rules.emplace_back(decision.rules[i]);
  }
  if (!rules.empty()) {
    entry.detail["rules"] = std::move(rules);
  }
  if (core.policy_version() != 0) {
    entry.detail["policy_version"] = core.policy_version();
  }
}

Status Authorize(const Call& call, policy::Action action, const model::TenantPath& tenant,
                 const std::string& lease) {
  call.decision = Decide(call, action, tenant);
  const policy::Decision& decision = call.decision;
  if (decision.allowed) {
    ++call.core.counters().allowed;
    return {};
  }
  ++call.core.counters().denied;
  audit::Entry entry = call.core.NewEntry(ActorOf(call.caller), Name(action));
  entry.tenant = tenant.is_root() ? "" : tenant.text();
  entry.lease = lease;
  Note(call, entry);
  RINGFENCE_TRY(call.core.RecordAlone(entry));
  const bool forbidden = !decision.rules.empty();
  return Error{Code::kPermissionDenied, decision.reason,
               forbidden
                   ? std::string("no role helps against a forbid: that rule of the policy decided")
                   : "ask whoever administers the policy for a role that allows " +
                         std::string(Name(action))};
}

void Dispatch(Core& core, net::Server* http, const net::Request& request,
              const net::Responder& responder) {
  std::string allowed;
  for (const Route& route : kRoutes) {
    Params params;
    if (!Matches(route.path, request.path, params)) {
      continue;
    }
    if (route.method != request.method && !(request.method == "HEAD" && route.method == "GET")) {
      allowed += (allowed.empty() ? "" : ", ") + std::string(route.method);
      continue;
    }
    Call call{core, http, request, std::move(params), {}, {}};
    if (const Status let_in = LetIn(core, route, call); !let_in.has_value()) {
      responder.Send(net::Response::OfError(let_in.error()));
      return;
    }
    route.handler(call, responder);
    return;
  }
  if (!allowed.empty()) {
    responder.Send(NotAllowed(request.method, allowed));
    return;
  }
  responder.Send(net::Response::OfError({Code::kNotFound, "no such route: " + request.path,
                                         "the API is described in api/openapi.yaml"}));
}

}  // namespace ringfence::server
