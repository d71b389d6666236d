#pragma once

// A server's state as the tests of this folder need it.

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "audit/entry.h"
#include "audit/log.h"
#include "audit/note.h"
#include "backup/create.h"
#include "backup/restore.h"
#include "base/encoding.h"
#include "crypto/random.h"
#include "os/file.h"
#include "os/self.h"
#include "store/log_records.h"
#include "store/output_records.h"
#include "store/records.h"
#include "store/strays.h"
#include "store/tables.h"

namespace ringfence::backup {

inline Timestamp TestTime(std::int64_t seconds) {
  return Timestamp(std::chrono::seconds(1'790'000'000 + seconds));
}

inline SecretBytes TestPassphrase(std::string_view text = "correct horse battery") {
  return SecretBytes(AsBytes(text));
}

inline model::Gpu TestGpu(const std::string& uuid, model::GpuState state,
                          const std::string& lease = "") {
  model::Gpu gpu;
  gpu.uuid = uuid;
  gpu.node = "n1";
  gpu.state = state;
  gpu.lease = lease;
  gpu.tenant = lease.empty() ? "" : "acme/research";
  gpu.model = "H200";
  gpu.memory_bytes = 1 << 20U;
  return gpu;
}

inline model::Lease TestLease(const std::string& id, model::LeaseState state) {
  model::Lease lease;
  lease.id = id;
  lease.request.tenant = model::TenantPath::Create("acme/research").value();
  lease.request.command = {"train"};
  lease.request.environment = {{"NAME", "value"}};
  lease.principal = "alice@acme.example";
  lease.state = state;
  lease.node = "n1";
  lease.created = lease.updated = TestTime(0);
  return lease;
}

class TestState {
 public:
  explicit TestState(int entries = 300) {
    for (const char* folder : {"server/keys", "policy/teams"}) {
      EXPECT_TRUE(os::MakeDirs(Path(folder), 0700).has_value());
    }
    Write("server/keys/log.key", Base64(key_.seed().Reveal()));
    Write("server/keys/grant.key", "grant secret");
    Write("server/keys/tls.key.pem", "not to be copied");
    Write("policy/tenants.yaml", "one: 1\n");
    Write("policy/teams/more.yaml", "two: 2\n");
    Write("policy/.git", "hidden");
    database_ = store::OpenSqlite(Path("server/ringfence.db")).value();
    writer_ = audit::LogWriter::Open(Path("server/log"), origin_, key_).value();
    Fill();
    AddEntries(entries);
    Prove();
  }

  std::string Path(const std::string& name) const { return folder_.path() + "/" + name; }
  void Write(const std::string& name, std::string_view text) const {
    ASSERT_TRUE(os::WriteFile(Path(name), AsBytes(text)).has_value());
  }

  // Acknowledged.
  void AddEntries(int count) {
    ASSERT_TRUE(database_
                    ->Write([&](store::Connection& db) -> Status {
                      for (int i = 0; i < count; ++i) {
                        audit::Entry entry;
                        entry.time = TestTime(0);
                        entry.id = crypto::RandomId("a");
                        entry.actor = {"alice", "user", "", ""};
                        entry.action = "test.entry";
                        entry.lease = "lease-" + std::to_string(i % 3);
                        entry.result = "ok";
                        RINGFENCE_ASSIGN(const Bytes bytes, entry.ToBytes());
                        RINGFENCE_TRY(store::AppendAudit(db, entry.action, entry.lease, bytes));
                      }
                      return {};
                    })
                    .has_value());
  }
  // Proven.
  void Prove() {
    std::vector<Bytes> entries;
    ASSERT_TRUE(database_
                    ->Read([&](store::Connection& db) -> Status {
                      store::AuditFilter filter;
                      filter.from = static_cast<std::int64_t>(writer_->head().size);
                      filter.limit = 100'000;
                      RINGFENCE_ASSIGN(auto rows, store::ListAudit(db, filter));
                      for (auto& row : rows) {
                        entries.push_back(std::move(row.entry));
                      }
                      return {};
                    })
                    .has_value());
    ASSERT_TRUE(writer_->Append(entries).has_value());
    const std::string note = writer_->checkpoint();
    const std::string line = audit::Cosign(note, "w/n1", witness_, TestTime(1));
    ASSERT_TRUE(writer_->AddCosignature(line).has_value());
    const auto size = static_cast<std::int64_t>(writer_->head().size);
    ASSERT_TRUE(database_
                    ->Write([&](store::Connection& db) -> Status {
                      if (!turn_.has_value()) {
                        RINGFENCE_ASSIGN(const store::LogTurn seen, store::GetLogTurn(db));
                        RINGFENCE_ASSIGN(turn_, store::TakeLogTurn(db, seen, "test"));
                      }
                      RINGFENCE_TRY(store::PublishLogHead(db, *turn_, {size, note}));
                      return store::PutCosignature(db, "w/n1", size, line);
                    })
                    .has_value());
  }
  std::string Checkpoint() const {
    return os::ReadText(Path("server/log/checkpoint"), 1 << 16).value();
  }

  CreateOptions Options(const std::string& file = "one.rfb") const {
    CreateOptions options;
    options.server_folder = Path("server");
    options.policy_folder = Path("policy");
    options.file = Path(file);
    options.now = TestTime(100);
    options.cost = {.log_n = 8, .r = 8, .p = 1};
    return options;
  }
  // The file's path.
  std::string Backup(const std::string& file = "one.rfb") {
    const auto created = Create(*database_, Options(file), TestPassphrase());
    EXPECT_TRUE(created.has_value()) << created.error().message;
    return Path(file);
  }
  RestoreOptions Restoring(const std::string& folder = "restored") const {
    RestoreOptions options;
    options.state_folder = Path(folder);
    options.open_database = [](const std::string& server) {
      return store::OpenSqlite(server + "/ringfence.db");
    };
    options.now = TestTime(1000);
    return options;
  }

  store::Database& database() { return *database_; }
  const crypto::SigningKey& key() const { return key_; }
  const std::string& origin() const { return origin_; }
  audit::LogWriter& writer() { return *writer_; }

 private:
  void Fill() {
    ASSERT_TRUE(database_
                    ->Write([&](store::Connection& db) -> Status {
                      model::Node node;
                      node.name = "n1";
                      node.joined = node.last_seen = node.certificate_expires = TestTime(0);
                      node.witness_vkey = audit::VerifierKey("w/n1", 4, witness_.public_key());
                      RINGFENCE_TRY(store::PutNode(db, node));
                      using model::GpuState;
                      using model::LeaseState;
                      for (const model::Gpu& gpu :
                           {TestGpu("GPU-free", GpuState::kFree),
                            TestGpu("GPU-leased", GpuState::kLeased, "lease-active"),
                            TestGpu("GPU-bad", GpuState::kQuarantined, "lease-quarantined"),
                            TestGpu("GPU-lost", GpuState::kLost)}) {
                        RINGFENCE_TRY(store::PutGpu(db, gpu));
                      }
                      for (int i = 0; i <= static_cast<int>(LeaseState::kQuarantined); ++i) {
                        const auto state = static_cast<LeaseState>(i);
                        RINGFENCE_TRY(store::InsertLease(
                            db, TestLease("lease-" + std::string(Name(state)), state)));
                      }
                      RINGFENCE_TRY(store::PutToken(
                          db, {"t-good", "alice", TestTime(0), TestTime(1'000'000), "", "", ""}));
                      RINGFENCE_TRY(store::PutToken(
                          db, {"t-old", "alice", TestTime(0), TestTime(10), "", "", ""}));
                      RINGFENCE_TRY(
                          store::InsertJoinToken(db, {"join", "n2", "half", TestTime(1'000'000)}));
                      RINGFENCE_TRY(store::AppendOutput(db, "lease-active", 1,
                                                        {{false, Bytes(100'000, std::byte{'o'})}},
                                                        TestTime(0)));
                      return store::KeepAnswer(db, "alice", "k", {"d", 201, "{}"}, TestTime(0));
                    })
                    .has_value());
  }

  os::TempFolder folder_ = os::TempFolder::Create("ringfence-backup-test").value();
  crypto::SigningKey key_ = crypto::SigningKey::Generate();
  crypto::SigningKey witness_ = crypto::SigningKey::Generate();
  std::string origin_ = "ringfence.test/log";
  std::unique_ptr<store::Database> database_;
  std::unique_ptr<audit::LogWriter> writer_;
  std::optional<store::LogTurn> turn_;
};

}  // namespace ringfence::backup
