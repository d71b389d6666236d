#pragma once

// A check, as content/checks/*.yaml has it: what to read, what must hold, and why.

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "assure/machine_view.h"
#include "base/result.h"

namespace ringfence::assure {

// How something is read. `kind` is one of ProbeKinds(); which of the others it takes is in
// docs/assess.md.
struct ProbeSpec {
  std::string kind;
  std::vector<std::string> paths;
  std::string key;
  std::string section;
  std::string separator;
  std::string get;
  std::string match;
  std::vector<std::string> names;
  std::vector<std::uint16_t> ports;
  std::optional<std::string> fallback;  // the value where none is set
  bool each = false;                    // a list's entries one by one
};

struct ExpectSpec {
  std::string kind;  // "equals", "one_of", ...
  std::vector<std::string> values;
  bool any = false;  // one observation is enough
};

// What a check says when there is nothing to read.
enum class Standing { kPass, kFail, kUnknown, kNotApplicable };
std::string_view Name(Standing standing);  // "pass", "fail", "cannot tell", "not applicable"

struct CheckExample {
  std::string name;  // "pass", "fail", "unknown"
  Standing expected = Standing::kPass;
  std::map<std::string, MadeUpFile> files;
};

struct CheckSpec {
  std::string id;
  std::string title;
  std::string area;  // the class: "host", "driver", ...
  std::string why;
  std::vector<std::string> applies;  // path patterns of which one must exist; none: always
  ProbeSpec probe;
  ExpectSpec expect;
  Standing absent = Standing::kUnknown;
  int likelihood = 3;
  int impact = 3;
  int effort = 2;  // 1 a setting, 2 a change with a restart, 3 a project
  std::string fix;
  std::string command;                // empty: none is safe to give
  std::vector<std::string> controls;  // "nist:ac-6", "hipaa:164.312(b)", "gdpr:32"
  std::vector<CheckExample> examples;
  std::string broken;  // why it cannot be run; else empty

  int risk() const { return likelihood * impact; }
  std::string severity() const;  // of the risk: critical, high, medium, low
};

std::string RiskSeverity(int risk);
const std::vector<std::string_view>& ProbeKinds();
const std::vector<std::string_view>& ExpectKinds();

// The checks of a file. One with a mistake comes out `broken`, and the others are unharmed; a file
// that is no YAML comes out as one broken check with the file's name.
std::vector<CheckSpec> ParseChecks(std::string_view yaml, const std::string& file);
// Of all *.yaml of a folder, by class and id. A repeated id is broken.
Result<std::vector<CheckSpec>> LoadChecks(const std::string& folder);

}  // namespace ringfence::assure
