// Any bytes as a bulletin. What is accepted is then asked about each of its own fixed and affected
// versions: no answer may crash, and a version that a single row calls affected without a fix may
// never come out as fixed.

#include "assure/advisory_inventory.h"
#include "assure/advisory_match.h"
#include "base/check.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace ringfence::assure;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  (void)ParseInventory(text, "fuzz");
  auto bulletin = ParseCsaf(text, "fuzz");
  if (!bulletin.has_value()) {
    return 0;
  }
  const std::vector<Bulletin> all = {std::move(*bulletin)};
  const AdvisoryIndex index(all);
  std::size_t asked = 0;
  for (const Flaw& flaw : all.front().flaws) {
    for (const BulletinRow& row : flaw.rows) {
      for (const ProductVersion& fix : row.fixes) {
        if (++asked > 8) {
          return 0;
        }
        const auto query = index.Ask(row.product, row.platform.name, fix.text);
        if (!query.has_value()) {
          continue;
        }
        for (const FlawVerdict& verdict : index.Match(*query)) {
          RINGFENCE_CHECK(!verdict.said.empty() && !verdict.said.front().why.empty());
        }
      }
    }
  }
  return 0;
}
