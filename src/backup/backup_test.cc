// Goal: what a backup holds is what was there at one moment; it is verified before it has a name;
// restored, it is the same again, doubted where it must be, or nothing is there at all.
// Method: a real database, log and folders; backups while entries are added; damaged and cut;
// checkpoints of before, after and of another log; restores that fail at each step.

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <thread>

#include "audit/verify.h"
#include "backup/test_support.h"
#include "os/file_owner.h"
#include "store/harness_test.h"

namespace ringfence::backup {
namespace {

Result<CheckReport> CheckFile(const std::string& path,
                              const std::vector<KnownCheckpoint>& known = {}) {
  RINGFENCE_ASSIGN(SealedReader reader, SealedReader::Open(path, TestPassphrase()));
  return Check(reader, known, nullptr);
}

std::vector<store::Row> RowsOf(store::Database& database, std::string_view table) {
  std::vector<store::Row> rows;
  EXPECT_TRUE(database
                  .Read([&](store::Connection& db) {
                    return store::ForEachRow(db, *store::FindTable(table),
                                             [&](const store::Row& row) -> Status {
                                               rows.push_back(row);
                                               return {};
                                             });
                  })
                  .has_value());
  return rows;
}

// Databases sort text each in their own way.
std::vector<store::Row> Sorted(std::vector<store::Row> rows) {
  std::sort(rows.begin(), rows.end());
  return rows;
}

std::vector<std::string> Names(const std::string& folder) { return os::ListDir(folder).value(); }

TEST(BackupTest, HoldsWhatIsThere) {
  TestState state;
  state.AddEntries(7);  // acknowledged, not proven
  const auto created = Create(state.database(), state.Options(), TestPassphrase());
  ASSERT_TRUE(created.has_value()) << created.error().message;
  EXPECT_EQ(created->manifest.entries, 307U);
  EXPECT_EQ(created->manifest.log_size, 300U);
  EXPECT_EQ(created->manifest.about.origin, state.origin());
  EXPECT_EQ(os::FileBytes(state.Path("one.rfb")).value(), created->file_bytes);
  EXPECT_EQ(os::OwnerOf(state.Path("one.rfb"))->mode, 0600U);
  const auto report = CheckFile(state.Path("one.rfb"));
  ASSERT_TRUE(report.has_value()) << report.error().message;
  EXPECT_TRUE(report->ok) << (report->problems.empty() ? "" : report->problems[0]);
  EXPECT_EQ(report->manifest.parts, created->manifest.parts);
  ASSERT_EQ(report->witnesses.size(), 1U);
  EXPECT_TRUE(report->witnesses[0].starts_with("w/n1 at "));
}

TEST(BackupTest, OutputCanBeLeftOut) {
  TestState state(5);
  CreateOptions options = state.Options();
  options.with_output = false;
  const auto created = Create(state.database(), options, TestPassphrase());
  ASSERT_TRUE(created.has_value()) << created.error().message;
  EXPECT_LT(created->file_bytes, 50'000U);
  auto reader = SealedReader::Open(options.file, TestPassphrase()).value();
  ASSERT_TRUE(Restore(reader, state.Restoring()).has_value());
  const auto database = store::OpenSqlite(state.Path("restored/server/ringfence.db")).value();
  EXPECT_TRUE(RowsOf(*database, "output_chunks").empty());
  EXPECT_FALSE(RowsOf(*database, "leases").empty());
}

TEST(BackupTest, IsNeverWrittenOver) {
  TestState state(10);
  state.Write("one.rfb", "mine");
  const auto created = Create(state.database(), state.Options(), TestPassphrase());
  ASSERT_FALSE(created.has_value());
  EXPECT_EQ(created.error().code, Code::kConflict);
  EXPECT_EQ(os::ReadText(state.Path("one.rfb"), 100).value(), "mine");
}

TEST(BackupTest, OfAStateThatIsNotSoundGetsNoName) {
  TestState state(10);
  ASSERT_TRUE(state.database()
                  .Write([](store::Connection& db) -> Status {
                    RINGFENCE_TRY(
                        db.Run("UPDATE audit SET entry = (SELECT entry FROM audit WHERE "
                               "seq = 4) WHERE seq = 5",
                               {}));
                    return {};
                  })
                  .has_value());
  const std::vector<std::string> before = Names(state.Path("."));
  const auto created = Create(state.database(), state.Options(), TestPassphrase());
  ASSERT_FALSE(created.has_value());
  EXPECT_EQ(created.error().code, Code::kCorrupt) << created.error().message;
  EXPECT_EQ(Names(state.Path(".")), before) << "something was left behind";
  ASSERT_TRUE(state.database()
                  .Write([](store::Connection& db) -> Status {
                    RINGFENCE_TRY(db.Run("DELETE FROM audit WHERE seq = 5", {}));
                    return {};
                  })
                  .has_value());
  EXPECT_FALSE(Create(state.database(), state.Options(), TestPassphrase()).has_value());
}

TEST(BackupTest, IsOfOneMomentWhileTheServerWorks) {
  TestState state(50);
  std::jthread server([&](const std::stop_token& stop) {
    while (!stop.stop_requested()) {
      state.AddEntries(20);
      state.Prove();
    }
  });
  for (int i = 0; i < 8; ++i) {
    const std::string file = "busy-" + std::to_string(i) + ".rfb";
    const auto created = Create(state.database(), state.Options(file), TestPassphrase());
    ASSERT_TRUE(created.has_value()) << created.error().message;  // it was read back and held
    EXPECT_GE(created->manifest.entries, created->manifest.log_size);
  }
}

TEST(BackupTest, DamageAndCutsAreRefused) {
  TestState state(40);
  const std::string path = state.Backup();
  const Bytes file = os::ReadFile(path, 1 << 24).value();
  for (std::size_t at = kHeaderBytes; at < file.size(); at += 307) {
    Bytes damaged = file;
    damaged[at] ^= std::byte{1} << (at % 8);
    ASSERT_TRUE(os::WriteFile(path, damaged).has_value());
    const auto report = CheckFile(path);
    ASSERT_FALSE(report.has_value()) << at;
    EXPECT_EQ(report.error().code, Code::kCorrupt);
  }
  for (std::size_t size = 0; size < file.size(); size += 997) {
    ASSERT_TRUE(os::WriteFile(path, ByteView(file).first(size)).has_value());
    ASSERT_FALSE(CheckFile(path).has_value()) << size;
  }
}

TEST(BackupTest, OlderThanAWitnessedCheckpointIsARollback) {
  TestState state(300);
  const std::string before = state.Checkpoint();
  state.AddEntries(5);
  state.Prove();
  const std::string path = state.Backup();
  const std::string same = state.Checkpoint();
  state.AddEntries(1);
  state.Prove();
  const std::string after = state.Checkpoint();
  const auto good = CheckFile(path, {{"before", before}, {"same", same}});
  ASSERT_TRUE(good.has_value() && good->ok);
  const auto rollback = CheckFile(path, {{"before", before}, {"after", after}});
  ASSERT_TRUE(rollback.has_value());
  EXPECT_FALSE(rollback->ok);
  EXPECT_TRUE(rollback->rollback);
  EXPECT_FALSE(rollback->fork);
  ASSERT_EQ(rollback->problems.size(), 1U);
  EXPECT_NE(rollback->problems[0].find("305 entries, but after signs 306"), std::string::npos)
      << rollback->problems[0];
}

TEST(BackupTest, EntriesNotYetProvenCountAgainstAWitness) {
  TestState state(300);
  state.AddEntries(9);
  const std::string path = state.Backup();  // 309 entries, 300 proven
  state.Prove();
  const auto report = CheckFile(path, {{"after", state.Checkpoint()}});
  ASSERT_TRUE(report.has_value());
  EXPECT_TRUE(report->ok) << "the log is a function of its entries, and they are all there";
}

TEST(BackupTest, AForkAndAStrangersCheckpointAreNamed) {
  TestState state(20);
  const std::string path = state.Backup();
  const std::string fork =
      audit::SignCheckpoint({state.origin(), {10, crypto::Sha256Stream().Finish()}}, state.key());
  const auto forked = CheckFile(path, {{"seen", fork}});
  ASSERT_TRUE(forked.has_value());
  EXPECT_TRUE(forked->fork);
  EXPECT_FALSE(forked->ok);
  const TestState other(5);
  const auto foreign = CheckFile(path, {{"other", other.Checkpoint()}});
  ASSERT_TRUE(foreign.has_value());
  EXPECT_FALSE(foreign->ok);
  EXPECT_NE(foreign->problems.at(0).find("other is not a checkpoint of this log"),
            std::string::npos);
}

TEST(RestoreTest, IsWhatWasBackedUp) {
  TestState state(300);
  state.AddEntries(3);
  const std::string path = state.Backup();
  auto reader = SealedReader::Open(path, TestPassphrase()).value();
  RestoreOptions options = state.Restoring();
  options.keep_tokens = true;
  const auto restored = Restore(reader, options);
  ASSERT_TRUE(restored.has_value()) << restored.error().message;
  const std::string folder = options.state_folder;
  EXPECT_EQ(Names(folder), (std::vector<std::string>{"policy", "server"}));
  EXPECT_EQ(Names(folder + "/server/keys"), (std::vector<std::string>{"grant.key", "log.key"}));
  EXPECT_EQ(os::OwnerOf(folder + "/server/keys/log.key")->mode, 0600U);
  EXPECT_EQ(os::OwnerOf(folder + "/server")->mode, 0700U);
  EXPECT_EQ(os::ReadText(folder + "/server/keys/grant.key", 100).value(), "grant secret");
  EXPECT_EQ(os::ReadText(folder + "/policy/teams/more.yaml", 100).value(), "two: 2\n");
  EXPECT_FALSE(os::Exists(folder + "/policy/.git"));
  EXPECT_EQ(os::ReadText(folder + "/server/log/checkpoint", 1 << 16).value(), state.Checkpoint())
      << "with its cosignatures";

  audit::VerifyOptions verify;
  verify.folder = folder + "/server/log";
  verify.vkeys = {audit::VerifierKey(state.origin(), 1, state.key().public_key())};
  verify.earlier_checkpoints = {state.Checkpoint()};
  const auto report = audit::VerifyLog(verify);
  ASSERT_TRUE(report.has_value());
  EXPECT_TRUE(report->ok) << (report->problems.empty() ? "" : report->problems[0]);

  const auto database = store::OpenSqlite(folder + "/server/ringfence.db").value();
  for (const char* same : {"nodes", "receipts", "tokens", "idempotency", "policies", "cosignatures",
                           "outputs", "output_chunks", "log_head"}) {
    EXPECT_EQ(RowsOf(*database, same), RowsOf(state.database(), same)) << same;
  }
  std::vector<store::Row> audit = RowsOf(*database, "audit");
  ASSERT_EQ(audit.size(), 303 + 1 + 9) << "server.restored, and each open lease's end";
  EXPECT_EQ(store::TextAt(audit[303], 1), "server.restored");
  audit.resize(303);
  EXPECT_EQ(audit, RowsOf(state.database(), "audit"));
}

TEST(RestoreTest, DoubtsWhatItCannotKnow) {
  TestState state(5);
  auto reader = SealedReader::Open(state.Backup(), TestPassphrase()).value();
  const auto restored = Restore(reader, state.Restoring());
  ASSERT_TRUE(restored.has_value()) << restored.error().message;
  EXPECT_EQ(restored->distrusted.gpus, 2U);
  EXPECT_EQ(restored->distrusted.leases_ended, 9U);
  EXPECT_EQ(restored->distrusted.tokens_revoked, 1U);
  EXPECT_EQ(restored->distrusted.join_tokens_dropped, 1U);
  const auto database = store::OpenSqlite(state.Path("restored/server/ringfence.db")).value();
  const Status read = database->Read([](store::Connection& db) -> Status {
    RINGFENCE_ASSIGN(const auto gpus, store::ListGpus(db));
    for (const model::Gpu& gpu : gpus) {
      EXPECT_NE(gpu.state, model::GpuState::kFree) << gpu.uuid;
      EXPECT_NE(gpu.state, model::GpuState::kLeased) << gpu.uuid;
      EXPECT_TRUE(gpu.lease.empty() && gpu.tenant.empty()) << gpu.uuid;
      if (gpu.state == model::GpuState::kDirty) {
        EXPECT_EQ(gpu.dirty_since, TestTime(1000)) << "an older receipt says nothing";
      }
    }
    RINGFENCE_ASSIGN(const store::Strays strays, store::GetStrays(db, "n1"));
    EXPECT_TRUE(strays.held) << "no scrub before the node has said what it holds";
    RINGFENCE_ASSIGN(const auto open, store::OpenLeases(db));
    EXPECT_TRUE(open.empty());
    RINGFENCE_ASSIGN(const model::Lease lease, store::GetLease(db, "lease-active"));
    EXPECT_EQ(lease.outcome, "failed");
    EXPECT_NE(lease.reason.find("restored from a backup"), std::string::npos);
    EXPECT_TRUE(lease.request.environment.at(0).second.empty());
    RINGFENCE_ASSIGN(const store::Token token, store::GetToken(db, "t-good"));
    EXPECT_EQ(token.revoked, FormatTime(TestTime(1000)));
    EXPECT_FALSE(store::TakeJoinToken(db, "join").has_value());
    store::AuditFilter filter;
    filter.action = "server.restored";
    RINGFENCE_ASSIGN(const auto rows, store::ListAudit(db, filter));
    EXPECT_EQ(rows.size(), 1U);
    RINGFENCE_ASSIGN(const audit::Entry entry, audit::Entry::Parse(rows.at(0).entry));
    EXPECT_EQ(entry.detail.at("leases_ended").as_int64(), 9);
    EXPECT_EQ(entry.detail.at("gpus_to_scrub").as_int64(), 2);
    EXPECT_EQ(entry.detail.at("backup_entries").as_int64(), 5);
    return {};
  });
  EXPECT_TRUE(read.has_value()) << read.error().message;
}

// From SQLite to PostgreSQL and back: a backup does not know what it came from.
TEST(RestoreTest, OntoAnotherKindOfDatabase) {
  TestState state(300);
  state.AddEntries(3);
  auto reader = SealedReader::Open(state.Backup(), TestPassphrase()).value();
  const std::string url = store::NewPostgresDatabase();
  RestoreOptions over = state.Restoring("over");
  over.keep_tokens = true;
  over.open_database = [&](const std::string&) { return store::Open(url); };
  over.database_apart = true;
  // What fails when every record is written leaves nothing, there or here.
  RestoreOptions failing = over;
  failing.state_folder = state.Path("failing");
  std::filesystem::create_directories(state.Path("failing"));
  std::filesystem::create_directories(state.Path("failing/.restoring-killed/server/keys"));
  std::filesystem::create_directories(state.Path("elsewhere"));
  std::filesystem::create_symlink(state.Path("elsewhere"), state.Path("failing/server"));
  EXPECT_FALSE(Restore(reader, failing).has_value());
  EXPECT_EQ(Names(state.Path("failing")), std::vector<std::string>{"server"});
  const auto there = Restore(reader, over);
  ASSERT_TRUE(there.has_value()) << there.error().message;
  EXPECT_FALSE(os::Exists(state.Path("over/server/ringfence.db")));
  const auto postgres = store::Open(url).value();
  EXPECT_FALSE(Restore(reader,
                       [&] {
                         RestoreOptions again = over;
                         again.state_folder = state.Path("again");
                         return again;
                       }())
                   .has_value())
      << "it is not empty any more";
  EXPECT_FALSE(os::Exists(state.Path("again")));

  CreateOptions second = state.Options("second.rfb");
  second.server_folder = state.Path("over/server");
  second.policy_folder = state.Path("over/policy");
  const auto created = Create(*postgres, second, TestPassphrase());
  ASSERT_TRUE(created.has_value()) << created.error().message;
  auto back_reader = SealedReader::Open(second.file, TestPassphrase()).value();
  RestoreOptions back = state.Restoring("back");
  back.keep_tokens = true;
  const auto here = Restore(back_reader, back);
  ASSERT_TRUE(here.has_value()) << here.error().message;
  EXPECT_EQ(here->distrusted.leases_ended, 0U) << "they ended by the first";
  const auto sqlite = store::Open(state.Path("back/server/ringfence.db")).value();
  for (const char* same : {"nodes", "receipts", "tokens", "leases", "idempotency", "policies",
                           "cosignatures", "outputs", "output_chunks", "facts", "log_head"}) {
    EXPECT_EQ(Sorted(RowsOf(*sqlite, same)), Sorted(RowsOf(*postgres, same))) << same;
  }
  std::vector<store::Row> audit = RowsOf(*sqlite, "audit");
  ASSERT_EQ(audit.size(), 303U + 10 + 1);
  audit.resize(303);
  EXPECT_EQ(audit, RowsOf(state.database(), "audit"));
}

TEST(RestoreTest, OnlyWhereNoServersStateIs) {
  TestState state(5);
  auto reader = SealedReader::Open(state.Backup(), TestPassphrase()).value();
  for (const std::string& name : {std::string("server"), std::string("policy")}) {
    const std::string folder = "filled-" + name;
    ASSERT_TRUE(os::MakeDirs(state.Path(folder + "/" + name)).has_value());
    state.Write(folder + "/" + name + "/file", "mine");
    const auto filled = Restore(reader, state.Restoring(folder));
    ASSERT_FALSE(filled.has_value());
    EXPECT_EQ(filled.error().code, Code::kConflict);
    EXPECT_EQ(Names(state.Path(folder)), std::vector<std::string>{name});
    EXPECT_EQ(Names(state.Path(folder + "/" + name)), std::vector<std::string>{"file"});
  }
  // As a package leaves it, with a node beside.
  ASSERT_TRUE(os::MakeDirs(state.Path("empty/server")).has_value());
  ASSERT_TRUE(os::MakeDirs(state.Path("empty/node")).has_value());
  ASSERT_TRUE(Restore(reader, state.Restoring("empty")).has_value());
  EXPECT_EQ(Names(state.Path("empty")), (std::vector<std::string>{"node", "policy", "server"}));
}

TEST(RestoreTest, AllOrNothing) {
  TestState state(5);
  const std::string path = state.Backup();
  auto reader = SealedReader::Open(path, TestPassphrase()).value();
  const std::vector<std::string> before = Names(state.Path("."));
  RestoreOptions no_database = state.Restoring();
  no_database.open_database = [](const std::string&) -> Result<std::unique_ptr<store::Database>> {
    return Error{Code::kUnavailable, "no database"};
  };
  EXPECT_FALSE(Restore(reader, no_database).has_value());
  EXPECT_EQ(Names(state.Path(".")), before);
  // A database with something in it is never mixed with a backup.
  RestoreOptions filled = state.Restoring();
  filled.open_database = [&](const std::string&) {
    return store::OpenSqlite(state.Path("server/ringfence.db"));
  };
  const auto refused = Restore(reader, filled);
  ASSERT_FALSE(refused.has_value());
  EXPECT_EQ(refused.error().code, Code::kConflict) << refused.error().message;
  EXPECT_EQ(Names(state.Path(".")), before);
  // Damaged between the check and the restore.
  Bytes file = os::ReadFile(path, 1 << 24).value();
  file[file.size() - 20] ^= std::byte{1};
  ASSERT_TRUE(os::WriteFile(path, file).has_value());
  auto damaged = SealedReader::Open(path, TestPassphrase()).value();
  EXPECT_FALSE(Restore(damaged, state.Restoring()).has_value());
  EXPECT_EQ(Names(state.Path(".")), before);
}

}  // namespace
}  // namespace ringfence::backup
