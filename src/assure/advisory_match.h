#pragma once

// Is version V of product P affected? From bulletins whose ranges are prose, whose branches are
// fixed one by one, and which contradict themselves at times. The promise: never "fixed" or
// "not affected" unless the bulletin shows it; where it does not, "ambiguous" and why.

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "assure/advisory_product.h"
#include "assure/csaf.h"

namespace ringfence::assure {

enum class Verdict { kNotAffected, kFixed, kAmbiguous, kAffected };  // the worst last
std::string_view Name(Verdict verdict);                              // "not_affected"

// What one bulletin says of one flaw.
struct BulletinVerdict {
  const Bulletin* bulletin = nullptr;
  const Flaw* flaw = nullptr;
  Verdict verdict = Verdict::kAmbiguous;
  std::string why;
  std::vector<std::string> fixed;  // first good versions for this branch; or else of others
  bool other_branch = false;       // `fixed` is of other branches
  std::string condition;           // "CDI mode only ..."; may be empty
};

// What all of them say of it; the worst counts.
struct FlawVerdict {
  std::string cve;
  Verdict verdict = Verdict::kAmbiguous;
  std::string severity;               // of the worst
  int score_tenths = -1;              // of the worst
  std::vector<BulletinVerdict> said;  // the one that decides first
};

struct VersionQuery {
  ProductQuery product;
  std::string platform;  // "Linux"; empty: any
  ProductVersion version;
};

// Made once, asked often. The bulletins must outlive it. Const calls from any thread.
class AdvisoryIndex {
 public:
  explicit AdvisoryIndex(const std::vector<Bulletin>& bulletins);
  ~AdvisoryIndex();
  AdvisoryIndex(const AdvisoryIndex&) = delete;
  AdvisoryIndex& operator=(const AdvisoryIndex&) = delete;

  // kInvalidArgument for a version that cannot be one of that product.
  Result<VersionQuery> Ask(std::string_view product, std::string_view platform,
                           std::string_view version) const;
  // Of every flaw that some bulletin lists for the product; the worst first, then by CVE.
  std::vector<FlawVerdict> Match(const VersionQuery& query) const;

 private:
  struct Facts;
  const std::vector<Bulletin>& bulletins_;
  std::unique_ptr<Facts> facts_;
};

// 0 for "none" to 4 for "critical"; a severity that was not given counts as high.
int SeverityRank(std::string_view severity);

}  // namespace ringfence::assure
