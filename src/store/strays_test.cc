// Goal: what is known of a node's unwanted boxes is what was last said, and of that node alone.
// Method: each change, on SQLite and on PostgreSQL; beside facts of others.

#include "store/strays.h"

#include <gtest/gtest.h>

#include "os/self.h"
#include "store/harness_test.h"
#include "store/shared_records.h"

namespace ringfence::store {
namespace {

TEST(StraysTest, AreWhatWasLastSaid) {
  const auto folder = os::TempFolder::Create("ringfence-strays").value();
  for (const std::string& where : {folder.path() + "/a.db", NewPostgresDatabase()}) {
    const auto database = Open(where).value();
    const Status worked = database->Write([](Connection& db) -> Status {
      RINGFENCE_TRY(SettleFact(db, "keys", "mine"));
      EXPECT_EQ(GetStrays(db, "n1").value(), Strays());
      const Strays not_known{.held = true, .to_end = {}};
      const Strays two{.held = true, .to_end = {"lease-a", "lease-b"}};
      for (const Strays& strays : {not_known, two, two, not_known, two}) {
        RINGFENCE_TRY(SetStrays(db, "n1", strays));
        EXPECT_EQ(GetStrays(db, "n1").value(), strays);
        EXPECT_EQ(GetStrays(db, "n").value(), Strays());
      }
      RINGFENCE_TRY(SetStrays(db, "n1", {}));
      EXPECT_EQ(GetStrays(db, "n1").value(), Strays());
      RINGFENCE_TRY(SetStrays(db, "n1", {}));
      EXPECT_EQ(SettleFact(db, "keys", "other").value(), "mine");
      return {};
    });
    EXPECT_TRUE(worked.has_value()) << worked.error().message;
  }
}

}  // namespace
}  // namespace ringfence::store
