#pragma once

// Runs tests in the form of Cedar's published integration corpus: a JSON file that names policies,
// entities and schema, and lists requests with the answers expected.

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace ringfence::cedar {

struct ConformanceResult {
  std::size_t requests = 0;
  std::size_t requests_agree = 0;
  bool validation_agrees = false;
  std::vector<std::string> disagreements;  // each one line; empty: all agree
};

// Reads a file that the test names, by that name.
using ConformanceFiles = std::function<Result<std::string>(const std::string& name)>;

// An error only when the test itself cannot be read; files it names that cannot are disagreements.
// Each request is decided by the plain evaluator and by the engine, and both must agree.
Result<ConformanceResult> RunConformanceTest(std::string_view test, const ConformanceFiles& files);

// Whether JSON text looks like such a test, and not like the entities beside it.
bool IsConformanceTest(std::string_view text);

}  // namespace ringfence::cedar
