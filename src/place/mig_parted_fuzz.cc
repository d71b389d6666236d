// Goal: no text makes the reader of mig-parted files do anything but answer.
// Method: the bytes as a file; every layout that is read is checked against every board.

#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "place/mig_parted.h"

namespace place = ringfence::place;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto parted = place::ParseMigParted(text, "fuzz.yaml");
  if (!parted.has_value()) {
    return 0;
  }
  for (const place::MigConfig& config : parted->configs) {
    for (const place::MigVerdict& verdict : place::CheckMigConfig(config)) {
      const auto board = ringfence::gpu::FindMigBoard(verdict.board);
      if (verdict.kind == place::MigVerdict::Kind::kPossible &&
          !ringfence::gpu::CheckMigInstances(**board, verdict.instances).has_value()) {
        std::abort();
      }
    }
  }
  return 0;
}
