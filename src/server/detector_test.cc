// Goal: each audit entry becomes its events once and each match its alert once, whatever dies when;
// silence, floods and old events are seen, bounded and told. Method: a detector on a real database
// with a clock of the test's; detectors that are dropped and started anew, and rules that change.

#include "server/detector.h"

#include <gtest/gtest.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <set>

#include "crypto/random.h"
#include "detect/alert.h"
#include "server/core.h"
#include "store/intel_records.h"

namespace ringfence::server {
namespace {

using std::chrono_literals::operator""ms;
using std::chrono_literals::operator""s;
using std::chrono_literals::operator""h;

const std::string kContent = std::string(RINGFENCE_SOURCE_DIR) + "/content";

class HandClock final : public Clock {
 public:
  Timestamp Now() const override { return Timestamp(Milliseconds(now_.load())); }
  void Move(Milliseconds by) { now_ += by.count(); }

 private:
  std::atomic<std::int64_t> now_{1'790'000'000'000};
};

class DetectorTest : public testing::Test {
 protected:
  DetectorTest() : folder_(std::filesystem::temp_directory_path() / crypto::RandomId("detector")) {
    std::filesystem::create_directories(folder_ / "rules");
    options_.mapping = kContent + "/mappings/events.json";
    options_.observables = kContent + "/mappings/ocsf.json";
    options_.rules = {kContent + "/pipelines/ringfence.yml",
                      {kContent + "/rules/gpu", folder_ / "rules"}};
    Core::Parts parts{store::OpenSqlite(folder_ / "db").value(),
                      OpenKeys({folder_ / "keys", {"localhost"}, {}, {}}, clock_.Now()).value(),
                      kContent + "/sample-policy",
                      policy::Policy::Load(kContent + "/sample-policy").value()};
    core_ = std::make_unique<Core>(std::move(parts), clock_);
    core_->waiters().SetLater([](Milliseconds, const std::function<void()>&) {});
    core_->SetSequencer(Sequencer::Start(core_->database(),
                                         {folder_ / "log", "ringfence.dev/log/test", "s"},
                                         core_->keys().log, [] {})
                            .value());
    Start();
  }
  ~DetectorTest() override {
    core_.reset();
    std::filesystem::remove_all(folder_);
  }

  void Start() { core_->SetDetector(Detector::Start(*core_, options_).value()); }
  void Drop() { core_->SetDetector(nullptr); }

  // Denied requests of one principal, each an entry.
  void Deny(int count) {
    for (int i = 0; i < count; ++i) {
      audit::Entry entry =
          core_->NewEntry({"mallory", "user", "t-1", "198.51.100.7"}, "lease.request");
      entry.decision = "deny";
      entry.tenant = "acme/research";
      ASSERT_TRUE(core_->RecordAlone(entry).has_value());
    }
  }

  std::vector<store::EventRow> Events(const std::string& log) {
    std::vector<store::EventRow> rows;
    EXPECT_TRUE(core_->database()
                    .Read([&](store::Connection& db) -> Status {
                      store::EventFilter filter;
                      filter.log = log;
                      filter.limit = 10'000;
                      RINGFENCE_ASSIGN(rows, store::ListEvents(db, filter));
                      return {};
                    })
                    .has_value());
    return rows;
  }
  std::vector<detect::Alert> Alerts(std::string_view title) {
    std::vector<detect::Alert> alerts;
    EXPECT_TRUE(core_->database()
                    .Read([&](store::Connection& db) -> Status {
                      alerts.clear();
                      RINGFENCE_ASSIGN(const auto rows, store::ListAlerts(db, {}));
                      for (const store::AlertRow& row : rows) {
                        RINGFENCE_ASSIGN(const Json json, ParseJson(row.record, 1 << 22U));
                        RINGFENCE_ASSIGN(detect::Alert alert, detect::AlertFromJson(json));
                        if (alert.match.title == title) {
                          alerts.push_back(std::move(alert));
                        }
                      }
                      return {};
                    })
                    .has_value());
    return alerts;
  }
  template <typename Condition>
  bool Soon(const Condition& condition) {
    for (int i = 0; i < 3000; ++i) {
      if (condition()) {
        return true;
      }
      std::this_thread::sleep_for(10ms);
    }
    return false;
  }
  void WriteRule(const std::string& name, const std::string& detection) {
    std::ofstream(folder_ / "rules" / name)
        << "title: " << name << "\nlogsource: {product: ringfence, service: api}\ndetection:\n"
        << "    selection: {" << detection << "}\n    condition: selection\nlevel: low\n";
  }

  std::filesystem::path folder_;
  HandClock clock_;
  Detector::Options options_;
  std::unique_ptr<Core> core_;
};

TEST_F(DetectorTest, ADetectorThatIsDroppedLosesNothingAndTellsNothingTwice) {
  Deny(15);
  ASSERT_TRUE(Soon([&] { return Events("api").size() == 15; }));
  Drop();
  EXPECT_TRUE(Alerts("Many decisions denied to one principal").empty());
  Deny(4);  // while nobody looks
  Start();
  ASSERT_TRUE(Soon([&] { return Events("api").size() == 19; }));
  EXPECT_TRUE(Alerts("Many decisions denied to one principal").empty())
      << "nineteen are not twenty";
  Deny(1);
  ASSERT_TRUE(Soon([&] { return !Alerts("Many decisions denied to one principal").empty(); }))
      << "what was counted before the restart counts";
  Drop();
  Start();
  Deny(1);
  ASSERT_TRUE(Soon([&] { return Events("api").size() == 21; }));
  Drop();  // evaluates what is there first
  const auto alerts = Alerts("Many decisions denied to one principal");
  ASSERT_EQ(alerts.size(), 1U);
  EXPECT_EQ(alerts[0].count, 1U);
  EXPECT_EQ(alerts[0].match.principal, "mallory");
  EXPECT_EQ(alerts[0].match.tenant, "acme/research");
  EXPECT_EQ(alerts[0].events.size(), sigma::kMatchMembersMax);
  std::set<std::string> uids;
  for (const store::EventRow& row : Events("api")) {
    const Json json = ParseJson(row.event, 1 << 20U).value();
    uids.insert(detect::TextsAt(json, "metadata.uid").at(0));
    EXPECT_EQ(detect::TextsAt(json, "metadata.sequence").at(0), std::to_string(row.seq));
  }
  EXPECT_EQ(uids.size(), 21U);
}

TEST_F(DetectorTest, RulesAreReadAgainWithoutLosingAnEventAndBadOnesAreRefused) {
  Drop();
  WriteRule("one.yml", "decision: deny");
  Start();
  Deny(3);
  ASSERT_TRUE(Soon([&] { return !Alerts("one.yml").empty() && Alerts("one.yml")[0].count == 3; }));
  WriteRule("two.yml", "decision|nonsense: deny");
  ASSERT_TRUE(Soon([&] {
    core_->detector()->Wake();
    return !core_->detector()->health().rule_problems.empty();
  }));
  Deny(1);
  ASSERT_TRUE(Soon([&] { return Alerts("one.yml")[0].count == 4; })) << "the old rules go on";
  WriteRule("two.yml", "decision: deny");
  ASSERT_TRUE(Soon([&] {
    core_->detector()->Wake();
    return core_->detector()->health().rule_problems.empty();
  }));
  Deny(2);
  ASSERT_TRUE(Soon([&] { return !Alerts("two.yml").empty() && Alerts("two.yml")[0].count == 2; }));
  EXPECT_EQ(Alerts("one.yml")[0].count, 6U) << "each event once, with the old rules or the new";
}

TEST_F(DetectorTest, ASilentNodeIsSaidOnceAndWhenItIsBack) {
  model::Node node;
  node.name = "n1";
  ASSERT_TRUE(core_->database()
                  .Write([&](store::Connection& db) { return store::PutNode(db, node); })
                  .has_value());
  core_->SawNode("n1");
  clock_.Move(25s);
  ASSERT_TRUE(Soon([&] { return core_->detector()->health().rules > 0; }));
  EXPECT_TRUE(Events("node").empty()) << "nodes have a while after a start";
  clock_.Move(10s);
  ASSERT_TRUE(Soon([&] { return Events("node").size() == 1; }));
  ASSERT_TRUE(Soon([&] { return !Alerts("Node has gone quiet, or dropped events").empty(); }));
  Drop();
  Start();
  core_->SawNode("n1");
  ASSERT_TRUE(Soon([&] { return Events("node").size() == 2; })) << "and not silent once more";
  EXPECT_EQ(Alerts("Node has gone quiet, or dropped events").size(), 1U);
}

TEST_F(DetectorTest, AFeedIsHeldAgainstStoredEventsOnceAndAgainstNewOnes) {
  const std::string title = "Known-bad ip: 198.51.100.7";
  const auto import = [&](const std::string& upload, const std::string& more) {
    ASSERT_TRUE(core_->database()
                    .Write([&](store::Connection& db) -> Status {
                      store::IntelFeed feed{"f", upload, "f.txt", "admin", clock_.Now(), 1};
                      feed.indicators = 1;
                      RINGFENCE_TRY(store::PutIntelPart(
                          db, feed, 0,
                          R"({"indicators":[{"id":"f:1","kind":"ip","value":"198.51.100.7"})" +
                              more + "]}"));
                      return store::PutIntelFeed(db, feed);
                    })
                    .has_value());
  };
  const auto hunted = [&] {
    core_->detector()->Wake();
    bool done = false;
    EXPECT_TRUE(core_->database()
                    .Read([&](store::Connection& db) -> Status {
                      RINGFENCE_ASSIGN(const auto feeds, store::ListIntelFeeds(db));
                      done = feeds[0].hunt_until >= 0 && feeds[0].hunt_from == feeds[0].hunt_until;
                      return {};
                    })
                    .has_value());
    return done;
  };
  Deny(3);
  ASSERT_TRUE(Soon([&] { return Events("api").size() == 3; }));
  import("first", "");
  ASSERT_TRUE(Soon(hunted));
  ASSERT_EQ(Alerts(title).size(), 1U);
  EXPECT_EQ(Alerts(title)[0].count, 3U);
  Deny(1);
  ASSERT_TRUE(Soon([&] { return Alerts(title)[0].count == 4; }));
  import("second", R"(,{"id":"f:2","kind":"ip","value":"203.0.113.1"})");
  ASSERT_TRUE(Soon(hunted));
  EXPECT_EQ(Alerts(title)[0].count, 4U) << "what is not new in the feed is not hunted again";
  Drop();
  Start();
  Deny(1);
  ASSERT_TRUE(Soon([&] { return Alerts(title)[0].count == 5; })) << "nor after a restart";
}

TEST_F(DetectorTest, AFloodOfSignInsIsBoundedCountedAndHidesNobodyElse) {
  for (int i = 0; i < 5000; ++i) {
    core_->detector()->Saw({"198.51.100.9", "", "", "token_unknown"});
  }
  core_->detector()->Saw({"198.51.100.10", "ann", "t-9", "token_revoked"});
  ASSERT_TRUE(Soon([&] { return Events("authentication").size() >= 61; }));
  EXPECT_EQ(core_->detector()->health().not_kept, 5000U - 60U);
  ASSERT_TRUE(Soon([&] { return !Alerts("Revoked or expired token used").empty(); }));
  EXPECT_EQ(Alerts("Revoked or expired token used")[0].match.address, "198.51.100.10");
  clock_.Move(60s);
  ASSERT_TRUE(Soon([&] { return Events("authentication").size() == 62; }));
  const Json flood = ParseJson(Events("authentication").back().event, 1 << 20U).value();
  EXPECT_EQ(detect::TextsAt(flood, "count").at(0), "4940");
  EXPECT_EQ(detect::TextsAt(flood, "src_endpoint.ip").at(0), "198.51.100.9");
}

TEST_F(DetectorTest, OldEventsGoAndALaterMatchIsANewAlert) {
  WriteRule("any.yml", "decision: deny");
  Drop();
  options_.keep = 1h;
  Start();
  Deny(5);
  ASSERT_TRUE(Soon([&] { return !Alerts("any.yml").empty() && Alerts("any.yml")[0].count == 5; }));
  clock_.Move(2h);
  Drop();
  Start();  // tidies when it begins
  ASSERT_TRUE(Soon([&] { return Events("api").empty(); }));
  Deny(1);
  ASSERT_TRUE(Soon([&] { return Alerts("any.yml").size() == 2; }));
  EXPECT_EQ(Alerts("any.yml")[1].events.size(), 5U) << "an alert keeps its events";
}

}  // namespace
}  // namespace ringfence::server
