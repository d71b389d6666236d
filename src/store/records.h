#pragma once

// The records of Ringfence over a Connection. Each function is one statement or a few; whoever
// calls several inside one Database::Write gets all of them or none.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/time.h"
#include "model/lease.h"
#include "model/node.h"
#include "store/database.h"

namespace ringfence::store {

// Leases. `number` counts them in the order they came and is the cursor of lists.
Status InsertLease(Connection& db, const model::Lease& lease);
Status UpdateLease(Connection& db, const model::Lease& lease);
Result<model::Lease> GetLease(Connection& db, const std::string& id);  // kNotFound
// A lease as it is stored, which is the JSON that the API answers with, unread: most reads need no
// more than its tenant and state.
struct LeaseText {
  std::string tenant;
  std::string state;
  std::string json;
};
Result<LeaseText> GetLeaseText(Connection& db, const std::string& id);  // kNotFound
struct LeaseFilter {
  std::string tenant;  // this and below; empty: all
  std::optional<model::LeaseState> state;
  bool open_only = false;
  std::int64_t before = 0;  // older than this number; 0: from the newest
  std::int64_t limit = 100;
};
struct NumberedLease {
  std::int64_t number = 0;
  model::Lease lease;
};
Result<std::vector<NumberedLease>> ListLeases(Connection& db, const LeaseFilter& filter);
Result<std::vector<model::Lease>> OpenLeases(Connection& db);
Result<std::vector<model::Lease>> OpenLeasesOf(Connection& db, const std::string& node);

// Nodes and GPUs.
Status PutNode(Connection& db, const model::Node& node);
Result<model::Node> GetNode(Connection& db, const std::string& name);  // kNotFound
Result<std::vector<model::Node>> ListNodes(Connection& db);
Status PutGpu(Connection& db, const model::Gpu& gpu);
Status DropGpu(Connection& db, const std::string& uuid);
Result<model::Gpu> GetGpu(Connection& db, const std::string& uuid);  // kNotFound
Result<std::vector<model::Gpu>> ListGpus(Connection& db);
Result<std::vector<model::Gpu>> GpusOf(Connection& db, const std::string& node);

// Scrub receipts, as signed. kConflict when this receipt was stored before.
struct StoredReceipt {
  std::string id;
  std::string lease;
  std::string node;
  std::string key;  // base64: the node's receipt key when it was taken
  std::string envelope;
};
Status InsertReceipt(Connection& db, const StoredReceipt& receipt);
Result<std::vector<StoredReceipt>> ReceiptsOf(Connection& db, const std::string& lease);

// Tokens: only what is needed to recognise them. The secret is never stored.
struct Token {
  std::string id;
  std::string principal;
  Timestamp created;
  Timestamp expires;
  std::string created_by;
  std::string note;
  std::string revoked;  // when; empty: in force
};
Status PutToken(Connection& db, const Token& token);
Result<Token> GetToken(Connection& db, const std::string& id);  // kNotFound
// What every request asks of its token.
struct TokenUse {
  std::string principal;
  Timestamp expires;
  std::string revoked;
};
Result<TokenUse> GetTokenUse(Connection& db, const std::string& id);  // kNotFound
Result<std::vector<Token>> ListTokens(Connection& db, const std::string& after, std::int64_t limit);

// Join tokens of nodes, until used.
struct JoinToken {
  std::string id;  // hex SHA-256 of the agent's half of the secret
  std::string node;
  std::string jailer_half;  // base64; verifies the jailer's proof, worthless once used
  Timestamp expires;
};
Status InsertJoinToken(Connection& db, const JoinToken& token);
// Returns it and removes it: a second taker gets kNotFound.
Result<JoinToken> TakeJoinToken(Connection& db, const std::string& id);

// Answers kept for repeated requests.
struct KeptAnswer {
  std::string digest;  // of method, path and body
  int status = 0;
  std::string body;
};
Result<std::optional<KeptAnswer>> FindAnswer(Connection& db, const std::string& principal,
                                             const std::string& key);
Status KeepAnswer(Connection& db, const std::string& principal, const std::string& key,
                  const KeptAnswer& answer, Timestamp now);
// Drops what is older than a day.
Status ForgetAnswers(Connection& db, Timestamp now);

// Audit entries in the order they will have in the log, from 0 without a gap.
struct AuditRow {
  std::int64_t seq = 0;
  Bytes entry;
};
Status AppendAudit(Connection& db, std::string_view action, const std::string& lease,
                   const Bytes& entry);
Result<std::int64_t> AuditSize(Connection& db);
struct AuditFilter {
  std::string lease;
  std::string action;
  bool newest_first = false;
  std::int64_t from = 0;  // oldest first: at or after; newest first: before (0: from the newest)
  std::int64_t limit = 100;
};
Result<std::vector<AuditRow>> ListAudit(Connection& db, const AuditFilter& filter);

}  // namespace ringfence::store
