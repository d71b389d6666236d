#pragma once

// Tests beside rules: gpu/mining.yml is tried with the events in gpu/mining.test.yml.
//
//   pipeline: ../../pipelines/x.yml    # may be left out; from the test's folder
//   match:                             # each case must be reported
//     - name: an hour of mining
//       events:
//         - {time: 1700000000000, gpu: {uuid: GPU-1}}
//       repeat: 61                     # the events so many times,
//       every: 60s                     # each time so much later (the member `time`, milliseconds)
//   no_match:                          # no case may be
//     - name: training
//       events: [...]

#include <string>
#include <vector>

#include "base/json.h"
#include "base/result.h"

namespace ringfence::sigma {

struct RuleTestCase {
  std::string name;
  bool must_match = true;
  std::vector<std::string> events;  // JSON, in order
};

struct RuleTestResult {
  std::string file;  // of the test
  std::string name;
  bool must_match = true;
  bool passed = false;
  std::string why;  // it failed
};

// The cases of one test file; `pipeline` gets its path, empty when there is none.
Result<std::vector<RuleTestCase>> ReadRuleTest(const std::string& text, const std::string& file,
                                               std::string& pipeline);

// Runs the test file (which must end with .test.yml) on the rule file beside it. An error is a
// file that cannot be read, or a rule with a problem.
Result<std::vector<RuleTestResult>> RunRuleTest(const std::string& test_file);

}  // namespace ringfence::sigma
