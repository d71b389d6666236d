#pragma once

// Security bulletins in CSAF 2.0 (OASIS). Read as far as a verdict needs; what else is in a file is
// passed over. A file that is not CSAF, or damaged, is an error that names the field.

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "assure/version_text.h"
#include "base/result.h"
#include "base/time.h"

namespace ringfence::assure {

inline constexpr std::size_t kCsafBytesMax = std::size_t{8} << 20U;

// The operating systems that a row speaks of, as bits; 0: it names none, and so means any.
enum Family : unsigned {
  kLinux = 1U,
  kWindows = 2U,
  kAndroid = 4U,
  kMac = 8U,
  kVmware = 16U,
  kXen = 32U,
  kNutanix = 64U,
};
unsigned FamiliesOf(std::string_view platform);

struct Platform {
  std::string text;  // as written
  std::string name;  // without the label at its end
  unsigned families = 0;
  std::vector<std::uint32_t> releases;  // of Windows: 10, 11; none: any
  std::optional<std::uint32_t> branch;  // "R535"
  std::optional<std::uint32_t> vgpu;    // "vGPU 16"
  bool gaming = false;
};
// "Linux(R535 vGPU 16)", "Windows 10 and 11(R470)".
Platform ReadPlatform(std::string_view text);

// One product on one platform: what is affected, and what is fixed.
struct BulletinRow {
  std::string product;
  Platform platform;
  std::vector<VersionText> affected;
  std::vector<VersionText> fixed;
  std::vector<VersionText> unaffected;
  std::vector<std::string> affected_texts;
  std::vector<std::string> fixed_texts;
  std::vector<ProductVersion> fixes;       // of all `fixed`
  std::vector<ProductVersion> vgpu_fixes;  // in the numbers of the vGPU software
  std::string component;                   // "bmc"; may be empty
  bool investigated = false;               // "under investigation"
};

struct Flaw {
  std::string cve;  // or another identifier, where there is no CVE
  std::string summary;
  std::string severity;  // "critical", "high", "medium", "low", "none"; empty: not given
  std::string vector;
  int score_tenths = -1;  // -1: not given
  std::vector<BulletinRow> rows;
};

struct Bulletin {
  std::string id;
  std::string title;
  std::string file;
  std::string url;
  Timestamp first{};    // first published
  Timestamp current{};  // of this revision
  std::vector<Flaw> flaws;
};

// `file` names the text in errors. kNotFound: a JSON document of another kind (a CVE record).
Result<Bulletin> ParseCsaf(std::string_view json, const std::string& file);

struct BulletinSet {
  std::vector<Bulletin> bulletins;    // by date of first publication
  std::vector<std::string> problems;  // "2024/5582.json: ...": files that could not be used
  std::size_t passed_over = 0;        // JSON files of another kind
};

// All *.json beneath `folder` (or the one file). Links are not followed; a file that cannot be read
// is a problem, and the rest go on. Of two revisions of one bulletin the later is kept.
Result<BulletinSet> LoadBulletins(const std::string& folder);

}  // namespace ringfence::assure
