#include "gpu/mig_board.h"

#include <algorithm>
#include <array>
#include <cctype>

#include "base/closest.h"

namespace ringfence::gpu {
namespace {

// The boards of seven compute and eight memory slices differ in sizes and names only.
struct SevenSlices {
  std::string_view name, product;
  std::array<std::uint32_t, 4> gb;   // of 1, 2, 4 and 8 memory slices, as the names say them
  std::array<std::uint32_t, 4> mib;  // as the driver reports them
  // Of 1g, 1g with two memory slices, 2g, 3g, 4g, 7g.
  std::array<std::uint32_t, 6> processors;
  Known placements;
  Known memory;
  std::vector<std::string> pci_ids;
};

MigBoard Make(const SevenSlices& board) {
  const auto name = [](std::uint32_t compute, std::uint32_t gb) {
    return std::to_string(compute) + "g." + std::to_string(gb) + "gb";
  };
  const auto& [one, two, four, eight] = board.gb;
  const auto& mib = board.mib;
  const auto& sm = board.processors;
  const std::vector<std::uint32_t> each = {0, 1, 2, 3, 4, 5, 6};
  return {std::string(board.name),
          std::string(board.product),
          7,
          8,
          board.placements,
          board.memory,
          board.pci_ids,
          {{19, name(1, one), 1, 1, mib[0], sm[0], 7, false, each},
           {20, name(1, one) + "+me", 1, 1, mib[0], sm[0], 1, true, each},
           {15, name(1, two), 1, 2, mib[1], sm[1], 4, false, {0, 2, 4, 6}},
           {14, name(2, two), 2, 2, mib[1], sm[2], 3, false, {0, 2, 4}},
           {9, name(3, four), 3, 4, mib[2], sm[3], 2, false, {0, 4}},
           {5, name(4, four), 4, 4, mib[2], sm[4], 1, false, {0}},
           {0, name(7, eight), 7, 8, mib[3], sm[5], 1, false, {0}}}};
}

MigBoard MakeA30() {
  return {"A30-24",
          "NVIDIA A30 24 GB",
          4,
          4,
          Known::kReported,
          Known::kReported,
          {"0x20B710DE"},
          {{14, "1g.6gb", 1, 1, 5952, 14, 4, false, {0, 1, 2, 3}},
           {21, "1g.6gb+me", 1, 1, 5952, 14, 1, true, {0, 1, 2, 3}},
           {5, "2g.12gb", 2, 2, 11968, 28, 2, false, {0, 2}},
           {6, "2g.12gb+me", 2, 2, 11968, 28, 1, true, {0, 2}},
           {0, "4g.24gb", 4, 4, 24064, 56, 1, false, {0}}}};
}

// An eighth, a quarter, half and all of so many GB, in MiB: no instance gets more.
std::array<std::uint32_t, 4> Share(std::uint64_t gb) {
  const auto part = [&](std::uint64_t of) {
    return static_cast<std::uint32_t>(gb * 1'000'000'000 / of >> 20U);
  };
  return {part(8), part(4), part(2), part(1)};
}

std::vector<MigBoard> MakeAll() {
  constexpr std::array<std::uint32_t, 6> kAmpere = {14, 14, 28, 42, 56, 98};
  constexpr std::array<std::uint32_t, 6> kHopper = {16, 26, 32, 60, 64, 132};
  const std::vector<std::string> eighty = {"0x20B210DE", "0x20B510DE", "0x20F310DE", "0x20F510DE"};
  const std::vector<std::string> hopper = {"0x233010DE", "0x233110DE", "0x232210DE", "0x232410DE"};
  constexpr std::array<std::uint32_t, 6> kUnknown = {};
  constexpr Known kMeasured = Known::kMeasured;
  constexpr Known kReported = Known::kReported;
  constexpr Known kInferred = Known::kInferred;
  std::vector<MigBoard> boards = {MakeA30()};
  const std::vector<SevenSlices> seven = {
      {"A100-40",
       "NVIDIA A100 40 GB",
       {5, 10, 20, 40},
       {4864, 9856, 19968, 40192},
       kAmpere,
       kReported,
       kReported,
       {"0x20B010DE", "0x20B110DE", "0x20F110DE", "0x20F610DE"}},
      {"A100-80",
       "NVIDIA A100 80 GB",
       {10, 20, 40, 80},
       {9728, 19968, 40192, 80640},
       kAmpere,
       kReported,
       kReported,
       eighty},
      {"H100-80",
       "NVIDIA H100 80 GB",
       {10, 20, 40, 80},
       {9984, 20096, 40448, 81152},
       kHopper,
       kReported,
       kReported,
       hopper},
      {"H100-94",
       "NVIDIA H100 NVL 94 GB",
       {12, 24, 47, 94},
       Share(94),
       kHopper,
       kReported,
       kInferred,
       {"0x232110DE", "0x233A10DE"}},
      {"H100-96",
       "NVIDIA H100 96 GB, GH200, H20",
       {12, 24, 48, 96},
       Share(96),
       kUnknown,
       kInferred,
       kInferred,
       {"0x234210DE", "0x233D10DE", "0x20B610DE", "0x232910DE"}},
      {"H200-141",
       "NVIDIA H200 141 GB",
       {18, 35, 71, 141},
       {16384, 33280, 71424, 143360},
       kHopper,
       kMeasured,
       kMeasured,
       {"0x233510DE", "0x233B10DE"}},
      {"GH200-144",
       "NVIDIA GH200 144 GB",
       {18, 36, 72, 144},
       Share(144),
       kUnknown,
       kInferred,
       kInferred,
       {"0x234810DE"}},
      {"B200-180",
       "NVIDIA B200 180 GB",
       {23, 45, 90, 180},
       Share(180),
       kUnknown,
       kInferred,
       kInferred,
       {"0x290110DE"}},
      {"GB200-186",
       "NVIDIA GB200 186 GB",
       {23, 47, 93, 186},
       Share(186),
       kUnknown,
       kInferred,
       kInferred,
       {"0x294110DE"}},
      {"B300-269",
       "NVIDIA B300 269 GB",
       {34, 67, 135, 269},
       Share(269),
       kUnknown,
       kInferred,
       kInferred,
       {"0x318210DE"}},
      {"GB300-278",
       "NVIDIA GB300 278 GB",
       {35, 70, 139, 278},
       Share(278),
       kUnknown,
       kInferred,
       kInferred,
       {"0x31C210DE"}},
  };
  for (const SevenSlices& board : seven) {
    boards.push_back(Make(board));
  }
  return boards;
}

std::string Upper(std::string_view text) {
  std::string upper(text);
  for (char& c : upper) {
    c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  }
  return upper;
}

std::string Modes(const PartitionBoard& board) {
  std::string text;
  for (const PartitionMode& mode : board.modes) {
    for (const std::uint32_t nps : mode.memory) {
      text += (text.empty() ? "" : ", ") + mode.name + "/NPS" + std::to_string(nps);
    }
  }
  return text;
}

}  // namespace

std::string_view Name(Known known) {
  switch (known) {
    case Known::kMeasured:
      return "measured";
    case Known::kReported:
      return "reported";
    case Known::kInferred:
      return "inferred";
  }
  return "";
}

std::size_t MigBoard::Find(std::string_view profile) const {
  const auto found = std::find_if(profiles.begin(), profiles.end(),
                                  [&](const MigProfile& known) { return known.name == profile; });
  return found == profiles.end() ? npos : static_cast<std::size_t>(found - profiles.begin());
}

std::span<const MigBoard> MigBoards() {
  static const std::vector<MigBoard> kBoards = MakeAll();
  return kBoards;
}

Result<const MigBoard*> FindMigBoard(std::string_view name) {
  std::string all;
  std::vector<std::string_view> names;
  for (const MigBoard& board : MigBoards()) {
    if (board.name == Upper(name)) {
      return &board;
    }
    names.emplace_back(board.name);
    all += (all.empty() ? "" : ", ") + board.name;
  }
  const auto near = Closest(Upper(name), names);
  return Error{Code::kNotFound,
               "no board \"" + std::string(name) + "\" with MIG is known" +
                   (near ? " (did you mean " + *near + "?)" : ""),
               "there are " + all, "board"};
}

const MigBoard* MigBoardOfPci(std::string_view pci_id) {
  const std::string wanted = Upper(pci_id);
  for (const MigBoard& board : MigBoards()) {
    for (const std::string& id : board.pci_ids) {
      if (Upper(id) == wanted) {
        return &board;
      }
    }
  }
  return nullptr;
}

std::span<const PartitionBoard> PartitionBoards() {
  // Memory domains are physical quarters: with NPS1 every partition addresses all of the memory.
  static const std::vector<PartitionBoard> kBoards = {
      {"MI300X-192",
       "AMD Instinct MI300X 192 GB",
       8,
       196608,
       {{"SPX", 1, 8, {1}}, {"DPX", 2, 4, {1, 2}}, {"QPX", 4, 2, {1, 4}}, {"CPX", 8, 1, {1, 4}}}}};
  return kBoards;
}

Result<PartitionPlan> PlanPartition(const PartitionBoard& board, std::string_view text) {
  const std::size_t slash = text.find('/');
  const std::string compute = Upper(text.substr(0, slash));
  const std::string memory = slash == text.npos ? "NPS1" : Upper(text.substr(slash + 1));
  const Error unknown{Code::kInvalidArgument,
                      "\"" + std::string(text) + "\" is no partition mode of " + board.name,
                      "there are " + Modes(board), "layout"};
  for (const PartitionMode& mode : board.modes) {
    if (mode.name != compute) {
      continue;
    }
    for (const std::uint32_t nps : mode.memory) {
      if ("NPS" + std::to_string(nps) == memory) {
        return PartitionPlan{&mode, nps, board.memory_mib / nps, mode.partitions > nps};
      }
    }
    Error error = unknown;
    error.message = mode.name + " does not go with " + memory + " on " + board.name;
    return error;
  }
  return unknown;
}

}  // namespace ringfence::gpu
