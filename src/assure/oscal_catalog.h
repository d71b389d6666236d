#pragma once

// NIST's OSCAL as far as it says which controls there are: a catalog (resolved or not) and a
// profile that chooses from one.

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace ringfence::assure {

inline constexpr std::size_t kOscalBytesMax = std::size_t{64} << 20U;

struct OscalControl {
  std::string id;  // "ac-2.1"
  std::string title;
  std::string group;   // "Access Control"
  std::string parent;  // of an enhancement; else empty
  bool withdrawn = false;
};

struct OscalCatalog {
  std::string uuid;
  std::string title;
  std::string version;
  std::vector<OscalControl> controls;  // in the catalog's order, enhancements after their control
};

// kInvalidArgument names the place that is wrong ("catalog.groups[3].controls[0].id"). Members that
// are not needed are not looked at; a control twice, or without id or title, is refused.
Result<OscalCatalog> ParseOscalCatalog(std::string_view json, const std::string& file);

struct OscalProfile {
  std::string uuid;
  std::string title;
  struct Selection {
    std::vector<std::string> ids;
    std::vector<std::string> patterns;  // of ids; '*' any text, '?' any one character
    bool with_children = false;
  };
  struct Import {
    std::string href;
    bool all = false;
    std::vector<Selection> include;
    std::vector<Selection> exclude;
  };
  std::vector<Import> imports;
};
Result<OscalProfile> ParseOscalProfile(std::string_view json, const std::string& file);

// What the profile chooses from the catalog: every import is taken to mean this catalog, whatever
// its href says. An id that the catalog does not have is kInvalidArgument: a baseline of which a
// part is missing is not that baseline. Withdrawn controls are left out where a pattern or "all"
// chose them.
Result<std::vector<OscalControl>> ResolveProfile(const OscalProfile& profile,
                                                 const OscalCatalog& catalog);

}  // namespace ringfence::assure
