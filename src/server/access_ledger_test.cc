// Goal: uses are counted once each, bounded, given to the binding that decided, and kept with since
// when each binding is there. Method: the sample policy, a ledger and a database in a file.

#include "server/access_ledger.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "crypto/random.h"
#include "store/access_records.h"

namespace ringfence::server {
namespace {

using policy::Action;

Timestamp At(std::int64_t millis) { return Timestamp(Milliseconds(millis)); }
model::TenantPath Tenant(const std::string& text) {
  return model::TenantPath::Create(text).value();
}

std::shared_ptr<const policy::Policy> Sample() {
  return policy::Policy::Load(std::string(RINGFENCE_SOURCE_DIR) + "/content/sample-policy").value();
}

TEST(AccessLedgerTest, CountsEachUseOnceAndGivesBackWhatWasNotWritten) {
  AccessLedger ledger;
  ledger.Used("alice", Action::kLeaseRead, Tenant("acme/research"), At(5));
  ledger.Used("alice", Action::kLeaseRead, Tenant("acme/research"), At(9));
  ledger.Used("alice", Action::kNodeRead, Tenant("acme/research"), At(7));
  const auto uses = ledger.Take();
  ASSERT_EQ(uses.size(), 2U);
  EXPECT_EQ(uses[0].count, 2);
  EXPECT_EQ(uses[0].first, At(5));
  EXPECT_EQ(uses[0].last, At(9));
  EXPECT_EQ(uses[1].tenant, "/") << "not about a tenant";
  EXPECT_TRUE(ledger.Take().empty());
  ledger.Used("alice", Action::kLeaseRead, Tenant("acme/research"), At(11));
  ledger.Return(uses);
  const auto again = ledger.Take();
  ASSERT_EQ(again.size(), 2U);
  EXPECT_EQ(again[0].count, 3);
  EXPECT_EQ(again[0].first, At(5));
  EXPECT_EQ(again[0].last, At(11));
}

TEST(AccessLedgerTest, IsBounded) {
  AccessLedger ledger;
  for (std::size_t i = 0; i < kUsesCollectedMax + 3; ++i) {
    ledger.Used("p" + std::to_string(i), Action::kNodeRead, model::TenantPath::Root(), At(1));
  }
  EXPECT_EQ(ledger.not_kept(), 3U);
  EXPECT_EQ(ledger.Take().size(), kUsesCollectedMax);
}

TEST(AccessLedgerTest, AUseBelongsToTheNearestBindingThatAllowsIt) {
  const auto policy = Sample();
  const std::vector<store::AccessUse> uses = {
      {"alice@acme.example", "lease.request", "acme/research/vision", At(1), At(2), 3},
      {"alice@acme.example", "lease.request", "globex", At(1), At(2), 1},
      {"alice@acme.example", "no.such", "/", At(1), At(2), 1},
      {"gone@acme.example", "lease.read", "acme", At(1), At(2), 1},
      {"admin", "policy.apply", "/", At(1), At(2), 4},
  };
  std::int64_t counted = 0;
  for (const BindingUse& one : UsesByBinding(*policy, uses)) {
    for (const store::AccessUse& use : one.uses) {
      EXPECT_EQ(use.principal, one.binding.principal);
      EXPECT_TRUE(
          policy
              ->Decide({use.principal,
                        use.action == "policy.apply" ? Action::kPolicyApply : Action::kLeaseRequest,
                        use.tenant == "/" ? model::TenantPath::Root() : Tenant(use.tenant)})
              .allowed);
      counted += use.count;
    }
  }
  EXPECT_EQ(counted, 7);
}

TEST(AccessLedgerTest, ABindingThatStaysKeepsItsVersion) {
  const auto policy = Sample();
  const std::string first = NextGrants(*policy, "", 1);
  EXPECT_EQ(NextGrants(*policy, first, 2), first);
  auto files = policy->files();
  files["more.yaml"] =
      "apiVersion: ringfence.dev/v1\nkind: Binding\nmetadata:\n  name: more\nspec:\n"
      "  principal: alice@acme.example\n  role: auditor\n  tenant: acme\n";
  const auto parsed = policy::Policy::Parse(files);
  ASSERT_TRUE(parsed.has_value()) << parsed.error().message;
  std::vector<BindingUse> bindings = UsesByBinding(**parsed, {});
  AddGrants(bindings, NextGrants(**parsed, first, 2));
  for (const BindingUse& one : bindings) {
    EXPECT_EQ(one.granted, one.binding.source.file == "more.yaml" ? 2 : 1);
  }
}

TEST(AccessLedgerTest, TheDatabaseAddsUpAndForgetsTheLongestUnused) {
  const auto path = std::filesystem::temp_directory_path() / crypto::RandomId("uses");
  {
    const auto database = store::OpenSqlite(path).value();
    std::vector<store::AccessUse> listed;
    const Status done = database->Write([&](store::Connection& db) -> Status {
      RINGFENCE_TRY(store::AddAccessUses(db, {{"a", "x.y", "/", At(5), At(9), 2}}));
      RINGFENCE_TRY(store::AddAccessUses(db, {{"a", "x.y", "/", At(1), At(7), 1}}));
      RINGFENCE_ASSIGN(listed, store::ListAccessUses(db, "a"));
      return {};
    });
    ASSERT_TRUE(done.has_value()) << done.error().message;
    ASSERT_EQ(listed.size(), 1U);
    EXPECT_EQ(listed[0].count, 3);
    EXPECT_EQ(listed[0].last, At(9));
    const Status more = database->Write([&](store::Connection& db) -> Status {
      RINGFENCE_TRY(store::AddAccessUses(
          db, {{"b", "x.y", "/", At(20), At(20), 1}, {"c", "x.y", "/", At(30), At(30), 1}}, 2));
      RINGFENCE_ASSIGN(listed, store::ListAccessUses(db, ""));
      return {};
    });
    ASSERT_TRUE(more.has_value()) << more.error().message;
    ASSERT_EQ(listed.size(), 2U);
    EXPECT_EQ(listed[0].principal, "b");
  }
  for (const char* const end : {"", "-wal", "-shm"}) {
    std::filesystem::remove(path.string() + end);
  }
}

}  // namespace
}  // namespace ringfence::server
