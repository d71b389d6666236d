// Goal: the tables find exactly what a plain search finds. Method: dice make indicators and values
// of a small world, so that many meet; a slow search that shares nothing with the tables judges.

#include "detect/indicator_index.h"

#include <gtest/gtest.h>

#include <random>

#include "detect/mapping.h"
#include "os/file.h"

namespace ringfence::detect {
namespace {

Indicator Make(Kind kind, std::string value) {
  Indicator indicator;
  indicator.kind = kind;
  indicator.value = std::move(value);
  return indicator;
}

using Numbers = IndicatorIndex::Numbers;

Numbers Sorted(Numbers numbers) {
  std::sort(numbers.begin(), numbers.end());
  return numbers;
}

TEST(IndicatorIndex, AddressesAsAPlainSearchFindsThem) {
  std::mt19937 dice(1);
  const auto address = [&](bool v6) {
    const auto part = [&](unsigned most) { return std::to_string(dice() % most); };
    return v6 ? "2001:db8:" + part(3) + "::" + part(4)
              : "10." + part(2) + "." + part(3) + "." + part(4);
  };
  IndicatorIndex index;
  std::vector<IpRange> ranges;
  for (int i = 0; i < 400; ++i) {
    const bool v6 = dice() % 2 == 0;
    const std::string text = address(v6) + "/" + std::to_string(dice() % (v6 ? 129 : 33));
    ranges.push_back(*ParseIpRange(text));
    ASSERT_TRUE(index.Add(Make(Kind::kIp, text)).has_value());
  }
  std::size_t hits = 0;
  for (int i = 0; i < 2000; ++i) {
    const IpRange one = *ParseIpRange(address(dice() % 2 == 0));
    Numbers expected;
    for (std::uint32_t n = 0; n < ranges.size(); ++n) {
      if (ranges[n].Contains(one)) {
        expected.push_back(n);
      }
    }
    Numbers found;
    index.LookIp(one, found);
    EXPECT_EQ(Sorted(found), expected);
    hits += expected.size();
  }
  EXPECT_GT(hits, 1000U);
}

TEST(IndicatorIndex, DomainsAndWhatIsBelowThem) {
  std::mt19937 dice(2);
  const auto name = [&](unsigned long labels) {
    std::string text = "example";
    for (unsigned long i = 0; i < labels; ++i) {
      text = std::string(1, static_cast<char>('a' + dice() % 3)) + "." + text;
    }
    return text;
  };
  IndicatorIndex index;
  std::vector<std::string> listed;
  for (int i = 0; i < 60; ++i) {
    listed.push_back(name(1 + dice() % 4));
    ASSERT_TRUE(index.Add(Make(Kind::kDomain, listed.back())).has_value());
  }
  for (int i = 0; i < 500; ++i) {
    const std::string one = name(1 + dice() % 5);
    Numbers expected;
    for (std::uint32_t n = 0; n < listed.size(); ++n) {
      if (one == listed[n] || one.ends_with("." + listed[n])) {
        expected.push_back(n);
      }
    }
    Numbers found;
    index.LookDomain(one, found);
    EXPECT_EQ(Sorted(found), expected) << one;
  }
  Numbers none;
  index.LookDomain(std::string(300, 'a'), none);
  index.LookDomain("", none);
  EXPECT_TRUE(none.empty());
}

TEST(IndicatorIndex, ManyKeysAllFoundAgain) {
  IndicatorIndex index;
  for (std::uint32_t i = 0; i < 20'000; ++i) {
    ASSERT_TRUE(index.Add(Make(Kind::kHash, std::to_string(i / 2))).has_value());
  }
  for (std::uint32_t i = 0; i < 10'000; ++i) {
    Numbers found;
    index.LookText(Kind::kHash, std::to_string(i), found);
    EXPECT_EQ(Sorted(found), (Numbers{2 * i, 2 * i + 1}));
  }
  Numbers none;
  index.LookText(Kind::kHash, "10000", none);
  index.LookText(Kind::kUrl, "1", none);
  EXPECT_TRUE(none.empty());
}

// Equalities go to tables, everything else to matchers: the answers must be the same.
TEST(IndicatorIndex, PatternsMatchAsTheMatcherSays) {
  const std::vector<std::string> patterns = {
      "[domain-name:value = 'a.example']",
      "[domain-name:value = 'a.example' OR url:value = 'http://b.example/']",
      "[domain-name:value IN ('x', 'b.example')]",
      "[file:hashes.'SHA-256' = 'ab']",
      "[network-traffic:dst_ref.value = '10.0.0.1']",
      "[domain-name:value != 'a.example']",
      "[domain-name:value LIKE '%.example']",
      "[network-traffic:dst_port = 3333]",
      "[domain-name:value = 'a.example'] FOLLOWEDBY [domain-name:value = 'b.example']",
  };
  const std::vector<std::string> events = {
      R"({"at":"2024-01-01T00:00:00Z","objects":[{"type":"domain-name","value":"a.example"}]})",
      R"({"at":"2024-01-01T00:00:01Z","objects":[{"type":"url","value":"http://b.example/"}]})",
      R"({"at":"2024-01-01T00:00:02Z","objects":[{"type":"domain-name","value":"b.example"}]})",
      R"({"at":"2024-01-01T00:00:03Z","objects":[{"type":"file","hashes":{"SHA-256":"ab"}}]})",
      R"({"at":"2024-01-01T00:00:04Z","objects":[{"type":"network-traffic","dst_port":3333,
          "dst_ref":"i"},{"type":"ipv4-addr","id":"i","value":"10.0.0.1"}]})"};
  IndicatorIndex index;
  std::vector<PatternMatcher> slow;
  for (const std::string& pattern : patterns) {
    ASSERT_TRUE(index.Add(Make(Kind::kPattern, pattern)).has_value());
    slow.emplace_back(*ParsePattern(pattern));
  }
  EXPECT_EQ(index.patterns_to_try(), 4U);
  for (std::uint64_t number = 0; number < events.size(); ++number) {
    const auto event = Event::FromStix(*ParseJson(events[number], 10'000));
    Numbers expected;
    for (std::uint32_t n = 0; n < slow.size(); ++n) {
      if (slow[n].Feed(event->observation(), number)) {
        expected.push_back(n);
      }
    }
    Numbers found;
    index.Match(event->observation(), number, found);
    EXPECT_EQ(found, expected) << number;
    EXPECT_FALSE(expected.empty()) << number;
  }
}

TEST(IndicatorIndex, ListsMatchWhereverAnEventHasTheValue) {
  IndicatorIndex index;
  ASSERT_TRUE(index.Add(Make(Kind::kIp, "203.0.113.0/24")).has_value());
  ASSERT_TRUE(index.Add(Make(Kind::kDomain, "evil.example")).has_value());
  ASSERT_TRUE(index.Add(Make(Kind::kHash, "abcd")).has_value());
  ASSERT_TRUE(index.Add(Make(Kind::kUrl, "https://ok.example/evil")).has_value());
  ASSERT_TRUE(index.Add(Make(Kind::kEmail, "a@evil.example")).has_value());
  const auto mapping =
      Mapping::Read(std::string(RINGFENCE_SOURCE_DIR) + "/content/mappings/ocsf.json");
  ASSERT_TRUE(mapping.has_value()) << mapping.error().message;
  const auto found = [&](const std::string& text, bool stix) {
    auto json = ParseJson(text, 10'000);
    EXPECT_TRUE(json.has_value()) << text;
    const auto event = stix ? Event::FromStix(std::move(*json)) : mapping->Apply(*json);
    EXPECT_TRUE(event.has_value()) << text;
    Numbers numbers;
    index.Match(event->observation(), 0, numbers);
    return numbers;
  };
  EXPECT_EQ(found(R"({"type":"ipv4-addr","value":"203.0.113.9"})", true), Numbers{0});
  EXPECT_EQ(found(R"({"type":"domain-name","value":"WWW.Evil.Example."})", true), Numbers{1});
  EXPECT_EQ(found(R"({"type":"domain-name","value":"notevil.example"})", true), Numbers{});
  EXPECT_EQ(found(R"({"type":"url","value":"http://u:p@x.evil.example:80/a"})", true), Numbers{1});
  EXPECT_EQ(found(R"({"type":"url","value":"http://203.0.113.1/"})", true), Numbers{0});
  EXPECT_EQ(found(R"({"type":"url","value":"https://ok.example/evil"})", true), Numbers{3});
  EXPECT_EQ(found(R"({"type":"file","hashes":{"SHA-256":"ABCD"}})", true), Numbers{2});
  EXPECT_EQ(found(R"({"type":"email-addr","value":"A@evil.example"})", true), Numbers{4});
  EXPECT_EQ(
      found(R"({"time":1700000000000,"dst_endpoint":{"ip":"203.0.113.9","port":3333}})", false),
      Numbers{0});
  EXPECT_EQ(found(R"({"dst_endpoint.ip":"203.0.113.9"})", false), Numbers{0});
  EXPECT_EQ(found(R"({"query":{"hostname":"x.evil.example"}})", false), Numbers{1});
  EXPECT_EQ(found(R"({"process":{"file":{"hashes":{"sha256":"abcd"}}}})", false), Numbers{2});
  EXPECT_EQ(found(R"({"unrelated":1})", false), Numbers{});
}

TEST(Mapping, RefusesWhatIsNone) {
  for (const char* bad : {"[]", "{}", R"({"name":"a","time":[],"fields":[{"field":"a"}]})",
                          R"({"name":"a","time":[],"fields":[{"field":"a","as":"b"}]})",
                          R"({"name":"a","time":[],"fields":[{"field":"a..b","as":"b:c"}]})",
                          R"({"name":"a","time":[],"fields":[],"more":1})"}) {
    EXPECT_FALSE(Mapping::Parse(bad).has_value()) << bad;
  }
}

}  // namespace
}  // namespace ringfence::detect
