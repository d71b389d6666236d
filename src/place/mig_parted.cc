#include "place/mig_parted.h"

#include <algorithm>
#include <charconv>

#include "base/closest.h"
#include "wire/yaml.h"

namespace ringfence::place {
namespace {

using wire::YamlNode;
using wire::YamlProblem;
using wire::YamlProblems;
using wire::YamlReader;

constexpr std::size_t kFilterMax = 64;
constexpr std::size_t kEntriesMax = 256;
constexpr std::size_t kDevicesMax = 64;

std::optional<std::uint32_t> Number(const YamlNode& node, std::uint32_t most) {
  std::uint32_t value = 0;
  const char* end = node.text.data() + node.text.size();
  const auto [at, error] = std::from_chars(node.text.data(), end, value);
  if (node.kind != YamlNode::Kind::kText || node.text.empty() || error != std::errc{} ||
      at != end || value > most) {
    return std::nullopt;
  }
  return value;
}

// Reads one file; what is wrong is collected.
class PartedReader {
 public:
  PartedReader(const std::string& file, YamlProblems& problems)
      : file_(file), problems_(problems) {}

  MigPartedFile File(const YamlNode& root) {
    MigPartedFile parted{file_, {}};
    YamlReader reader(&root, "", {file_, root.line}, problems_);
    if (const auto version = reader.Text("version"); version && version->text != "v1") {
      reader.Problem("version", version->line, "\"" + version->text + "\" is not known",
                     "write v1");
    }
    const YamlNode* configs = reader.Any("mig-configs");
    if (configs == nullptr || configs->kind != YamlNode::Kind::kMap) {
      reader.Problem("mig-configs", reader.LineOf("mig-configs"),
                     "must be a map of names to layouts");
    } else if (configs->members.size() > kMigConfigsMax) {
      reader.Problem("mig-configs", configs->line,
                     "more than " + std::to_string(kMigConfigsMax) + " layouts");
    } else {
      for (const wire::YamlMember& member : configs->members) {
        parted.configs.push_back(Config(member));
      }
    }
    reader.Finish();
    return parted;
  }

 private:
  void Problem(int line, const std::string& path, std::string what) {
    problems_.Add(YamlProblem{file_, line, path, std::move(what)});
  }

  MigConfig Config(const wire::YamlMember& member) {
    const std::string path = "mig-configs." + member.key;
    MigConfig config{member.key, member.line, {}};
    if (member.value.kind != YamlNode::Kind::kList || member.value.items.empty() ||
        member.value.items.size() > kEntriesMax) {
      Problem(member.line, path, "must be a list of entries for devices");
      return config;
    }
    for (std::size_t i = 0; i < member.value.items.size(); ++i) {
      config.entries.push_back(Entry(member.value.items[i], path + "[" + std::to_string(i) + "]"));
    }
    return config;
  }

  MigEntry Entry(const YamlNode& node, const std::string& path) {
    YamlReader reader(&node, path, {file_, node.line}, problems_);
    MigEntry entry;
    entry.line = node.line;
    Filter(reader, entry);
    Devices(reader, entry);
    const YamlNode* enabled = reader.Any("mig-enabled");
    entry.enabled = enabled != nullptr && enabled->text == "true";
    if (reader.is_map() && !entry.enabled && (enabled == nullptr || enabled->text != "false")) {
      reader.Problem("mig-enabled", reader.LineOf("mig-enabled"), "must be true or false");
    }
    if (const YamlNode* devices = reader.Any("mig-devices")) {
      Instances(reader, *devices, entry);
    } else if (entry.enabled && reader.is_map()) {
      reader.Problem("mig-devices", reader.line(), "is missing",
                     "write {} for MIG without instances");
    }
    if (!entry.enabled && !entry.wishes.empty()) {
      reader.Problem("mig-devices", reader.LineOf("mig-devices"),
                     "instances, and MIG is not enabled");
    }
    reader.Finish();
    return entry;
  }

  static void Filter(YamlReader& reader, MigEntry& entry) {
    const YamlNode* filter = reader.Any("device-filter");
    if (filter == nullptr) {
      return;
    }
    if (filter->kind == YamlNode::Kind::kText) {
      entry.device_filter = {filter->text};
    } else {
      for (const wire::YamlText& text : reader.Texts("device-filter", 1, kFilterMax)) {
        entry.device_filter.push_back(text.text);
      }
    }
    for (const std::string& id : entry.device_filter) {
      const bool good = id.size() == 10 && id.starts_with("0x") &&
                        id.find_first_not_of("0123456789abcdefABCDEF", 2) == id.npos;
      if (!good) {
        reader.Problem("device-filter", filter->line,
                       "\"" + id + "\" is no device and vendor such as 0x233510DE");
      }
    }
  }

  static void Devices(YamlReader& reader, MigEntry& entry) {
    const YamlNode* devices = reader.Any("devices");
    if (devices == nullptr) {
      if (reader.is_map()) {
        reader.Problem("devices", reader.line(), "is missing", "write all, or a list of numbers");
      }
      return;
    }
    if (devices->kind == YamlNode::Kind::kText && devices->text == "all") {
      return;
    }
    std::vector<std::uint32_t> numbers;
    bool good = devices->kind == YamlNode::Kind::kList && devices->items.size() <= kDevicesMax;
    for (const YamlNode& item : devices->items) {
      const auto number = Number(item, kDevicesMax - 1);
      good = good && number.has_value();
      numbers.push_back(number.value_or(0));
    }
    if (!good) {
      reader.Problem("devices", devices->line, "must be all, or a list of GPUs by number");
      return;
    }
    entry.devices = std::move(numbers);
  }

  static void Instances(YamlReader& reader, const YamlNode& devices, MigEntry& entry) {
    if (devices.kind != YamlNode::Kind::kMap || devices.members.size() > kFilterMax) {
      reader.Problem("mig-devices", devices.line, "must be a map of profiles to numbers");
      return;
    }
    for (const wire::YamlMember& member : devices.members) {
      const auto count = Number(member.value, 64);
      if (!count) {
        reader.Problem("mig-devices." + member.key, member.line,
                       "must be a whole number from 0 to 64");
      } else if (*count > 0) {
        entry.wishes.push_back({member.key, *count, {}});
      }
    }
  }

  const std::string& file_;
  YamlProblems& problems_;
};

bool HasAll(const gpu::MigBoard& board, const std::vector<gpu::MigWish>& wishes) {
  return std::all_of(wishes.begin(), wishes.end(), [&](const gpu::MigWish& wish) {
    return board.Find(wish.profile) != gpu::MigBoard::npos;
  });
}

MigVerdict Judge(const MigEntry& entry, const gpu::MigBoard& board) {
  MigVerdict verdict{entry.line, board.name, MigVerdict::Kind::kPossible, {}, {}};
  auto plan = gpu::PlanMigLayout(board, entry.wishes);
  if (plan.has_value()) {
    verdict.instances = std::move(*plan);
  } else {
    verdict.kind = MigVerdict::Kind::kImpossible;
    verdict.reason = plan.error().message;
  }
  return verdict;
}

bool Names(const MigEntry& entry, const gpu::MigBoard& board) {
  return entry.device_filter.empty() ||
         std::any_of(entry.device_filter.begin(), entry.device_filter.end(),
                     [&](const std::string& id) { return gpu::MigBoardOfPci(id) == &board; });
}

}  // namespace

Result<const MigConfig*> MigPartedFile::Find(std::string_view name) const {
  std::vector<std::string_view> names;
  for (const MigConfig& config : configs) {
    if (config.name == name) {
      return &config;
    }
    names.emplace_back(config.name);
  }
  const auto near = Closest(name, names);
  return Error{Code::kNotFound,
               file + " has no layout \"" + std::string(name) + "\"" +
                   (near ? " (did you mean " + *near + "?)" : ""),
               "it has " + std::to_string(configs.size()) + " of them", "config"};
}

Result<MigPartedFile> ParseMigParted(std::string_view text, const std::string& file) {
  YamlProblems problems;
  const std::vector<YamlNode> documents = wire::ParseYaml(text, file, problems);
  MigPartedFile parted{file, {}};
  if (problems.empty() && documents.size() != 1) {
    problems.Add(YamlProblem{file, 0, {}, "must be one YAML document"});
  }
  if (problems.empty()) {
    parted = PartedReader(file, problems).File(documents.front());
  }
  if (!problems.empty()) {
    return Error{Code::kInvalidArgument, problems.Text()};
  }
  return parted;
}

std::vector<MigVerdict> CheckMigConfig(const MigConfig& config) {
  std::vector<MigVerdict> verdicts;
  for (const MigEntry& entry : config.entries) {
    const std::size_t before = verdicts.size();
    for (const gpu::MigBoard& board : gpu::MigBoards()) {
      const bool named = !entry.device_filter.empty() && Names(entry, board);
      const bool meant =
          entry.device_filter.empty() && !entry.wishes.empty() && HasAll(board, entry.wishes);
      if (named || meant) {
        verdicts.push_back(Judge(entry, board));
      }
    }
    for (const std::string& id : entry.device_filter) {
      if (gpu::MigBoardOfPci(id) == nullptr) {
        verdicts.push_back({entry.line,
                            id,
                            MigVerdict::Kind::kUnknownBoard,
                            "board " + id + " is not known here: its rules were not checked",
                            {}});
      }
    }
    if (verdicts.size() == before && !entry.wishes.empty()) {
      verdicts.push_back({entry.line,
                          "",
                          MigVerdict::Kind::kUnknownBoard,
                          "no board that is known here has " + gpu::FormatMigLayout(entry.wishes) +
                              ": its rules were not checked",
                          {}});
    }
  }
  return verdicts;
}

Result<std::vector<gpu::MigWish>> WishesFor(const MigConfig& config, const gpu::MigBoard& board,
                                            const std::string& file) {
  for (const MigEntry& entry : config.entries) {
    if (!Names(entry, board)) {
      continue;
    }
    if (!entry.enabled) {
      return Error{Code::kFailedPrecondition, file + ":" + std::to_string(entry.line) +
                                                  ": layout " + config.name + " turns MIG off"};
    }
    return entry.wishes;
  }
  return Error{Code::kInvalidArgument,
               file + ":" + std::to_string(config.line) + ": layout " + config.name +
                   " has no entry for " + board.name,
               {},
               "config"};
}

}  // namespace ringfence::place
