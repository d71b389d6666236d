#include "store/records.h"

#include "base/json.h"
#include "wire/lease_json.h"
#include "wire/node_json.h"

namespace ringfence::store {
namespace {

Status Just(Result<std::vector<Row>> result) {
  return result.has_value() ? Status() : Status(result.error());
}

// A record that does not parse was not written by us: the database is damaged.
template <typename T>
Result<T> Damaged(Result<T> parsed, std::string_view what) {
  if (!parsed.has_value()) {
    return Error{Code::kCorrupt,
                 "stored " + std::string(what) + " is damaged: " + parsed.error().message,
                 "restore the database from a backup"};
  }
  return parsed;
}

template <typename T, typename FromJson>
Result<T> ParseRecord(const std::string& text, std::size_t bytes_max, FromJson from_json,
                      std::string_view what) {
  const auto json = ParseJson(text, bytes_max);
  if (!json.has_value()) {
    return Damaged<T>(json.error(), what);
  }
  return Damaged<T>(from_json(*json), what);
}

Result<model::Lease> ToLease(const std::string& text) {
  return ParseRecord<model::Lease>(text, wire::kLeaseJsonBytesMax, wire::LeaseFromJson, "lease");
}
Result<model::Node> ToNode(const std::string& text) {
  return ParseRecord<model::Node>(text, wire::kNodeJsonBytesMax, wire::NodeFromJson, "node");
}
Result<model::Gpu> ToGpu(const std::string& text) {
  return ParseRecord<model::Gpu>(text, wire::kNodeJsonBytesMax, wire::GpuFromJson, "GPU");
}

// All rows' column `column` as T.
template <typename T, typename Parse>
Result<std::vector<T>> Collect(const std::vector<Row>& rows, std::size_t column, Parse parse) {
  std::vector<T> values;
  values.reserve(rows.size());
  for (const Row& row : rows) {
    RINGFENCE_ASSIGN(T value, parse(TextAt(row, column)));
    values.push_back(std::move(value));
  }
  return values;
}

Error Missing(std::string_view what, const std::string& id) {
  return Error{Code::kNotFound, "no " + std::string(what) + " \"" + id.substr(0, 128) + "\""};
}

std::int64_t OpenFlag(const model::Lease& lease) {
  return lease.state == model::LeaseState::kClosed ? 0 : 1;
}

// The range of texts that begin with `prefix` + "/".
std::pair<std::string, std::string> Below(const std::string& prefix) {
  return {prefix + "/", prefix + "0"};  // '0' follows '/'
}

}  // namespace

Status InsertLease(Connection& db, const model::Lease& lease) {
  return Just(
      db.Run("INSERT INTO leases (id, number, tenant, state, is_open, node, record)"
             " VALUES ($1, (SELECT COALESCE(MAX(number), 0) + 1 FROM leases), $2, $3, $4, $5, $6)",
             {lease.id, lease.request.tenant.text(), std::string(Name(lease.state)),
              OpenFlag(lease), lease.node, CanonicalJson(wire::LeaseToJson(lease))}));
}

Status UpdateLease(Connection& db, const model::Lease& lease) {
  return Just(
      db.Run("UPDATE leases SET state = $2, is_open = $3, node = $4, record = $5"
             " WHERE id = $1",
             {lease.id, std::string(Name(lease.state)), OpenFlag(lease), lease.node,
              CanonicalJson(wire::LeaseToJson(lease))}));
}

Result<LeaseText> GetLeaseText(Connection& db, const std::string& id) {
  RINGFENCE_ASSIGN(auto rows,
                   db.Run("SELECT tenant, state, record FROM leases WHERE id = $1", {id}));
  if (rows.empty()) {
    Error error = Missing("lease", id);
    error.hint = "`ringfence lease list` shows those there are";
    return error;
  }
  return LeaseText{TextAt(rows[0], 0), TextAt(rows[0], 1), TextAt(rows[0], 2)};
}

Result<model::Lease> GetLease(Connection& db, const std::string& id) {
  RINGFENCE_ASSIGN(const LeaseText text, GetLeaseText(db, id));
  return ToLease(text.json);
}

Result<std::vector<NumberedLease>> ListLeases(Connection& db, const LeaseFilter& filter) {
  const auto [below_first, below_end] = Below(filter.tenant);
  RINGFENCE_ASSIGN(
      const auto rows,
      db.Run("SELECT number, record FROM leases WHERE ($1 = '' OR tenant = $1 OR"
             " (tenant >= $2 AND tenant < $3)) AND ($4 = '' OR state = $4) AND is_open >= $5"
             " AND ($6 = 0 OR number < $6) ORDER BY number DESC LIMIT $7",
             {filter.tenant, below_first, below_end,
              filter.state ? std::string(Name(*filter.state)) : std::string(),
              std::int64_t{filter.open_only ? 1 : 0}, filter.before, filter.limit}));
  std::vector<NumberedLease> leases;
  for (const Row& row : rows) {
    RINGFENCE_ASSIGN(model::Lease lease, ToLease(TextAt(row, 1)));
    leases.push_back({IntAt(row, 0), std::move(lease)});
  }
  return leases;
}

Result<std::vector<model::Lease>> OpenLeases(Connection& db) {
  RINGFENCE_ASSIGN(const auto rows,
                   db.Run("SELECT record FROM leases WHERE is_open = 1 ORDER BY number", {}));
  return Collect<model::Lease>(rows, 0, ToLease);
}

Result<std::vector<model::Lease>> OpenLeasesOf(Connection& db, const std::string& node) {
  RINGFENCE_ASSIGN(
      const auto rows,
      db.Run("SELECT record FROM leases WHERE is_open = 1 AND node = $1 ORDER BY number", {node}));
  return Collect<model::Lease>(rows, 0, ToLease);
}

Status PutNode(Connection& db, const model::Node& node) {
  return Just(
      db.Run("INSERT INTO nodes (name, record) VALUES ($1, $2)"
             " ON CONFLICT (name) DO UPDATE SET record = $2",
             {node.name, CanonicalJson(wire::NodeToJson(node))}));
}

Result<model::Node> GetNode(Connection& db, const std::string& name) {
  RINGFENCE_ASSIGN(const auto rows, db.Run("SELECT record FROM nodes WHERE name = $1", {name}));
  if (rows.empty()) {
    Error error = Missing("node", name);
    error.hint = "`ringfence node list` shows those there are";
    return error;
  }
  return ToNode(TextAt(rows[0], 0));
}

Result<std::vector<model::Node>> ListNodes(Connection& db) {
  RINGFENCE_ASSIGN(const auto rows, db.Run("SELECT record FROM nodes ORDER BY name", {}));
  return Collect<model::Node>(rows, 0, ToNode);
}

Status PutGpu(Connection& db, const model::Gpu& gpu) {
  return Just(
      db.Run("INSERT INTO gpus (uuid, node, lease, record) VALUES ($1, $2, $3, $4)"
             " ON CONFLICT (uuid) DO UPDATE SET node = $2, lease = $3, record = $4",
             {gpu.uuid, gpu.node, gpu.lease, CanonicalJson(wire::GpuToJson(gpu))}));
}

Status DropGpu(Connection& db, const std::string& uuid) {
  return Just(db.Run("DELETE FROM gpus WHERE uuid = $1", {uuid}));
}

Result<model::Gpu> GetGpu(Connection& db, const std::string& uuid) {
  RINGFENCE_ASSIGN(const auto rows, db.Run("SELECT record FROM gpus WHERE uuid = $1", {uuid}));
  if (rows.empty()) {
    Error error = Missing("GPU", uuid);
    error.hint = "`ringfence gpu list` shows those there are";
    return error;
  }
  return ToGpu(TextAt(rows[0], 0));
}

Result<std::vector<model::Gpu>> ListGpus(Connection& db) {
  RINGFENCE_ASSIGN(const auto rows, db.Run("SELECT record FROM gpus ORDER BY node, uuid", {}));
  return Collect<model::Gpu>(rows, 0, ToGpu);
}

Result<std::vector<model::Gpu>> GpusOf(Connection& db, const std::string& node) {
  RINGFENCE_ASSIGN(const auto rows,
                   db.Run("SELECT record FROM gpus WHERE node = $1 ORDER BY uuid", {node}));
  return Collect<model::Gpu>(rows, 0, ToGpu);
}

Status InsertReceipt(Connection& db, const StoredReceipt& receipt) {
  return Just(
      db.Run("INSERT INTO receipts (id, lease, node, verified_by, envelope)"
             " VALUES ($1, $2, $3, $4, $5)",
             {receipt.id, receipt.lease, receipt.node, receipt.key, receipt.envelope}));
}

Result<std::vector<StoredReceipt>> ReceiptsOf(Connection& db, const std::string& lease) {
  RINGFENCE_ASSIGN(const auto rows, db.Run("SELECT id, lease, node, verified_by, envelope FROM "
                                           "receipts WHERE lease = $1 ORDER BY id",
                                           {lease}));
  std::vector<StoredReceipt> receipts;
  for (const Row& row : rows) {
    receipts.push_back(
        {TextAt(row, 0), TextAt(row, 1), TextAt(row, 2), TextAt(row, 3), TextAt(row, 4)});
  }
  return receipts;
}

namespace {

JsonObject TokenToJson(const Token& token) {
  return {{"id", token.id},
          {"principal", token.principal},
          {"created", FormatTime(token.created)},
          {"expires", FormatTime(token.expires)},
          {"created_by", token.created_by},
          {"note", token.note},
          {"revoked", token.revoked}};
}

Result<Token> TokenFromJson(const Json& json) {
  RINGFENCE_ASSIGN(auto reader, JsonReader::Open(json, "token"));
  Token token;
  RINGFENCE_ASSIGN(token.id, reader.String("id"));
  RINGFENCE_ASSIGN(token.principal, reader.String("principal"));
  RINGFENCE_ASSIGN(const std::string created, reader.String("created"));
  RINGFENCE_ASSIGN(token.created, ParseTime(created));
  RINGFENCE_ASSIGN(const std::string expires, reader.String("expires"));
  RINGFENCE_ASSIGN(token.expires, ParseTime(expires));
  RINGFENCE_ASSIGN(token.created_by, reader.String("created_by"));
  RINGFENCE_ASSIGN(token.note, reader.String("note"));
  RINGFENCE_ASSIGN(token.revoked, reader.String("revoked"));
  RINGFENCE_TRY(reader.Finish());
  return token;
}

Result<Token> ToToken(const std::string& text) {
  return ParseRecord<Token>(text, 64 * 1024, TokenFromJson, "token");
}

std::int64_t Millis(Timestamp time) { return time.time_since_epoch().count(); }

}  // namespace

Status PutToken(Connection& db, const Token& token) {
  return Just(db.Run(
      "INSERT INTO tokens (id, principal, expires_ms, record)"
      " VALUES ($1, $2, $3, $4) ON CONFLICT (id) DO UPDATE SET record = $4",
      {token.id, token.principal, Millis(token.expires), CanonicalJson(TokenToJson(token))}));
}

namespace {

Error NoToken(const std::string& id) {
  Error error = Missing("token", id);
  error.hint = "`ringfence token list` shows those there are";
  return error;
}

}  // namespace

Result<Token> GetToken(Connection& db, const std::string& id) {
  RINGFENCE_ASSIGN(const auto rows, db.Run("SELECT record FROM tokens WHERE id = $1", {id}));
  if (rows.empty()) {
    return NoToken(id);
  }
  return ToToken(TextAt(rows[0], 0));
}

// The record's last member, as canonical JSON sorts them, is "revoked": where it is empty there is
// nothing more to learn from the record, and no need to read it with every request.
Result<TokenUse> GetTokenUse(Connection& db, const std::string& id) {
  RINGFENCE_ASSIGN(const auto rows,
                   db.Run("SELECT principal, expires_ms, record FROM tokens WHERE id = $1", {id}));
  if (rows.empty()) {
    return NoToken(id);
  }
  const std::string& record = TextAt(rows[0], 2);
  if (record.ends_with(",\"revoked\":\"\"}")) {
    return TokenUse{TextAt(rows[0], 0), Timestamp(Milliseconds(IntAt(rows[0], 1))), {}};
  }
  RINGFENCE_ASSIGN(Token token, ToToken(record));
  return TokenUse{std::move(token.principal), token.expires, std::move(token.revoked)};
}

Result<std::vector<Token>> ListTokens(Connection& db, const std::string& after,
                                      std::int64_t limit) {
  RINGFENCE_ASSIGN(
      const auto rows,
      db.Run("SELECT record FROM tokens WHERE id > $1 ORDER BY id LIMIT $2", {after, limit}));
  return Collect<Token>(rows, 0, ToToken);
}

Status InsertJoinToken(Connection& db, const JoinToken& token) {
  const JsonObject record{{"node", token.node},
                          {"jailer_half", token.jailer_half},
                          {"expires", FormatTime(token.expires)}};
  return Just(db.Run("INSERT INTO join_tokens (id, expires_ms, record) VALUES ($1, $2, $3)",
                     {token.id, Millis(token.expires), CanonicalJson(record)}));
}

Result<JoinToken> TakeJoinToken(Connection& db, const std::string& id) {
  RINGFENCE_ASSIGN(const auto rows, db.Run("SELECT record FROM join_tokens WHERE id = $1", {id}));
  if (rows.empty()) {
    return Error{Code::kNotFound, "no such join token"};
  }
  RINGFENCE_TRY(Just(db.Run("DELETE FROM join_tokens WHERE id = $1", {id})));
  RINGFENCE_ASSIGN(const Json json, ParseJson(TextAt(rows[0], 0), 64 * 1024));
  RINGFENCE_ASSIGN(auto reader, JsonReader::Open(json, "join token"));
  JoinToken token;
  token.id = id;
  RINGFENCE_ASSIGN(token.node, reader.String("node"));
  RINGFENCE_ASSIGN(token.jailer_half, reader.String("jailer_half"));
  RINGFENCE_ASSIGN(const std::string expires, reader.String("expires"));
  RINGFENCE_ASSIGN(token.expires, ParseTime(expires));
  return token;
}

Result<std::optional<KeptAnswer>> FindAnswer(Connection& db, const std::string& principal,
                                             const std::string& key) {
  RINGFENCE_ASSIGN(
      const auto rows,
      db.Run("SELECT digest, status, body FROM idempotency WHERE principal = $1 AND key = $2",
             {principal, key}));
  if (rows.empty()) {
    return std::optional<KeptAnswer>();
  }
  return std::optional<KeptAnswer>(
      KeptAnswer{TextAt(rows[0], 0), static_cast<int>(IntAt(rows[0], 1)), TextAt(rows[0], 2)});
}

Status KeepAnswer(Connection& db, const std::string& principal, const std::string& key,
                  const KeptAnswer& answer, Timestamp now) {
  return Just(db.Run(
      "INSERT INTO idempotency (principal, key, digest, status, body, created_ms)"
      " VALUES ($1, $2, $3, $4, $5, $6)",
      {principal, key, answer.digest, std::int64_t{answer.status}, answer.body, Millis(now)}));
}

Status ForgetAnswers(Connection& db, Timestamp now) {
  return Just(db.Run("DELETE FROM idempotency WHERE created_ms < $1",
                     {Millis(now - std::chrono::hours(24))}));
}

Status AppendAudit(Connection& db, std::string_view action, const std::string& lease,
                   const Bytes& entry) {
  return Just(
      db.Run("INSERT INTO audit (seq, action, lease, entry)"
             " VALUES ((SELECT COALESCE(MAX(seq) + 1, 0) FROM audit), $1, $2, $3)",
             {std::string(action), lease, entry}));
}

Result<std::int64_t> AuditSize(Connection& db) {
  RINGFENCE_ASSIGN(const auto rows, db.Run("SELECT COALESCE(MAX(seq) + 1, 0) FROM audit", {}));
  return IntAt(rows[0], 0);
}

Result<std::vector<AuditRow>> ListAudit(Connection& db, const AuditFilter& filter) {
  // Only what is asked for, so that the database can use the index for it.
  std::string sql = "SELECT seq, entry FROM audit WHERE seq ";
  std::vector<Value> values{filter.newest_first && filter.from == 0 ? INT64_MAX : filter.from,
                            filter.limit};
  sql += filter.newest_first ? "< $1" : ">= $1";
  if (!filter.lease.empty()) {
    values.emplace_back(filter.lease);
    sql += " AND lease <> '' AND lease = $" + std::to_string(values.size());
  }
  if (!filter.action.empty()) {
    values.emplace_back(filter.action);
    sql += " AND action = $" + std::to_string(values.size());
  }
  sql += filter.newest_first ? " ORDER BY seq DESC LIMIT $2" : " ORDER BY seq LIMIT $2";
  RINGFENCE_ASSIGN(const auto rows, db.Run(sql, values));
  std::vector<AuditRow> entries;
  entries.reserve(rows.size());
  for (const Row& row : rows) {
    entries.push_back({IntAt(row, 0), BlobAt(row, 1)});
  }
  return entries;
}

}  // namespace ringfence::store
