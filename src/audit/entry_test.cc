// Goal: an entry has exactly one form; whatever is not that form is refused, with the field named.
// Method: write and read back, break each rule, flip every bit.

#include "audit/entry.h"

#include <gtest/gtest.h>

#include "audit/verify_json.h"

namespace ringfence::audit {
namespace {

Entry Good() {
  Entry entry;
  entry.time = Timestamp(std::chrono::milliseconds(1700000000123));
  entry.id = "op-7k3m9q2x4abc";
  entry.actor = {"alice@acme", "user", "token-1", "192.0.2.7"};
  entry.action = "lease.request";
  entry.tenant = "acme/research/vision";
  entry.lease = "lease-1";
  entry.node = "node-1";
  entry.gpus = {"GPU-0", "GPU-1"};
  entry.decision = "allow";
  entry.decision_reason = "role developer at acme/research";
  entry.result = "ok";
  entry.detail = {{"gpus", 2}, {"note", "caf\xc3\xa9 \"x\"\n"}, {"list", {1, true, nullptr}}};
  entry.policy = "sha256:00";
  return entry;
}

TEST(EntryTest, IsReadBackAndItsFormIsFrozen) {
  const Bytes bytes = Good().ToBytes().value();
  EXPECT_EQ(AsText(bytes),
            "{\"action\":\"lease.request\",\"actor\":{\"address\":\"192.0.2.7\",\"kind\":\"user\","
            "\"principal\":\"alice@acme\",\"via\":\"token-1\"},\"decision\":\"allow\","
            "\"decision_reason\":\"role developer at acme/research\",\"detail\":{\"gpus\":2,"
            "\"list\":[1,true,null],\"note\":\"caf\xc3\xa9 \\\"x\\\"\\n\"},\"gpus\":[\"GPU-0\","
            "\"GPU-1\"],\"id\":\"op-7k3m9q2x4abc\",\"lease\":\"lease-1\",\"node\":\"node-1\","
            "\"policy\":\"sha256:00\",\"result\":\"ok\",\"tenant\":\"acme/research/vision\","
            "\"time\":\"2023-11-14T22:13:20.123Z\",\"version\":1}");
  EXPECT_EQ(Entry::Parse(bytes).value(), Good());
  EXPECT_EQ(verify::WhyNotCanonical(AsText(bytes)), nullptr);
}

TEST(EntryTest, EachFieldIsBoundedAndNamedWhenWrong) {
  const auto field_of = [](const std::function<void(Entry&)>& spoil) {
    Entry entry = Good();
    spoil(entry);
    const Result<Bytes> bytes = entry.ToBytes();
    return bytes.has_value() ? "" : bytes.error().field;
  };
  const std::string long_text(600, 'x');
  EXPECT_EQ(field_of([](Entry&) {}), "");
  EXPECT_EQ(field_of([](Entry& e) { e.time = Timestamp(Milliseconds(-1)); }), "time");
  EXPECT_EQ(field_of([](Entry& e) { e.id.clear(); }), "id");
  EXPECT_EQ(field_of([](Entry& e) { e.actor.kind = "robot"; }), "actor.kind");
  EXPECT_EQ(field_of([&](Entry& e) { e.actor.principal = long_text; }), "actor.principal");
  EXPECT_EQ(field_of([](Entry& e) { e.actor.via = "\xff"; }), "actor.via");
  EXPECT_EQ(field_of([&](Entry& e) { e.actor.address = long_text; }), "actor.address");
  for (const char* action : {"", "lease", "lease.", ".lease", "a..b", "Lease.x", "lease request"}) {
    EXPECT_EQ(field_of([&](Entry& e) { e.action = action; }), "action") << action;
  }
  EXPECT_EQ(field_of([&](Entry& e) { e.tenant = long_text; }), "tenant");
  EXPECT_EQ(field_of([&](Entry& e) { e.lease = long_text; }), "lease");
  EXPECT_EQ(field_of([&](Entry& e) { e.node = long_text; }), "node");
  EXPECT_EQ(field_of([&](Entry& e) { e.policy = long_text; }), "policy");
  EXPECT_EQ(field_of([](Entry& e) { e.gpus.resize(kEntryGpusMax + 1); }), "gpus");
  EXPECT_EQ(field_of([&](Entry& e) { e.gpus.assign(200, long_text.substr(0, 500)); }), "gpus");
  EXPECT_EQ(field_of([](Entry& e) { e.decision = "maybe"; }), "decision");
  EXPECT_EQ(field_of([](Entry& e) { e.decision_reason.assign(5000, 'x'); }), "decision_reason");
  EXPECT_EQ(field_of([](Entry& e) { e.result = "fine"; }), "result");
  EXPECT_EQ(field_of([](Entry& e) { e.detail["x"] = 1.5; }), "detail");
  EXPECT_EQ(field_of([](Entry& e) { e.detail["x"] = std::uint64_t{1} << 63U; }), "detail");
  EXPECT_EQ(field_of([](Entry& e) { e.detail["x"] = std::string(20000, 'x'); }), "detail");
  EXPECT_EQ(field_of([](Entry& e) { e.detail["\xff"] = 1; }), "detail");
  EXPECT_EQ(field_of([](Entry& e) {
              Json nested = 1;
              for (int i = 0; i < 40; ++i) {
                nested = JsonArray{nested};
              }
              e.detail["x"] = nested;
            }),
            "detail");
}

TEST(EntryTest, OnlyTheCanonicalFormIsRead) {
  const std::string good = ToText(Good().ToBytes().value());
  const auto parses = [](const std::string& text) {
    return Entry::Parse(AsBytes(text)).has_value();
  };
  ASSERT_TRUE(parses(good));
  EXPECT_FALSE(parses(good + " "));
  EXPECT_FALSE(
      parses("{\""
             "aa\":1," +
             good.substr(1)));
  const auto replaced = [&](const std::string& from, const std::string& to) {
    std::string text = good;
    return text.replace(text.find(from), from.size(), to);
  };
  EXPECT_FALSE(parses(replaced("\"version\":1", "\"version\":2")));
  EXPECT_FALSE(parses(replaced("\"version\":1", "\"version\":1.0")));
  EXPECT_FALSE(parses(replaced("20.123Z", "20.1230Z")));
  EXPECT_FALSE(parses(replaced("20.123Z", "20Z")));
  EXPECT_FALSE(parses(replaced("\"gpus\":2", "\"gpus\":2e0")));
  EXPECT_FALSE(parses(replaced("\"gpus\":2", "\"gpus\":-0")));
  EXPECT_FALSE(parses(replaced("\"detail\":{", "\"detail\":{\"z\":1,")));
  EXPECT_FALSE(parses(replaced("\"lease\":\"lease-1\",", "")));
  EXPECT_FALSE(parses(replaced("alice", "\\u0061lice")));
  for (std::size_t i = 0; i < good.size() * 8; ++i) {
    std::string damaged = good;
    damaged[i / 8] = static_cast<char>(damaged[i / 8] ^ (1 << (i % 8)));
    const Result<Entry> entry = Entry::Parse(AsBytes(damaged));
    if (entry.has_value()) {  // another letter in a free text: another entry, never the same
      EXPECT_NE(*entry, Good());
      EXPECT_EQ(AsText(entry->ToBytes().value()), damaged);
    }
    EXPECT_FALSE(parses(good.substr(0, i / 8)));
  }
}

}  // namespace
}  // namespace ringfence::audit
