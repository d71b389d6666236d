// Goal: a shape never lets a text pass that the full scan refuses, and does let pass what differs
// from a canonical text only in plain values.
// Method: learn canonical texts, then damage them in every place in every way that is cheap to
// try, at all offsets against the blocks that are looked at together, and ask both.

#include "audit/verify_shape.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "audit/verify_json.h"

namespace ringfence::audit::verify {
namespace {

// Shapes are looked up by the first letters of the first value, so those stay the same here.
constexpr const char* kHead = R"({"action":"lease.request.extended)";

const std::vector<std::string> kTexts = {
    "{}",
    R"({"action":"lease.request.extended","actor":{"address":"10.0.0.1","kind":"user"},"version":1})",
    R"({"a":"","b":["x","y"],"c":[1,20,0,{"d":true,"e":null}],"f":123456789012345,"g1":{}})",
    R"({"a":0,"b":10,"c":"0123456789","d":[],"e":[[["deep"]],7],"zero0":0})"};

bool IsCanonical(const std::string& text) { return WhyNotCanonical(text) == nullptr; }

// Whether this processor has what the shapes need; elsewhere they never say yes.
bool HasShapes() {
  ShapeCache cache;
  cache.Learn("{}");
  return cache.Fits("{}");
}

TEST(VerifyShapeTest, WhatDiffersInPlainValuesFits) {
  if (!HasShapes()) {
    GTEST_SKIP() << "no AVX-512 with byte compression here";
  }
  ShapeCache cache;
  cache.Learn(kTexts[1]);
  for (std::size_t length = 0; length < 300; ++length) {
    const std::string text = kHead + std::string(length, '{') +
                             R"(","actor":{"address":"","kind":"9:,-"},"version":907})";
    EXPECT_TRUE(IsCanonical(text) && cache.Fits(text)) << text;
  }
}

TEST(VerifyShapeTest, NothingFitsThatIsNotCanonical) {
  ShapeCache cache;
  for (const std::string& text : kTexts) {
    ASSERT_TRUE(IsCanonical(text)) << text;
  }
  std::uint64_t fitted = 0;
  const auto ask = [&](const std::string& text) {
    if (cache.Fits(text)) {
      ++fitted;
      EXPECT_TRUE(IsCanonical(text)) << text;
    }
  };
  const std::string_view kPatches = "\"\\{}[]:,0123456789-.eE x\n\x7f\x80\xff";
  for (const std::string& learned : kTexts) {
    cache.Learn(learned);
    // A longer first value moves what follows over the borders between blocks.
    for (std::size_t shift = 0; shift < 70; ++shift) {
      std::string text = learned;
      if (const std::size_t quote = text.find(":\""); quote != std::string::npos) {
        text.insert(std::min(text.size(), quote + 18), std::string(shift, 'v'));
      }
      ask(text);
      for (std::size_t at = 0; at <= text.size(); ++at) {
        ask(text.substr(0, at));
        for (const char patch : kPatches) {
          ask(std::string(text).insert(at, 1, patch));
          ask(std::string(text).insert(at, 16, patch));
          if (at < text.size()) {
            ask(std::string(text).replace(at, 1, 1, patch));
          }
        }
        if (at < text.size()) {
          ask(std::string(text).erase(at, 1));
          ask(std::string(text).erase(at, 2));
        }
      }
    }
  }
  EXPECT_TRUE(fitted > 1000 || !HasShapes());
}

TEST(VerifyShapeTest, NumbersAreHeldToTheirRules) {
  ShapeCache cache;
  cache.Learn(kHead + std::string(R"(","n":1,"q":"x"})"));
  for (std::size_t pad = 0; pad < 130; ++pad) {
    // The number's place against the blocks moves with the text before it.
    const std::string head = kHead + std::string(pad, 'p') + R"(","n":)";
    const std::string tail = R"(,"q":"x"})";
    for (const char* number : {"0", "7", "10", "999999999999999", "00", "01", "-1", "-0", "1.5",
                               "1e3", "9007199254740993", "1234567890123456", "", "1 ", "+1"}) {
      const std::string text = head + number + tail;
      // The rest is left to the full scan.
      const bool simple =
          IsCanonical(text) && number[0] != '-' && std::string_view(number).size() <= 15;
      EXPECT_EQ(cache.Fits(text), simple && HasShapes()) << text;
    }
  }
}

// More quotes in a block than any canonical text has there.
TEST(VerifyShapeTest, CrowdedQuotesDoNotFit) {
  for (std::size_t strings = 1; strings < 120; ++strings) {
    std::string list = "\"\"";
    for (std::size_t i = 1; i < strings; ++i) {
      list += ",\"\"";
    }
    const std::string head = kHead + std::string(R"(","b":[)");
    ShapeCache cache;
    cache.Learn(head + list + "]}");
    EXPECT_EQ(cache.Fits(head + list + "]}"), HasShapes());
    const std::string quotes(2 * strings, '"');
    const std::string commas(strings - 1, ',');
    for (std::size_t at = 0; at <= quotes.size(); ++at) {
      const std::string text = head + std::string(quotes).insert(at, commas) + "]}";
      EXPECT_TRUE(!cache.Fits(text) || IsCanonical(text)) << text;
    }
  }
}

TEST(VerifyShapeTest, TooMuchIsLeftToTheFullScan) {
  ShapeCache cache;
  const std::string value = "{\"a\":\"" + std::string(70000, 'v') + "\"}";
  cache.Learn(value);
  EXPECT_FALSE(cache.Fits(value));
  std::string names = "{\"a\":[\"\"";
  for (int i = 0; i < 400; ++i) {
    names += ",\"\"";
  }
  names += "]}";
  ASSERT_TRUE(IsCanonical(names));
  cache.Learn(names);
  EXPECT_FALSE(cache.Fits(names));
  EXPECT_FALSE(cache.Fits(std::string(64, '"')));
  EXPECT_FALSE(cache.Fits(""));
}

}  // namespace
}  // namespace ringfence::audit::verify
