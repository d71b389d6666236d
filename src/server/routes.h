#pragma once

// The handlers of the routes: status.cc, and by room the files that end in _routes.cc; and what
// they share.

#include <functional>
#include <string>

#include "server/router.h"

namespace ringfence::server {

void GetHealth(const Call&, const net::Responder&);
void GetReady(const Call&, const net::Responder&);
void GetMetrics(const Call&, const net::Responder&);
void GetStatus(const Call&, const net::Responder&);
void GetWhoAmI(const Call&, const net::Responder&);
void ListTenants(const Call&, const net::Responder&);
void GetBoundary(const Call&, const net::Responder&);
void ListNodes(const Call&, const net::Responder&);
void GetNode(const Call&, const net::Responder&);
void GetProofs(const Call&, const net::Responder&);
void TakeProofs(const Call&, const net::Responder&);
void CreateNodeToken(const Call&, const net::Responder&);
void ListGpus(const Call&, const net::Responder&);
void GetGpu(const Call&, const net::Responder&);
void ScrubGpu(const Call&, const net::Responder&);
void GetGpuMig(const Call&, const net::Responder&);
void ListMig(const Call&, const net::Responder&);
void OrderGpuMig(const Call&, const net::Responder&);
void ListLeases(const Call&, const net::Responder&);
void RequestLease(const Call&, const net::Responder&);
void GetLease(const Call&, const net::Responder&);
void EndLease(const Call&, const net::Responder&);
void GetLeaseLogs(const Call&, const net::Responder&);
void GetLeaseReceipts(const Call&, const net::Responder&);
void ListTokens(const Call&, const net::Responder&);
void CreateToken(const Call&, const net::Responder&);
void RevokeToken(const Call&, const net::Responder&);
void GetPolicy(const Call&, const net::Responder&);
void ListPolicyVersions(const Call&, const net::Responder&);
void GetPolicyVersion(const Call&, const net::Responder&);
void ApplyPolicy(const Call&, const net::Responder&);
void RollbackPolicy(const Call&, const net::Responder&);
void ListAccess(const Call&, const net::Responder&);
void ReloadPolicy(const Call&, const net::Responder&);
void ListAuditEntries(const Call&, const net::Responder&);
void GetAuditEntry(const Call&, const net::Responder&);
void ProveAuditEntry(const Call&, const net::Responder&);
void GetCheckpoint(const Call&, const net::Responder&);
void GetAuditKeys(const Call&, const net::Responder&);
void GetLogFile(const Call&, const net::Responder&);
void RecordEvidence(const Call&, const net::Responder&);
void ListEvents(const Call&, const net::Responder&);
void CountEvents(const Call&, const net::Responder&);
void ListAlerts(const Call&, const net::Responder&);
void GetAlert(const Call&, const net::Responder&);
void AckAlert(const Call&, const net::Responder&);
void SilenceAlert(const Call&, const net::Responder&);
void ListIntelFeeds(const Call&, const net::Responder&);
void PutIntelPart(const Call&, const net::Responder&);
void PutIntelFeed(const Call&, const net::Responder&);
void RemoveIntelFeed(const Call&, const net::Responder&);
void GetUsage(const Call&, const net::Responder&);
void AgentJoin(const Call&, const net::Responder&);
void AgentRenew(const Call&, const net::Responder&);
void AgentReport(const Call&, const net::Responder&);
void AgentWork(const Call&, const net::Responder&);
void AgentLeaseStep(const Call&, const net::Responder&);
void AgentLeaseOutput(const Call&, const net::Responder&);
void AgentReceipt(const Call&, const net::Responder&);
void AgentMig(const Call&, const net::Responder&);
void AgentCosign(const Call&, const net::Responder&);
void AgentAssessment(const Call&, const net::Responder&);
void ListAssessments(const Call&, const net::Responder&);
void GetAssessment(const Call&, const net::Responder&);
void AgentIncidents(const Call&, const net::Responder&);
void AgentTelemetry(const Call&, const net::Responder&);

// The one route whose body may be long: a whole policy folder, as JSON.
inline constexpr std::string_view kPolicyVersionsPath = "/v1/policy/versions";
inline constexpr std::size_t kPolicyRequestBytesMax = std::size_t{16} << 20U;

// Answers with what `make` returns, or with its error.
void Answer(const net::Responder& responder, const std::function<Result<net::Response>()>& make);

// The body as a JSON object; kInvalidArgument otherwise. An empty body is {}.
Result<Json> BodyOf(const net::Request& request);

// limit= and cursor= of a list.
struct Page {
  std::int64_t limit = 100;
  std::string cursor;
};
Result<Page> PageOf(const net::Request& request);
Result<std::int64_t> IntQuery(const net::Request& request, std::string_view name,
                              std::int64_t fallback, std::int64_t least, std::int64_t most);

// Runs a change that creates something and keeps its answer under the Idempotency-Key, if there is
// one: the same key with the same request answers the same again and changes nothing. `work` fills
// in the answer's body. What must not be stored (a secret) is added by `finish`, to the first
// answer and to every repeated one.
struct Creation {
  int status = 201;
  JsonObject body;
};
Result<net::Response> CreateOnce(const Call& call,
                                 const std::function<Status(store::Connection&, Creation&)>& work,
                                 const std::function<void(JsonObject&)>& finish = {});

}  // namespace ringfence::server
