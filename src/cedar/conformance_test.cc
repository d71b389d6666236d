// Goal: the published corpus agrees; a wrong answer anywhere in a test is found.
// Method: every test under tests/vectors/cedar; then one of them with each expectation spoilt.

#include "cedar/conformance.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>

namespace ringfence::cedar {
namespace {

const std::string kRoot = std::string(RINGFENCE_SOURCE_DIR) + "/tests/vectors/cedar/";

Result<std::string> Read(const std::string& name) {
  std::ifstream file(kRoot + name, std::ios::binary);
  if (!file) {
    return Error{Code::kNotFound, name};
  }
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

TEST(Conformance, TheCorpusAgrees) {
  std::size_t files = 0;
  std::size_t requests = 0;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(kRoot)) {
    const std::string name = std::filesystem::relative(entry.path(), kRoot);
    if (!name.ends_with(".json") || !IsConformanceTest(*Read(name))) {
      continue;
    }
    const auto result = RunConformanceTest(*Read(name), Read);
    ASSERT_TRUE(result.has_value()) << name << ": " << result.error().message;
    for (const std::string& disagreement : result->disagreements) {
      ADD_FAILURE() << name << ": " << disagreement;
    }
    EXPECT_EQ(result->requests, result->requests_agree);
    ++files;
    requests += result->requests;
  }
  EXPECT_EQ(files, 30U);
  EXPECT_EQ(requests, 138U);
}

TEST(Conformance, WrongExpectationsAreFound) {
  const std::string good = *Read("tests/example_use_cases/2a.json");
  const auto disagreements = [&](std::string_view from, std::string_view to) {
    std::string spoilt = good;
    const std::size_t at = spoilt.find(from);
    EXPECT_NE(at, std::string::npos) << from;
    spoilt.replace(at, from.size(), to);
    const auto result = RunConformanceTest(spoilt, Read);
    return result.has_value() ? result->disagreements.size() : std::size_t{99};
  };
  EXPECT_EQ(disagreements("\"allow\"", "\"allow\""), 0U);
  EXPECT_GE(disagreements("\"allow\"", "\"deny\""), 1U);
  EXPECT_GE(disagreements("\"shouldValidate\": true", "\"shouldValidate\": false"), 1U);
  EXPECT_GE(disagreements("\"policy0\"", "\"policy7\""), 1U);
  EXPECT_GE(disagreements("\"errors\": []", "\"errors\": [\"policy0\"]"), 1U);
  EXPECT_GE(disagreements("sandbox_a/entities.json", "no/such/file.json"), 1U);
}

}  // namespace
}  // namespace ringfence::cedar
