#include "place/trace.h"

#include <algorithm>
#include <charconv>
#include <map>
#include <optional>

namespace ringfence::place {
namespace {

constexpr std::size_t kColumnsMax = 64;
constexpr std::size_t kFieldBytesMax = 256;

std::string Quoted(std::string_view text) {  // from a file to a terminal
  std::string out = "\"";
  for (const char c : text.substr(0, 40)) {
    out += c >= ' ' && c <= '~' ? c : '?';
  }
  return out + (text.size() > 40 ? "...\"" : "\"");
}

// Lines of comma-separated fields under a header. No quotes: the trace has none.
class CsvReader {
 public:
  CsvReader(std::string_view text, const std::string& file) : rest_(text), file_(file) {}

  Status Header(const std::vector<std::string_view>& needed) {
    if (rest_.starts_with("\xEF\xBB\xBF")) {
      rest_.remove_prefix(3);
    }
    RINGFENCE_ASSIGN(const bool there, Next());
    if (!there) {
      return Wrong(0, "the file is empty", "its first line names the columns");
    }
    names_ = fields_;
    for (const std::string_view name : needed) {
      if (std::find(names_.begin(), names_.end(), name) == names_.end()) {
        return Wrong(0, "no column " + Quoted(name), "the first line must name it");
      }
    }
    return {};
  }

  // Reads a line; false at the end. Empty lines are passed over.
  Result<bool> Next() {
    do {
      if (rest_.empty()) {
        return false;
      }
      ++line_;
      const std::size_t end = rest_.find('\n');
      std::string_view line = rest_.substr(0, end);
      rest_ = end == rest_.npos ? std::string_view{} : rest_.substr(end + 1);
      if (line.ends_with('\r')) {
        line.remove_suffix(1);
      }
      fields_.clear();
      while (fields_.size() < kColumnsMax) {
        const std::size_t comma = line.find(',');
        fields_.push_back(line.substr(0, comma));
        if (fields_.back().size() > kFieldBytesMax) {
          return Wrong(fields_.size(), "longer than " + std::to_string(kFieldBytesMax) + " bytes");
        }
        if (comma == line.npos) {
          break;
        }
        line.remove_prefix(comma + 1);
      }
    } while (fields_.size() == 1 && fields_[0].empty());
    if (!names_.empty() && fields_.size() != names_.size()) {
      return Wrong(std::min(fields_.size(), names_.size()),
                   std::to_string(fields_.size()) + " fields, and the first line names " +
                       std::to_string(names_.size()));
    }
    return true;
  }

  std::string_view Text(std::string_view name) const {
    const auto column = Column(name);
    return column ? fields_[*column] : std::string_view{};
  }
  // Plain digits, perhaps with a fraction of zeros ("12.0").
  Result<std::uint64_t> Number(std::string_view name, std::uint64_t most) const {
    const auto column = Column(name);
    std::string_view text = fields_[*column];
    if (const std::size_t dot = text.find('.');
        dot != text.npos && dot > 0 && text.find_first_not_of('0', dot + 1) == text.npos) {
      text = text.substr(0, dot);
    }
    std::uint64_t value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (text.empty() || error != std::errc{} || end != text.data() + text.size() || value > most) {
      return Wrong(*column + 1, std::string(name) + ": " + Quoted(fields_[*column]) +
                                    " is no whole number from 0 to " + std::to_string(most));
    }
    return value;
  }
  Error Wrong(std::string_view name, const std::string& what) const {
    return Wrong(Column(name).value_or(0) + 1, std::string(name) + ": " + what);
  }

 private:
  std::optional<std::size_t> Column(std::string_view name) const {
    const auto found = std::find(names_.begin(), names_.end(), name);
    return found == names_.end() ? std::nullopt
                                 : std::optional<std::size_t>(found - names_.begin());
  }
  Error Wrong(std::size_t column, const std::string& what, std::string hint = {}) const {
    return Error{Code::kInvalidArgument,
                 file_ + ":" + std::to_string(std::max<std::size_t>(line_, 1)) + ":" +
                     std::to_string(std::max<std::size_t>(column, 1)) + ": " + what,
                 std::move(hint)};
  }

  std::string_view rest_;
  const std::string& file_;
  std::size_t line_ = 0;
  std::vector<std::string_view> names_;
  std::vector<std::string_view> fields_;
};

constexpr std::uint64_t kMost32 = 0x7FFFFFFF;

Result<Demand> DemandOf(const CsvReader& csv) {
  Demand demand;
  RINGFENCE_ASSIGN(const std::uint64_t cpu, csv.Number("cpu_milli", kMost32));
  RINGFENCE_ASSIGN(const std::uint64_t memory, csv.Number("memory_mib", kMost32));
  RINGFENCE_ASSIGN(const std::uint64_t gpus, csv.Number("num_gpu", kGpusPerNodeMax));
  RINGFENCE_ASSIGN(const std::uint64_t milli, csv.Number("gpu_milli", kIdle));
  demand.cpu_milli = static_cast<std::uint32_t>(cpu);
  demand.memory_mib = static_cast<std::uint32_t>(memory);
  if (const std::string_view profile = csv.Text("profile"); !profile.empty()) {
    demand.what = What::kProfile;
    demand.profile = profile;
  } else if (gpus > 1 || milli == kIdle) {
    demand.what = gpus == 0 ? What::kNoGpu : What::kWhole;
    demand.gpus = static_cast<std::uint32_t>(gpus);
    if (gpus > 1 && milli != kIdle) {
      return csv.Wrong("gpu_milli", "several GPUs are whole ones: 1000");
    }
  } else if (gpus == 1) {
    if (milli == 0) {
      return csv.Wrong("gpu_milli", "one GPU, and none of it: from 1 to 1000");
    }
    demand.what = What::kShare;
    demand.milli = static_cast<std::uint32_t>(milli);
  }
  if (demand.what != What::kNoGpu) {
    std::string_view spec = csv.Text("gpu_spec");
    while (!spec.empty()) {
      const std::size_t bar = spec.find('|');
      if (bar != 0) {
        demand.models.emplace_back(spec.substr(0, bar));
      }
      spec = bar == spec.npos ? std::string_view{} : spec.substr(bar + 1);
    }
    std::sort(demand.models.begin(), demand.models.end());
  }
  return demand;
}

Error TooMany(const std::string& file) {
  return Error{Code::kExhausted, file + ": more than " + std::to_string(kTraceRowsMax) + " lines"};
}

}  // namespace

std::uint64_t TraceNodes::gpus() const {
  std::uint64_t sum = 0;
  for (const std::uint16_t kind : nodes) {
    sum += kinds[kind].gpus;
  }
  return sum;
}

Result<TraceNodes> ParseTraceNodes(std::string_view text, const std::string& file) {
  CsvReader csv(text, file);
  RINGFENCE_TRY(csv.Header({"cpu_milli", "memory_mib", "gpu", "model"}));
  TraceNodes nodes;
  std::map<NodeKind, std::uint16_t> known;
  for (;;) {
    RINGFENCE_ASSIGN(const bool there, csv.Next());
    if (!there) {
      break;
    }
    if (nodes.nodes.size() == kTraceRowsMax / 2) {
      return TooMany(file);
    }
    NodeKind kind;
    RINGFENCE_ASSIGN(const std::uint64_t cpu, csv.Number("cpu_milli", kMost32));
    RINGFENCE_ASSIGN(const std::uint64_t memory, csv.Number("memory_mib", kMost32));
    RINGFENCE_ASSIGN(const std::uint64_t gpus, csv.Number("gpu", kGpusPerNodeMax));
    kind.model = csv.Text("model");
    kind.cpu_milli = static_cast<std::uint32_t>(cpu);
    kind.memory_mib = static_cast<std::uint32_t>(memory);
    kind.gpus = static_cast<std::uint32_t>(gpus);
    // A model that is the name of a board with MIG can be cut.
    if (const auto board = gpu::FindMigBoard(kind.model); board.has_value()) {
      kind.board = *board;
    }
    const auto [found, added] = known.try_emplace(kind, nodes.kinds.size());
    if (added) {
      if (nodes.kinds.size() == kKindsMax) {
        return csv.Wrong("model", "more than " + std::to_string(kKindsMax) + " kinds of nodes");
      }
      nodes.kinds.push_back(kind);
    }
    nodes.nodes.push_back(found->second);
  }
  if (nodes.nodes.empty()) {
    return Error{Code::kInvalidArgument, file + ":1:1: no node below the first line"};
  }
  return nodes;
}

Result<std::vector<TracePod>> ParseTracePods(std::string_view text, const std::string& file) {
  CsvReader csv(text, file);
  RINGFENCE_TRY(csv.Header({"cpu_milli", "memory_mib", "num_gpu", "gpu_milli", "creation_time"}));
  std::vector<TracePod> pods;
  for (;;) {
    RINGFENCE_ASSIGN(const bool there, csv.Next());
    if (!there) {
      break;
    }
    if (pods.size() == kTraceRowsMax) {
      return TooMany(file);
    }
    RINGFENCE_ASSIGN(Demand demand, DemandOf(csv));
    RINGFENCE_ASSIGN(const std::uint64_t created,
                     csv.Number("creation_time", std::uint64_t{1} << 60U));
    pods.push_back({std::move(demand), static_cast<std::int64_t>(created)});
  }
  if (pods.empty()) {
    return Error{Code::kInvalidArgument, file + ":1:1: no pod below the first line"};
  }
  std::stable_sort(pods.begin(), pods.end(),
                   [](const TracePod& a, const TracePod& b) { return a.created < b.created; });
  return pods;
}

std::vector<TypicalTask> TypicalOf(const std::vector<TracePod>& pods) {
  std::map<Demand, double> counts;
  for (const TracePod& pod : pods) {
    counts[pod.demand] += 1;
  }
  std::vector<TypicalTask> tasks;
  for (const auto& [demand, count] : counts) {
    tasks.push_back({demand, count});
  }
  std::stable_sort(tasks.begin(), tasks.end(),
                   [](const TypicalTask& a, const TypicalTask& b) { return a.weight > b.weight; });
  tasks.resize(std::min(tasks.size(), kTypicalMax));
  return tasks;
}

std::uint64_t MilliOf(const Demand& demand, const std::vector<NodeKind>& kinds) {
  switch (demand.what) {
    case What::kNoGpu:
    case What::kGpuMemory:
      return 0;
    case What::kWhole:
      return std::uint64_t{demand.gpus} * kIdle;
    case What::kShare:
      return demand.milli;
    case What::kProfile:
      for (const NodeKind& kind : kinds) {
        if (kind.board != nullptr && kind.board->Find(demand.profile) != gpu::MigBoard::npos) {
          return kind.board->profiles[kind.board->Find(demand.profile)].slices * kIdle /
                 kind.board->slices;
        }
      }
      return 0;
  }
  return 0;
}

}  // namespace ringfence::place
