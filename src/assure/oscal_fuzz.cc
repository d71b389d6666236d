// Any bytes as an OSCAL catalog and as a profile: no crash, refusals say why, and what a profile
// chooses is in the catalog, once and in its order.

#include <set>

#include "assure/oscal_catalog.h"
#include "base/check.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace ringfence::assure;
  const std::string text(reinterpret_cast<const char*>(data), size);
  auto catalog = ParseOscalCatalog(text, "fuzz");
  const auto profile = ParseOscalProfile(text, "fuzz");
  RINGFENCE_CHECK(catalog.has_value() || !catalog.error().message.empty());
  if (!profile.has_value()) {
    RINGFENCE_CHECK(!profile.error().message.empty());
    return 0;
  }
  OscalCatalog small;
  if (!catalog.has_value()) {
    for (const char* id : {"ac-1", "ac-2", "ac-2.1", "at-1"}) {
      const std::string name(id);
      small.controls.push_back({.id = name,
                                .title = name,
                                .group = "g",
                                .parent = name == "ac-2.1" ? "ac-2" : "",
                                .withdrawn = false});
    }
  }
  const auto chosen = ResolveProfile(*profile, catalog.has_value() ? *catalog : small);
  std::set<std::string> seen;
  for (std::size_t i = 0; chosen.has_value() && i < chosen->size(); ++i) {
    RINGFENCE_CHECK(seen.insert((*chosen)[i].id).second);
  }
  return 0;
}
