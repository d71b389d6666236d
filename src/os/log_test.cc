// Goal: a log line says the same in both formats, and no value can forge another line or field.
// Method: what really comes out of standard error.

#include "os/log.h"

#include <gtest/gtest.h>

#include <cstdlib>

#include "base/json.h"
#include "os/log_format.h"

namespace ringfence::os {
namespace {

std::string Logged(LogFormat format) {
  SetLogFormat(format);
  testing::internal::CaptureStderr();
  Log(Level::kWarning, "not_reported", {{"why", "a \"b\"\nlevel=info {}"}, {"node", "n1"}});
  SetLogFormat(LogFormat::kText);
  return testing::internal::GetCapturedStderr();
}

TEST(LogTest, TextIsOneLine) {
  const std::string line = Logged(LogFormat::kText);
  EXPECT_NE(line.find(" warning not_reported why=\"a \\\"b\\\"\\nlevel=info {}\" node=n1\n"),
            std::string::npos)
      << line;
  EXPECT_EQ(line.find('\n'), line.size() - 1);
}

TEST(LogTest, JsonIsOneObjectOnOneLine) {
  const std::string line = Logged(LogFormat::kJson);
  EXPECT_EQ(line.find('\n'), line.size() - 1) << line;
  const auto json = ParseJson(line, 4096);
  ASSERT_TRUE(json.has_value()) << line;
  EXPECT_EQ(json->at("event").as_string(), "not_reported");
  EXPECT_EQ(json->at("level").as_string(), "warning");
  EXPECT_EQ(json->at("why").as_string(), "a \"b\"\nlevel=info {}");
  EXPECT_EQ(json->at("node").as_string(), "n1");
  EXPECT_TRUE(json->as_object().contains("time"));
  EXPECT_TRUE(json->as_object().contains("process"));
}

TEST(LogTest, OnlyTheJournalGetsAPriority) {
  (void)setenv("JOURNAL_STREAM", "1:1", 1);  // another stream's
  EXPECT_TRUE(Logged(LogFormat::kJson).starts_with("{"));
  (void)unsetenv("JOURNAL_STREAM");
}

}  // namespace
}  // namespace ringfence::os
