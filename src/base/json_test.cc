// Goal: JSON that two readers could read differently is refused, canonical output is RFC 8785's,
// and a wrong field is named by its path.
// Method: tables of good and bad documents; the RFC's ordering sample; a reader over each kind of
// wrong member.

#include "base/json.h"

#include <gtest/gtest.h>

namespace ringfence {
namespace {

constexpr std::size_t kMax = 4096;

TEST(JsonTest, BadDocumentsAreRefused) {
  const std::string bad[] = {"",
                             " ",
                             "{",
                             "{}x",
                             "{} {}",
                             "{'a':1}",
                             "{\"a\":1,}",
                             "[1,]",
                             "01",
                             "nul",
                             "NaN",
                             "// c\n1",
                             "\"\xff\"",
                             "\"\\ud800\"",
                             "\"\n\"",
                             "{\"a\":1,\"a\":2}",
                             "{\"a\":1,\"\\u0061\":2}",
                             "[{\"x\":{\"b\":1,\"c\":2,\"b\":3}}]",
                             std::string(33, '[') + std::string(33, ']')};
  for (const std::string& text : bad) {
    const auto json = ParseJson(text, kMax);
    ASSERT_FALSE(json.has_value()) << text;
    EXPECT_EQ(json.error().code, Code::kInvalidArgument) << text;
    EXPECT_FALSE(json.error().message.empty());
  }
}

TEST(JsonTest, LimitsAreExact) {
  const std::string deepest = std::string(kJsonDepthMax, '[') + std::string(kJsonDepthMax, ']');
  EXPECT_TRUE(ParseJson(deepest, kMax).has_value());
  EXPECT_FALSE(ParseJson("[" + deepest + "]", kMax).has_value());
  EXPECT_TRUE(ParseJson("[1,2]", 5).has_value());
  EXPECT_FALSE(ParseJson("[1,2]", 4).has_value());
}

TEST(JsonTest, EveryCutOfADocumentIsRefused) {
  const std::string text = R"({"a":[1,2,{"b":"\u20ac\n"}],"c":null,"d":true})";
  ASSERT_TRUE(ParseJson(text, kMax).has_value());
  for (std::size_t i = 0; i < text.size(); ++i) {
    EXPECT_FALSE(ParseJson(text.substr(0, i), kMax).has_value()) << i;
  }
}

TEST(JsonTest, SameNameInDifferentObjectsIsFine) {
  EXPECT_TRUE(ParseJson(R"([{"a":1},{"a":2},{"a":{"a":3}}])", kMax).has_value());
}

TEST(JsonTest, CanonicalFormIsTheRfcs) {
  // RFC 8785, section 3.2.3: names in the order of their UTF-16 code units.
  const std::string text =
      "{\"\\u20ac\":\"Euro Sign\",\"\\r\":\"Carriage Return\",\"\\ufb33\":\"Hebrew Letter Dalet "
      "With "
      "Dagesh\",\"1\":\"One\",\"\\ud83d\\ude00\":\"Emoji: Grinning Face\",\"\\u0080\":\"Control\","
      "\"\\u00f6\":\"Latin Small Letter O With Diaeresis\"}";
  EXPECT_EQ(CanonicalJson(ParseJson(text, kMax).value()),
            "{\"\\r\":\"Carriage Return\",\"1\":\"One\",\"\u0080\":\"Control\",\"\u00f6\":\"Latin "
            "Small Letter O With Diaeresis\",\"\u20ac\":\"Euro Sign\",\"\U0001f600\":\"Emoji: "
            "Grinning Face\",\"\ufb33\":\"Hebrew Letter Dalet With Dagesh\"}");
  EXPECT_EQ(
      CanonicalJson(
          ParseJson(" [ 1 , -2, \"\\u001f\\b\\t\\n\\f\\r\\\"\\\\\\/\", {} , [] ] ", kMax).value()),
      "[1,-2,\"\\u001f\\b\\t\\n\\f\\r\\\"\\\\/\",{},[]]");
}

TEST(JsonTest, CanonicalAndPrettyFormsReadBackTheSame) {
  const Json json =
      ParseJson(R"({"b":[1,{"x":[]},"\u0000\u20ac"],"a":{"c":null,"d":false}})", kMax).value();
  EXPECT_EQ(ParseJson(CanonicalJson(json), kMax).value(), json);
  EXPECT_EQ(ParseJson(PrettyJson(json), kMax).value(), json);
}

TEST(JsonTest, NumbersThatCannotBeExactAreADefect) {
  EXPECT_DEATH((void)CanonicalJson(Json(0.5)), "broken invariant");
  EXPECT_DEATH((void)CanonicalJson(Json((std::int64_t{1} << 53) + 1)), "broken invariant");
  EXPECT_EQ(CanonicalJson(Json(std::int64_t{1} << 53)), "9007199254740992");
}

TEST(JsonReaderTest, ReadsWhatIsThereAndNamesWhatIsWrong) {
  const Json json =
      ParseJson(R"({"name":"x","gpus":4,"on":true,"tags":["a","b"],"nothing":null})", kMax).value();
  JsonReader reader = JsonReader::Open(json, "spec").value();
  EXPECT_EQ(reader.String("name").value(), "x");
  EXPECT_EQ(reader.Int("gpus", 1, 8).value(), 4);
  EXPECT_TRUE(reader.Bool("on").value());
  EXPECT_EQ(reader.Strings("tags").value(), (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(reader.StringOr("nothing", "fallback").value(), "fallback") << "null counts as absent";
  EXPECT_EQ(reader.IntOr("absent", 7, 0, 9).value(), 7);
  EXPECT_TRUE(reader.Finish().has_value());

  const auto expect_wrong = [](const auto& result, const char* field) {
    ASSERT_FALSE(result.has_value()) << field;
    EXPECT_EQ(result.error().code, Code::kInvalidArgument);
    EXPECT_EQ(result.error().field, field);
    EXPECT_NE(result.error().message.find(field), std::string::npos);
  };
  expect_wrong(reader.Int("gpus", 5, 8), "spec.gpus");
  expect_wrong(reader.Int("name", 0, 8), "spec.name");
  expect_wrong(reader.String("gpus"), "spec.gpus");
  expect_wrong(reader.String("absent"), "spec.absent");
  expect_wrong(reader.String("name", 0), "spec.name");
  expect_wrong(reader.Bool("name"), "spec.name");
  expect_wrong(reader.Strings("tags", 1), "spec.tags");
  expect_wrong(reader.Strings("tags", 2, 0), "spec.tags");
  expect_wrong(reader.Array("on"), "spec.on");
  expect_wrong(reader.Any("nothing"), "spec.nothing");
  expect_wrong(reader.IntOr("gpus", 1, 0, 3), "spec.gpus");
  expect_wrong(reader.BoolOr("gpus", true), "spec.gpus");
}

TEST(JsonReaderTest, FieldsNoOneAskedForAreRefused) {
  const Json json = ParseJson(R"({"name":"x","nmae":"typing error"})", kMax).value();
  JsonReader reader = JsonReader::Open(json).value();
  (void)reader.String("name").has_value();
  const Status finished = reader.Finish();
  ASSERT_FALSE(finished.has_value());
  EXPECT_EQ(finished.error().field, "nmae");
  EXPECT_FALSE(JsonReader::Open(Json("text"), "spec").has_value());
}

}  // namespace
}  // namespace ringfence
