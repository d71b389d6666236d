// Goal: no text makes the reader and planner of MIG layouts do anything but answer, and no layout
// is planned that the board's rules forbid.
// Method: the bytes as a layout for every board; what is read must survive being written, what is
// planned must pass the check, which shares no code with the search.

#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "gpu/mig_layout.h"

namespace gpu = ringfence::gpu;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  for (const gpu::PartitionBoard& board : gpu::PartitionBoards()) {
    (void)gpu::PlanPartition(board, text);
  }
  const auto wishes = gpu::ParseMigLayout(text);
  if (!wishes.has_value()) {
    return 0;
  }
  const auto again = gpu::ParseMigLayout(gpu::FormatMigLayout(*wishes));
  if (gpu::FormatMigLayout(*wishes).size() <= gpu::kMigLayoutBytesMax &&
      (!again.has_value() || *again != *wishes)) {
    std::abort();
  }
  for (const gpu::MigBoard& board : gpu::MigBoards()) {
    if (const auto plan = gpu::PlanMigLayout(board, *wishes); plan.has_value()) {
      if (!gpu::CheckMigInstances(board, *plan).has_value()) {
        std::abort();
      }
    }
  }
  return 0;
}
