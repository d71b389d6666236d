// Goal: canonical JSON objects are told from all other bytes.
// Method: a list of each, one for every rule. (audit_entry_fuzz.cc compares with the writer's
// rules.)

#include "audit/verify_json.h"

#include <gtest/gtest.h>

#include <string>

namespace ringfence::audit {
namespace {

TEST(VerifyJsonTest, CanonicalJsonIsToldFromOther) {
  for (const char* good :
       {"{}", "{\"\":0}", "{\"a\":[],\"b\":{},\"c\":[1,-2,9007199254740992,true,false,null]}",
        "{\"a\":\"\\\"\\\\\\b\\f\\n\\r\\t\\u0000\\u001f/\x7f\"}", "{\"A\":1,\"a\":1,\"aa\":1}",
        "{\"\\n\":1,\" \":1}", "{\"\xc3\xa9\":\"\xf0\x9f\x98\x80\xe2\x82\xac\"}",
        // U+10000 is a surrogate pair in UTF-16 and so before U+E000
        "{\"\xf0\x90\x80\x80\":1,\"\xee\x80\x80\":1}"}) {
    EXPECT_EQ(verify::WhyNotCanonical(good), nullptr) << good;
  }
  for (const char* bad : {"",
                          "1",
                          "[]",
                          "{",
                          "{}x",
                          "{} ",
                          " {}",
                          "{\"a\"}",
                          "{\"a\":}",
                          "{\"a\":1,}",
                          "{a:1}",
                          "{\"a\":01}",
                          "{\"a\":-0}",
                          "{\"a\":1.0}",
                          "{\"a\":1e3}",
                          "{\"a\":+1}",
                          "{\"a\":--1}",
                          "{\"a\":9007199254740993}",
                          "{\"a\":99999999999999999999}",
                          "{\"a\":tru}",
                          "{\"a\":[1,]}",
                          "{\"a\":[1 ]}",
                          "{\"b\":1,\"a\":1}",
                          "{\"a\":1,\"a\":1}",
                          "{\"a\":\"\\/\"}",
                          "{\"a\":\"\\u0041\"}",
                          "{\"a\":\"\\u000a\"}",
                          "{\"a\":\"\\u001F\"}",
                          "{\"a\":\"\\u007f\"}",
                          "{\"a\":\"\x01\"}",
                          "{\"a\":\"\xff\"}",
                          "{\"a\":\"\xc0\x80\"}",
                          "{\"a\":\"\xed\xa0\x80\"}",
                          "{\"a\":\"\xf4\x90\x80\x80\"}",
                          "{\"a\":\"\xe2\x82\"}",
                          "{\"\xee\x80\x80\":1,\"\xf0\x90\x80\x80\":1}",
                          "{\"a\":\"x",
                          "{\"a\":\"\\"}) {
    EXPECT_NE(verify::WhyNotCanonical(bad), nullptr) << bad;
  }
  const std::string deep = "{\"a\":" + std::string(31, '[') + std::string(31, ']') + "}";
  EXPECT_EQ(verify::WhyNotCanonical(deep), nullptr);
  EXPECT_NE(verify::WhyNotCanonical("{\"a\":" + std::string(32, '[') + std::string(32, ']') + "}"),
            nullptr);
}

}  // namespace
}  // namespace ringfence::audit
