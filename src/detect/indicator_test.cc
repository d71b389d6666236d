// Goal: bundles and lists give the indicators that are in them; what is wrong is named, the rest
// counts. Method: texts, good, bad and hostile; a published bundle.

#include "detect/indicator.h"

#include <gtest/gtest.h>

#include "os/file.h"

namespace ringfence::detect {
namespace {

std::string Bundle(const std::string& objects) {
  return R"({"type":"bundle","id":"bundle--1","objects":[)" + objects + "]}";
}

constexpr const char* kGood =
    R"({"type":"identity","id":"identity--1","name":"Abuse desk"},
       {"type":"relationship","id":"relationship--1","relationship_type":"indicates","source_ref":"indicator--1",
        "target_ref":"attack-pattern--1"},
       {"type":"indicator","id":"indicator--1","spec_version":"2.1","pattern_type":"stix","name":"pool",
        "pattern":"[domain-name:value = 'pool.example']","valid_from":"2026-01-01T00:00:00Z",
        "valid_until":"2026-02-01T00:00:00Z","confidence":75,"created_by_ref":"identity--1"},
       {"type":"attack-pattern","id":"attack-pattern--1","name":"Compute Hijacking",
        "external_references":[{"source_name":"mitre-attack","external_id":"T1496.001"}]})";

TEST(Bundle, ReadsAnIndicatorWithAllThatIsSaidOfIt) {
  const auto file = ParseBundle(Bundle(kGood), "feed.json");
  ASSERT_TRUE(file.has_value());
  EXPECT_EQ(file->problem_count, 0U);
  ASSERT_EQ(file->indicators.size(), 1U);
  const Indicator& one = file->indicators[0];
  EXPECT_EQ(one.source, "Abuse desk");
  EXPECT_EQ(one.confidence, 75);
  EXPECT_EQ(one.techniques, std::vector<std::string>{"T1496.001"});
  EXPECT_FALSE(one.ValidAt(*ParseMoment("2025-12-31T23:59:59Z")));
  EXPECT_TRUE(one.ValidAt(*ParseMoment("2026-01-01T00:00:00Z")));
  EXPECT_FALSE(one.ValidAt(*ParseMoment("2026-02-01T00:00:00Z")));
  ASSERT_EQ(file->techniques.size(), 1U);
}

TEST(Bundle, PassesOverRevokedAndForeignPatterns) {
  const auto file = ParseBundle(
      Bundle(R"({"type":"indicator","id":"indicator--1","pattern":"x","pattern_type":"yara"},
                {"type":"indicator","id":"indicator--2","pattern":"x","revoked":true})"),
      "f");
  ASSERT_TRUE(file.has_value());
  EXPECT_EQ(file->skipped, 2U);
  EXPECT_EQ(file->problem_count, 0U);
}

TEST(Bundle, NamesWhatIsWrongAndGoesOn) {
  const auto file = ParseBundle(Bundle(std::string(kGood) +
                                       R"(,7,{"id":"x"},{"type":"indicator","id":"malware--1"},
                {"type":"indicator","id":"indicator--3","pattern":"[a:b = ]","valid_from":"2026-01-01T00:00:00Z"},
                {"type":"indicator","id":"indicator--4","pattern":"[a:b = 1]"},
                {"type":"indicator","id":"indicator--5","pattern":"[a:b = 1]","valid_from":"soon"},
                {"type":"indicator","id":"indicator--6","pattern":"[a:b = 1]","valid_from":"2026-01-01T00:00:00Z",
                 "confidence":101})"),
                                "feed.json");
  ASSERT_TRUE(file.has_value());
  EXPECT_EQ(file->indicators.size(), 1U);
  std::string all;
  for (const Problem& problem : file->problems) {
    all += problem.where + ": " + problem.what + "\n";
  }
  for (const char* words :
       {"feed.json: objects[4]: is not an object", "objects[5].type: is missing",
        "objects[6].id: is missing, or does not begin with \"indicator--\"",
        "objects[7].pattern: column 8: expected a constant", "objects[8].valid_from: is missing",
        "objects[9].valid_from: is not a time", "objects[10].confidence: is not a number"}) {
    EXPECT_NE(all.find(words), std::string::npos) << words << "\n" << all;
  }
}

TEST(Bundle, RefusesWhatIsNone) {
  for (const std::string& bad :
       {std::string("{"), std::string("{}"), std::string(R"({"type":"bundle"})"),
        std::string(R"({"type":"bundle","objects":{}})"), std::string(5000, '['),
        std::string("{\"type\":\"bundle\",\"type\":\"bundle\"}"),
        std::string("{\"a\":\"\xff\"}")}) {
    EXPECT_FALSE(ParseBundle(bad, "f").has_value()) << bad.substr(0, 40);
  }
  const auto broken = ParseBundle("{\n\"type\": \"bundle\",\n oops\n}", "feed.json");
  ASSERT_FALSE(broken.has_value());
  EXPECT_TRUE(broken.error().message.starts_with("feed.json:3: ")) << broken.error().message;
}

TEST(Bundle, TheAttackCut) {
  const auto file =
      ReadIndicators(std::string(RINGFENCE_SOURCE_DIR) + "/tests/vectors/stix/attack.json");
  ASSERT_TRUE(file.has_value());
  EXPECT_EQ(file->problem_count, 0U);
  ASSERT_EQ(file->techniques.size(), 3U);
  EXPECT_EQ(file->techniques[0].id, "T1014");
  EXPECT_EQ(file->techniques[0].name, "Rootkit");
}

TEST(List, ReadsEveryKind) {
  const auto file = ParseList(
      "# a feed\n# source: desk\n# confidence: 80\n# expires: 2026-12-31T00:00:00Z\n\n"
      "203.0.113.7\n198.51.100.0/24 confidence=60  # a remark\n2001:DB8::1\nPool.Example.\n"
      "*.miner.example source=miners expires=2027-01-01T00:00:00Z\nhxxp://evil[.]example/x?Y=1\n"
      "D41D8CD98F00B204E9800998ECF8427E\r\nbad@evil.example\n",
      "list.txt");
  ASSERT_TRUE(file.has_value());
  EXPECT_EQ(file->problem_count, 0U);
  const std::pair<Kind, const char*> kExpected[] = {
      {Kind::kIp, "203.0.113.7"},
      {Kind::kIp, "198.51.100.0/24"},
      {Kind::kIp, "2001:DB8::1"},
      {Kind::kDomain, "pool.example"},
      {Kind::kDomain, "miner.example"},
      {Kind::kUrl, "http://evil.example/x?Y=1"},
      {Kind::kHash, "d41d8cd98f00b204e9800998ecf8427e"},
      {Kind::kEmail, "bad@evil.example"}};
  ASSERT_EQ(file->indicators.size(), std::size(kExpected));
  for (std::size_t i = 0; i < std::size(kExpected); ++i) {
    EXPECT_EQ(file->indicators[i].kind, kExpected[i].first) << i;
    EXPECT_EQ(file->indicators[i].value, kExpected[i].second) << i;
  }
  EXPECT_EQ(file->indicators[0].source, "desk");
  EXPECT_EQ(file->indicators[0].confidence, 80);
  EXPECT_EQ(file->indicators[1].confidence, 60);
  EXPECT_EQ(file->indicators[4].source, "miners");
  EXPECT_EQ(file->indicators[0].id, "list.txt:6");
  EXPECT_FALSE(file->indicators[0].ValidAt(*ParseMoment("2026-12-31T00:00:00Z")));
  EXPECT_TRUE(file->indicators[4].ValidAt(*ParseMoment("2026-12-31T00:00:00Z")));
}

TEST(List, NamesLinesThatAreWrong) {
  const auto file = ParseList(
      "localhost\n1.2.3.4.5\nabc\nevil.example expires=soon\nevil.example confidence=200\n"
      "evil.example because\nevil.example colour=red\n-x.example\n@x.example\nhttp://\n" +
          std::string(10'000, 'a') + "\ngood.example\n",
      "l");
  ASSERT_TRUE(file.has_value());
  EXPECT_EQ(file->indicators.size(), 1U);
  ASSERT_EQ(file->problem_count, 11U);
  for (std::size_t i = 0; i < 11; ++i) {
    EXPECT_EQ(file->problems[i].where, "l:" + std::to_string(i + 1));
  }
}

}  // namespace
}  // namespace ringfence::detect
