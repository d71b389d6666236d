#pragma once

// Known flaws of a program, and whether a version of it is known to be free of them.

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace ringfence::assure {

struct Advisory {
  std::string id;                     // "CVE-2024-21626"
  std::string what;                   // one line
  std::vector<std::string> upstream;  // the first good version of each series that was mended
  std::vector<std::string> debian;    // packages of an older series that Debian mended
  bool blocks = false;                // it opens a wall that we rely on
};

// The list of content/runtimes/*.yaml.
Result<std::vector<Advisory>> ParseAdvisories(std::string_view yaml, const std::string& file);

struct InstalledVersion {
  std::string upstream;   // "1.1.5", as the program says
  std::string package;    // "1.1.5+ds1-1+deb12u1"; empty: not from a package of Debian's
  std::string changelog;  // of the package; may be empty
};

// Why the version is known to be free of the flaw; empty: nothing shows it.
std::string WhyFixed(const Advisory& advisory, const InstalledVersion& version);

}  // namespace ringfence::assure
