// Goal: of several servers on one database one publishes, another takes over when it is cut off,
// and whatever is cut when, there is one log: every checkpoint that anybody was shown is a prefix
// of it. Method: real sequencers with folders of their own on one real database, whose lines are
// cut for one of them at a time, all of it or its writes alone.

#include "server/sequencer.h"

#include <gtest/gtest.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "audit/note.h"
#include "crypto/random.h"
#include "store/records.h"

namespace ringfence::server {
namespace {

using std::chrono_literals::operator""ms;

const std::string kOrigin = "ringfence.dev/log/test";

// One server's line to the database.
class Line final : public store::Database {
 public:
  explicit Line(store::Database& real) : real_(real) {}
  Status Write(const std::function<Status(store::Connection&)>& work) override {
    return cut_writes || cut ? Down() : real_.Write(work);
  }
  Status Read(const std::function<Status(store::Connection&)>& work) override {
    return cut ? Down() : real_.Read(work);
  }
  void Announce(const std::string& /*topic*/) override {}
  void Listen(std::function<void(const std::string&)> /*listener*/) override {}

  std::atomic<bool> cut{false};
  std::atomic<bool> cut_writes{false};

 private:
  static Status Down() { return Error{Code::kUnavailable, "the line is cut"}; }
  store::Database& real_;
};

class SequencerTest : public testing::Test {
 protected:
  SequencerTest()
      : folder_(std::filesystem::temp_directory_path() /
                ("ringfence-sequencer-" + crypto::RandomId("t"))),
        key_(crypto::SigningKey::FromSeed(SecretBytes(Bytes(32, std::byte{7}))).value()) {
    std::filesystem::create_directories(folder_);
    database_ = store::OpenSqlite(folder_ / "db").value();
  }
  ~SequencerTest() override {
    database_.reset();
    std::filesystem::remove_all(folder_);
  }

  struct Server {
    Server(SequencerTest& test, std::string name, std::chrono::milliseconds patience = 300ms)
        : line(*test.database_) {
      sequencer =
          Sequencer::Start(line, {test.folder_ / name, kOrigin, name, /*shared=*/true, patience},
                           test.key_, [] {})
              .value();
    }
    Line line;
    std::unique_ptr<Sequencer> sequencer;
  };

  void Commit(int count) {
    ASSERT_TRUE(database_
                    ->Write([&](store::Connection& db) -> Status {
                      for (int i = 0; i < count; ++i) {
                        RINGFENCE_TRY(store::AppendAudit(
                            db, "a", "", ToBytes("entry " + std::to_string(++committed_))));
                      }
                      return {};
                    })
                    .has_value());
  }

  // All that was committed is in what this server shows.
  bool Shows(const Server& server) const {
    return server.sequencer->head().size == static_cast<std::uint64_t>(committed_);
  }
  template <typename Condition>
  static void Await(Condition condition) {
    for (int i = 0; i < 3000 && !condition(); ++i) {
      std::this_thread::sleep_for(10ms);
    }
    ASSERT_TRUE(condition());
  }

  void ExpectSame(const Server& a, const Server& b) {
    EXPECT_EQ(a.sequencer->published().note, b.sequencer->published().note);
    EXPECT_EQ(a.sequencer->head(), b.sequencer->head());
  }

  std::filesystem::path folder_;
  crypto::SigningKey key_;
  std::unique_ptr<store::Database> database_;
  int committed_ = 0;
};

TEST_F(SequencerTest, OnePublishesAndTheOtherFollows) {
  Server a(*this, "a");
  Await([&] { return a.sequencer->leads(); });
  Server b(*this, "b", 60000ms);
  for (int i = 0; i < 5; ++i) {
    Commit(40);
    Await([&] { return Shows(a) && Shows(b); });
    ExpectSame(a, b);
  }
  EXPECT_TRUE(a.sequencer->leads());
  EXPECT_FALSE(b.sequencer->leads());
}

TEST_F(SequencerTest, AServerThatComesLaterBuildsTheWholeLog) {
  Server a(*this, "a");
  Commit(700);
  Await([&] { return Shows(a); });
  Server b(*this, "b", 60000ms);
  Await([&] { return Shows(b); });
  ExpectSame(a, b);
}

TEST_F(SequencerTest, ACleanStopHandsTheTurnOnAtOnce) {
  auto a = std::make_unique<Server>(*this, "a");
  Await([&] { return a->sequencer->leads(); });
  Server b(*this, "b", 600000ms);
  Commit(3);
  a.reset();
  Await([&] { return b.sequencer->leads() && Shows(b); });
}

TEST_F(SequencerTest, CutOffWhileItLeadsItPublishesNothingAndFollowsAfterwards) {
  Server a(*this, "a", 60000ms);
  Await([&] { return a.sequencer->leads(); });
  Server b(*this, "b");
  Commit(10);
  Await([&] { return Shows(a) && Shows(b); });
  const std::string before = a.sequencer->published().note;
  a.line.cut = true;
  Commit(300);
  Await([&] { return b.sequencer->leads() && Shows(b); });
  Await([&] { return !a.sequencer->problem().empty(); });
  EXPECT_EQ(a.sequencer->published().note, before);
  a.line.cut = false;
  Await([&] { return Shows(a) && !a.sequencer->leads() && a.sequencer->problem().empty(); });
  ExpectSame(a, b);
}

// The worst moment: it has read the entries, built and signed, and cannot say so.
TEST_F(SequencerTest, WhatItSignedWithoutPublishingIsAPrefixOfWhatTheNextOnePublishes) {
  Server a(*this, "a", 60000ms);
  Await([&] { return a.sequencer->leads(); });
  Commit(10);
  Await([&] { return Shows(a); });
  const auto shown = a.sequencer->head();
  a.line.cut_writes = true;
  Commit(7);
  const audit::NamedKey key{kOrigin, 1, key_.public_key()};
  const auto signed_by_a = [&] {
    std::ifstream stream(folder_ / "a" / "checkpoint");
    const std::string note((std::istreambuf_iterator<char>(stream)), {});
    const auto checkpoint = audit::OpenCheckpoint(note, key);
    return checkpoint.has_value() ? checkpoint->head : audit::TreeHead();
  };
  audit::TreeHead unpublished;
  Await([&] {
    unpublished = signed_by_a();
    return unpublished.size > shown.size;
  });
  EXPECT_EQ(a.sequencer->head(), shown) << "shown to nobody";
  Server b(*this, "b");  // not before: it might have taken over before the other had signed
  Await([&] { return b.sequencer->leads(); });
  Commit(500);
  Await([&] { return Shows(b); });
  const auto proof =
      audit::ConsistencyProof(folder_ / "b", unpublished.size, b.sequencer->head().size);
  ASSERT_TRUE(proof.has_value());
  EXPECT_TRUE(audit::VerifyConsistency(unpublished, b.sequencer->head(), *proof).has_value());
  a.line.cut_writes = false;
  Await([&] { return Shows(a); });
  ExpectSame(a, b);
}

TEST_F(SequencerTest, TheTurnGoesToAndFroUnderLoadAndTheLogStaysOne) {
  Server a(*this, "a");
  Server b(*this, "b");
  for (int round = 0; round < 6; ++round) {
    Server& victim = a.sequencer->leads() ? a : b;
    Server& other = &victim == &a ? b : a;
    Commit(30);
    (round % 2 == 0 ? victim.line.cut : victim.line.cut_writes) = true;
    Commit(30);
    Await([&] { return other.sequencer->leads() && Shows(other); });
    victim.line.cut = false;
    victim.line.cut_writes = false;
    Await([&] { return Shows(victim); });
    ExpectSame(a, b);
  }
}

TEST_F(SequencerTest, RecordsThatWereChangedAreNotPublished) {
  Commit(10);
  {
    Server a(*this, "a");
    Await([&] { return Shows(a); });
  }
  ASSERT_TRUE(database_
                  ->Write([](store::Connection& db) -> Status {
                    RINGFENCE_TRY(
                        db.Run("UPDATE audit SET entry = $1 WHERE seq = 4", {ToBytes("other")}));
                    return {};
                  })
                  .has_value());
  Line line(*database_);
  const auto b = Sequencer::Start(line, {folder_ / "b", kOrigin, "b", true, 300ms}, key_, [] {});
  ASSERT_FALSE(b.has_value()) << "a server that builds the log anew comes to another root";
  EXPECT_EQ(b.error().code, Code::kCorrupt);
  ASSERT_TRUE(database_
                  ->Write([](store::Connection& db) -> Status {
                    RINGFENCE_TRY(db.Run("DELETE FROM audit WHERE seq >= 8", {}));
                    return {};
                  })
                  .has_value());
  const auto c = Sequencer::Start(line, {folder_ / "a", kOrigin, "c", true, 300ms}, key_, [] {});
  ASSERT_FALSE(c.has_value()) << "the log has more than the database";
  EXPECT_EQ(c.error().code, Code::kCorrupt);
}

TEST_F(SequencerTest, CosignaturesGivenToOneServerAreShownByAll) {
  Server a(*this, "a");
  Await([&] { return a.sequencer->leads(); });
  Server b(*this, "b", 60000ms);
  Commit(5);
  Await([&] { return Shows(a) && Shows(b); });
  const auto witness = crypto::SigningKey::FromSeed(SecretBytes(Bytes(32, std::byte{9}))).value();
  const std::string line =
      audit::Cosign(b.sequencer->published().note, "w", witness, Timestamp(Milliseconds(1000)));
  ASSERT_TRUE(b.sequencer->AddCosignature(b.sequencer->head(), "w", line).has_value());
  Await([&] { return a.sequencer->checkpoint().find(line) != std::string::npos; });
  EXPECT_EQ(a.sequencer->checkpoint(), b.sequencer->checkpoint());
}

// The log may grow between a witness's signature and our keeping it.
TEST_F(SequencerTest, ACosignatureIsShownWithTheCheckpointThatItSigns) {
  Server a(*this, "a");
  Commit(5);
  Await([&] { return a.sequencer->leads() && Shows(a); });
  const auto signed_one = a.sequencer->published();
  Commit(3);
  Await([&] { return Shows(a) && a.sequencer->head().size > signed_one.head.size; });
  const auto witness = crypto::SigningKey::FromSeed(SecretBytes(Bytes(32, std::byte{9}))).value();
  const std::string late =
      audit::Cosign(signed_one.note, "w", witness, Timestamp(Milliseconds(1000)));
  ASSERT_TRUE(a.sequencer->AddCosignature(signed_one.head, "w", late).has_value());
  const std::string timely =
      audit::Cosign(a.sequencer->published().note, "v", witness, Timestamp(Milliseconds(1000)));
  ASSERT_TRUE(a.sequencer->AddCosignature(a.sequencer->head(), "v", timely).has_value());
  EXPECT_EQ(a.sequencer->checkpoint(), a.sequencer->published().note + timely);
  std::vector<std::string> kept;
  ASSERT_TRUE(database_
                  ->Read([&](store::Connection& db) -> Status {
                    RINGFENCE_ASSIGN(
                        kept,
                        store::CosignaturesOf(db, static_cast<std::int64_t>(signed_one.head.size)));
                    return {};
                  })
                  .has_value());
  EXPECT_EQ(kept, std::vector<std::string>{late});
}

}  // namespace
}  // namespace ringfence::server
