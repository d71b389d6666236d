// Goal: the shipped mapping makes of each kind of entry what docs/formats/events.md says, with its
// lease, and never what may be a secret; alerts count and keep what they should.
// Method: entries and leases made by hand; alerts written and read again.

#include "detect/live_event.h"

#include <gtest/gtest.h>

#include <fstream>
#include <sstream>

#include "detect/alert.h"

namespace ringfence::detect {
namespace {

EventMapping Shipped() {
  const std::string file = std::string(RINGFENCE_SOURCE_DIR) + "/content/mappings/events.json";
  std::ostringstream text;
  text << std::ifstream(file).rdbuf();
  auto mapping = EventMapping::Read(text.str(), file);
  EXPECT_TRUE(mapping.has_value()) << mapping.error().message;
  return std::move(mapping).value();
}

audit::Entry EntryOf(std::string_view action) {
  audit::Entry entry;
  entry.time = Timestamp(Milliseconds(1'790'000'060'000));
  entry.id = "a-1";
  entry.actor = {"node-1", "node", "fingerprint", "192.0.2.4"};
  entry.action = action;
  entry.tenant = "acme/research";
  entry.lease = "lease-1";
  entry.node = "node-1";
  entry.gpus = {"GPU-1", "GPU-2"};
  entry.result = "ok";
  return entry;
}

model::Lease LeaseOf() {
  model::Lease lease;
  lease.id = "lease-1";
  lease.principal = "ann";
  lease.request.tenant = model::TenantPath::Create("acme/research").value();
  lease.request.command = {"/usr/bin/xmrig", "-o", "pool"};
  lease.request.environment = {{"LD_PRELOAD", "./x.so"}, {"PASSWORD", "secret"}};
  lease.started = Timestamp(Milliseconds(1'790'000'000'000));
  lease.outcome = "signalled";
  lease.denied = model::Denied{3, 180, {{"203.0.113.9", "tcp", 3333, 2}, {"::1", "udp", 53, 1}}};
  return lease;
}

std::string At(const LiveEvent& event, std::string_view path) {
  const auto texts = TextsAt(Json(event.json), path);
  return texts.empty() ? "" : texts.front();
}

TEST(EventMappingTest, AJobsEndIsSeveralEventsOfItsLease) {
  const EventMapping mapping = Shipped();
  audit::Entry entry = EntryOf("lease.job_end");
  entry.detail = {{"exit_code", 139}, {"outcome", "signalled"}};
  ASSERT_TRUE(mapping.NeedsLease(entry.action));
  const model::Lease lease = LeaseOf();
  const auto events = mapping.FromAudit(7, entry, &lease);
  ASSERT_EQ(events.size(), 5U) << "api, lease, box and two flows";
  EXPECT_EQ(events[0].log, "api");
  EXPECT_EQ(events[0].principal, "node-1");
  EXPECT_EQ(At(events[0], "unmapped.exit_code"), "139");
  EXPECT_EQ(At(events[1], "lease.duration_s"), "60");
  EXPECT_EQ(At(events[1], "lease.id"), "lease-1");
  EXPECT_EQ(At(events[2], "exit.signal"), "11");
  EXPECT_EQ(At(events[2], "process.file.name"), "xmrig");
  EXPECT_EQ(At(events[3], "dst_endpoint.port"), "3333");
  EXPECT_EQ(At(events[3], "disposition"), "Blocked");
  EXPECT_EQ(At(events[4], "dst_endpoint.ip"), "::1");
  for (std::size_t i = 1; i < events.size(); ++i) {
    EXPECT_EQ(events[i].principal, "ann") << "who was on the lease, not who told of it";
    EXPECT_EQ(At(events[i], "actor.session.token_id"), "");
    EXPECT_EQ(At(events[i], "metadata.uid"), "audit-7-" + std::to_string(i));
    EXPECT_EQ(TextsAt(Json(events[i].json), "gpu.uuid").size(), 2U);
  }
  EXPECT_EQ(mapping.FromAudit(7, entry, nullptr).size(), 3U) << "without the record, what is left";
}

TEST(EventMappingTest, OfTheEnvironmentOnlyTheLoadersPartIsTold) {
  const model::Lease lease = LeaseOf();
  for (LiveEvent& event : Shipped().FromAudit(1, EntryOf("lease.start"), &lease)) {
    const std::string text = event.Text(5);
    EXPECT_EQ(text.find("secret"), std::string::npos) << text;
    EXPECT_EQ(text.find("LD_PRELOAD=./x.so") != std::string::npos, event.log == "box") << text;
  }
}

TEST(EventMappingTest, ADenialAndAnyUnknownActionAreEventsOfTheApi) {
  audit::Entry entry = EntryOf("something.new");
  entry.decision = "deny";
  const auto events = Shipped().FromAudit(1, entry, nullptr);
  ASSERT_EQ(events.size(), 1U);
  EXPECT_EQ(At(events[0], "decision"), "deny");
  EXPECT_EQ(At(events[0], "status"), "Failure");
  EXPECT_EQ(At(events[0], "class_uid"), "6003");
}

TEST(EventMappingTest, WhatIsNoMappingIsRefusedWithItsPlace) {
  const auto error = [](std::string_view text) {
    const auto read = EventMapping::Read(text, "m.json");
    return read.has_value() ? std::string() : read.error().message + " " + read.error().field;
  };
  EXPECT_NE(error("{").find("m.json"), std::string::npos);
  EXPECT_NE(error(R"({"name":"x","classes":{},"events":[{"action":"*","log":"a","class":5}]})")
                .find("events[0].class"),
            std::string::npos);
  const std::string head = R"({"name":"x","classes":{"5":{"name":"n","category":1}},"events":[)";
  EXPECT_NE(error(head + R"({"action":"*","log":"a","class":5,"typo":1}]})").find("typo"),
            std::string::npos);
  EXPECT_NE(
      error(head + R"({"action":"*","log":"a","class":5,"severity":"huge"}]})").find("severity"),
      std::string::npos);
}

TEST(AlertTest, CountsKeepsTheFirstAndTheLastEventsAndReadsBack) {
  Match match;
  match.rule = "r";
  match.title = "t";
  match.lease = "lease-1";
  match.group = {{"lease.id", "lease-1"}};
  match.severity = Severity::kHigh;
  Alert alert;
  alert.id = "alert-1";
  for (int i = 0; i < 100; ++i) {
    match.time = Timestamp(Milliseconds(1000 + i));
    const Json event(JsonObject{{"metadata", JsonObject{{"sequence", i}}}});
    alert.Add(match, {event, event}, Timestamp(Milliseconds(5000 + i)));
  }
  EXPECT_EQ(alert.count, 100U);
  ASSERT_EQ(alert.events.size(), kAlertEventsMax);
  EXPECT_EQ(TextsAt(alert.events.front(), "metadata.sequence").at(0), "0");
  EXPECT_EQ(TextsAt(alert.events.back(), "metadata.sequence").at(0), "99");
  const Json json(AlertToJson(alert));
  const auto back = AlertFromJson(ParseJson(CanonicalJson(json), kAlertJsonBytesMax).value());
  ASSERT_TRUE(back.has_value()) << back.error().message;
  EXPECT_EQ(CanonicalJson(AlertToJson(*back)), CanonicalJson(json));
  EXPECT_EQ(back->match.What(), match.What());
}

TEST(AlertTest, ASilenceTakesMatchesUntilItEndsAndNoLonger) {
  Alert alert;
  const Timestamp now = Timestamp(Milliseconds(1'790'000'000'000));
  alert.Add({}, {}, now);
  EXPECT_TRUE(alert.Takes(now + kAlertWindow));
  EXPECT_FALSE(alert.Takes(now + kAlertWindow + Milliseconds(1)));
  alert.status = AlertStatus::kSilenced;
  alert.until = now + kAlertWindow * 5;
  EXPECT_TRUE(alert.Takes(now + kAlertWindow * 4));
  EXPECT_FALSE(alert.Takes(now + kAlertWindow * 5));
}

}  // namespace
}  // namespace ringfence::detect
