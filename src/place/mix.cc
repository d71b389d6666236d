#include "place/mix.h"

#include <random>

namespace ringfence::place {
namespace {

struct Part {
  int percent;
  What what;
  std::string_view profile;  // or
  std::uint32_t gpus;
};
constexpr Part kParts[] = {
    {22, What::kProfile, "1g.18gb", 0}, {8, What::kProfile, "1g.35gb", 0},
    {12, What::kProfile, "2g.35gb", 0}, {10, What::kProfile, "3g.71gb", 0},
    {4, What::kProfile, "4g.71gb", 0},  {10, What::kProfile, "1g.10gb", 0},
    {6, What::kProfile, "2g.20gb", 0},  {6, What::kProfile, "3g.40gb", 0},
    {4, What::kProfile, "1g.6gb", 0},   {2, What::kProfile, "2g.12gb", 0},
    {8, What::kWhole, "", 1},           {2, What::kWhole, "", 2},
    {2, What::kWhole, "", 4},           {4, What::kNoGpu, "", 0},
};

NodeKind Kind(std::string_view board, std::uint32_t gpus, std::uint32_t cpus,
              std::uint32_t memory_gib) {
  NodeKind kind{std::string(board), cpus * 1000, memory_gib * 1024, gpus, 0, nullptr};
  kind.board = gpu::FindMigBoard(board).value();
  kind.gpu_memory_mib = kind.board->profiles.back().memory_mib;
  return kind;
}

}  // namespace

Mix MakeMigMix(std::uint64_t seed, std::uint32_t nodes) {
  Mix mix;
  mix.nodes.kinds = {Kind("H200-141", 8, 128, 1024), Kind("A100-80", 8, 128, 1024),
                     Kind("A30-24", 4, 64, 512)};
  for (std::uint32_t i = 0; i < nodes; ++i) {
    mix.nodes.nodes.push_back(i % 10 < 6 ? 0 : i % 10 < 9 ? 1 : 2);
  }
  std::mt19937_64 dice(seed);
  const double until = 1.3 * static_cast<double>(mix.nodes.gpus()) * kIdle;
  for (double asked = 0; asked < until && mix.pods.size() < kTraceRowsMax;) {
    int drawn = static_cast<int>(dice() % 100);
    const Part* part = kParts;
    while (drawn >= part->percent) {
      drawn -= part++->percent;
    }
    Demand demand{.what = part->what, .gpus = part->gpus, .profile = std::string(part->profile)};
    const std::uint64_t milli = MilliOf(demand, mix.nodes.kinds);
    const std::uint64_t size = demand.what == What::kNoGpu ? 250 : milli;
    static constexpr std::uint32_t kHalves[] = {1, 2, 2, 4};
    const std::uint32_t halves = kHalves[dice() % 4];
    demand.cpu_milli = static_cast<std::uint32_t>(size * 6 * halves);  // 1.5 for an eighth
    demand.memory_mib = static_cast<std::uint32_t>(size * 6 * 1024 * 8 * halves / 1000);
    asked += static_cast<double>(milli);
    mix.pods.push_back({std::move(demand), static_cast<std::int64_t>(mix.pods.size())});
  }
  return mix;
}

}  // namespace ringfence::place
