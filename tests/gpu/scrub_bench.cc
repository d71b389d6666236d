// How far a scrub is from what the card's memory allows: the vendor's memset and a kernel that only
// reads, over the same bytes, against our passes, by turns in one run. Prints one JSON object;
// times are medians in milliseconds.
//   scrub_bench --driver-root R [ROUNDS]
//   scrub_bench --simulate LIB-FOLDER [ROUNDS]    tries the program, measures nothing of interest
// Overwrites the memory of the first card: run it where no one else uses it.
//
// `ratio` is overwriting and reading back against memset and read; `ratio_whole` is everything that
// a scrub does to memory and chip (residue, pattern, zeros) against the same number of memsets and
// reads.

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "gpu/card.h"
#include "gpu/cuda_driver.h"
#include "gpu/library.h"
#include "simulated.h"

namespace ringfence::gpu {
namespace {

constexpr int kRoundsMax = 1000;
constexpr std::uint64_t kSeed = 0x5eed5eed5eed5eedULL;

struct Series {
  const char* name;
  std::function<Status()> pass;
  std::vector<double> milliseconds{};

  double Median() const {
    std::vector<double> sorted = milliseconds;
    std::sort(sorted.begin(), sorted.end());
    return sorted[sorted.size() / 2];
  }
};

Status Measure(Series& series) {
  const auto start = std::chrono::steady_clock::now();
  RINGFENCE_TRY(series.pass());
  series.milliseconds.push_back(
      std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count());
  return {};
}

// A pass that must find nothing wrong.
Status Clean(const Result<std::uint64_t>& wrong) {
  RINGFENCE_TRY(wrong);
  return *wrong == 0 ? Status()
                     : Status(Error{Code::kCorrupt, std::to_string(*wrong) + " bytes are wrong"});
}

void Print(const std::vector<Series>& all, std::uint64_t bytes, bool simulated) {
  const auto median = [&](std::size_t index) { return all[index].Median(); };
  const double floor = median(0) + median(1);
  const double scrub = median(3) + median(4);
  const double whole = median(2) + median(3) + median(4) + median(5) + median(6) + median(7);
  const double whole_floor = 2 * median(0) + 3 * median(1);
  std::printf("{\"simulated\":%s,\"bytes\":%llu,\"rounds\":%zu", simulated ? "true" : "false",
              static_cast<unsigned long long>(bytes), all[0].milliseconds.size());
  for (const Series& series : all) {
    const auto [least, most] =
        std::minmax_element(series.milliseconds.begin(), series.milliseconds.end());
    std::printf(",\"%s_ms\":%.3f,\"%s_ms_range\":[%.3f,%.3f]", series.name, series.Median(),
                series.name, *least, *most);
  }
  std::printf(
      ",\"floor_ms\":%.3f,\"scrub_ms\":%.3f,\"ratio\":%.4f,\"whole_floor_ms\":%.3f,"
      "\"whole_ms\":%.3f,\"ratio_whole\":%.4f}\n",
      floor, scrub, scrub / floor, whole_floor, whole, whole / whole_floor);
}

Status Run(const std::string& root, int rounds) {
  RINGFENCE_ASSIGN(const Library library, Library::Open(root, kCudaName));
  const cuda::Api api = LoadCuda(library);
  RINGFENCE_TRY(CheckCuda(api, library.path()));
  cuda::Device device = 0;
  if (const auto code = api.cuInit(0); code != cuda::kSuccess) {
    return Error{Code::kUnavailable, "cuInit: " + CudaWords(api, code)};
  }
  if (const auto code = api.cuDeviceGet(&device, 0); code != cuda::kSuccess) {
    return Error{Code::kUnavailable, "cuDeviceGet: " + CudaWords(api, code)};
  }
  CudaDriver driver(api, "the first card", device);
  Card card(driver, "the first card", kSeed);
  RINGFENCE_TRY(card.Open());
  RINGFENCE_TRY(card.Warm());
  RINGFENCE_TRY(card.TakeAll());
  OnChipScrub chip;
  std::vector<Series> all = {
      {"floor_memset", [&] { return card.FloorWrite(); }},
      {"floor_read", [&] { return card.FloorRead(); }},
      {"count_residue", [&] { return Clean(card.Count(Content::kZeros)); }},
      {"write_pattern", [&] { return card.Fill(Content::kPattern); }},
      {"read_pattern", [&] { return Clean(card.Count(Content::kPattern)); }},
      {"write_zeros", [&] { return card.Fill(Content::kZeros); }},
      {"read_zeros", [&] { return Clean(card.Count(Content::kZeros)); }},
      {"clear_on_chip", [&] { return Clean(card.ClearOnChip(chip)); }},
  };
  for (int round = 0; round < rounds; ++round) {
    for (Series& series : all) {
      RINGFENCE_TRY(Measure(series));
    }
  }
  Print(all, card.taken_bytes(), library.simulated());
  return card.Release();
}

}  // namespace
}  // namespace ringfence::gpu

int main(int argc, char** argv) {
  const std::string_view option = argc >= 3 ? argv[1] : "";
  const int rounds = argc == 4 ? std::atoi(argv[3]) : 11;
  if ((option != "--driver-root" && option != "--simulate") || argc > 4 || rounds < 1 ||
      rounds > ringfence::gpu::kRoundsMax) {
    std::fprintf(stderr, "usage: scrub_bench --driver-root R | --simulate LIB-FOLDER [ROUNDS]\n");
    return 2;
  }
  const auto run = [rounds](const std::string& root) {
    const ringfence::Status status = ringfence::gpu::Run(root, rounds);
    if (!status.has_value()) {
      std::fprintf(stderr, "scrub_bench: %s\n", status.error().message.c_str());
      return 1;
    }
    return 0;
  };
  return option == "--simulate" ? ringfence::gpu::WithSimulatedRoot(argv[2], run) : run(argv[2]);
}
