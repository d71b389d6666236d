// `ringfence mig ...`: how GPUs can be cut. Works offline.

#include "cli/mig.h"

#include <algorithm>

#include "base/json.h"
#include "cli/commands.h"
#include "cli/console.h"
#include "cli/human.h"
#include "gpu/mig_layout.h"
#include "os/file.h"
#include "place/mig_parted.h"
#include "wire/yaml.h"

namespace ringfence::cli {
namespace {

std::string Slices(std::uint32_t start, std::uint32_t count) {
  return count == 1 ? std::to_string(start)
                    : std::to_string(start) + "-" + std::to_string(start + count - 1);
}

std::string Starts(const gpu::MigProfile& profile) {
  std::string text;
  for (const std::uint32_t start : profile.starts) {
    text += (text.empty() ? "" : ",") + std::to_string(start);
  }
  return "{" + text + "}:" + std::to_string(profile.slices);
}

std::string Memory(std::uint32_t mib) { return FormatSize(std::uint64_t{mib} << 20U); }

Json ProfileJson(const gpu::MigProfile& profile) {
  JsonArray starts;
  for (const std::uint32_t start : profile.starts) {
    starts.emplace_back(start);
  }
  return JsonObject{{"id", profile.id},
                    {"name", profile.name},
                    {"compute_slices", profile.compute_slices},
                    {"memory_slices", profile.slices},
                    {"memory_mib", profile.memory_mib},
                    {"processors", profile.processors},
                    {"count_max", profile.count_max},
                    {"media_extension", profile.media},
                    {"starts", std::move(starts)}};
}

Json BoardJson(const gpu::MigBoard& board) {
  JsonArray profiles;
  for (const gpu::MigProfile& profile : board.profiles) {
    profiles.push_back(ProfileJson(profile));
  }
  JsonArray ids;
  for (const std::string& id : board.pci_ids) {
    ids.emplace_back(id);
  }
  return JsonObject{{"board", board.name},
                    {"product", board.product},
                    {"compute_slices", board.compute_slices},
                    {"memory_slices", board.slices},
                    {"placements", Name(board.placements_known)},
                    {"memory", Name(board.memory_known)},
                    {"pci_ids", std::move(ids)},
                    {"profiles", std::move(profiles)}};
}

Json PartitionJson(const gpu::PartitionBoard& board) {
  JsonArray modes;
  for (const gpu::PartitionMode& mode : board.modes) {
    JsonArray memory;
    for (const std::uint32_t nps : mode.memory) {
      memory.emplace_back("NPS" + std::to_string(nps));
    }
    modes.push_back(JsonObject{{"mode", mode.name},
                               {"partitions", mode.partitions},
                               {"compute_dies", mode.compute_dies},
                               {"memory_modes", std::move(memory)}});
  }
  return JsonObject{{"board", board.name}, {"product", board.product}, {"modes", std::move(modes)}};
}

const gpu::PartitionBoard* FindPartitionBoard(const std::string& name) {
  for (const gpu::PartitionBoard& board : gpu::PartitionBoards()) {
    if (board.name == name || board.name == name + "-192") {
      return &board;
    }
  }
  return nullptr;
}

Result<int> Boards(Invocation& invocation) {
  const std::string only = invocation.parsed.Argument(0);
  const gpu::MigBoard* one = nullptr;
  const gpu::PartitionBoard* amd = only.empty() ? nullptr : FindPartitionBoard(only);
  if (!only.empty() && amd == nullptr) {
    RINGFENCE_ASSIGN(one, gpu::FindMigBoard(only));
  }
  Console& console = invocation.console;
  JsonArray boards;
  Table table({"BOARD", "PROFILE", "ID", "COMPUTE", "MEMORY", "SMS", "MOST", "PLACEMENTS"});
  for (const gpu::MigBoard& board : gpu::MigBoards()) {
    if (!only.empty() && &board != one) {
      continue;
    }
    boards.push_back(BoardJson(board));
    for (const gpu::MigProfile& profile : board.profiles) {
      table.Add({board.name, profile.name, std::to_string(profile.id),
                 std::to_string(profile.compute_slices),
                 (board.memory_known == gpu::Known::kInferred ? "about " : "") +
                     Memory(profile.memory_mib),
                 profile.processors == 0 ? "" : std::to_string(profile.processors),
                 std::to_string(profile.count_max), Starts(profile)});
    }
  }
  for (const gpu::PartitionBoard& board : gpu::PartitionBoards()) {
    if (!only.empty() && &board != amd) {
      continue;
    }
    boards.push_back(PartitionJson(board));
    for (const gpu::PartitionMode& mode : board.modes) {
      for (const std::uint32_t nps : mode.memory) {
        table.Add({board.name, mode.name + "/NPS" + std::to_string(nps), "",
                   std::to_string(mode.compute_dies), Memory(board.memory_mib / nps), "",
                   std::to_string(mode.partitions), "whole GPU"});
      }
    }
  }
  if (!console.table()) {
    console.Show(boards);
    return 0;
  }
  table.Print(console);
  return 0;
}

int ShowPlan(Console& console, const gpu::MigBoard& board,
             const std::vector<gpu::MigInstance>& plan) {
  JsonArray instances;
  Table table({"MEMORY SLICES", "PROFILE", "ID", "COMPUTE", "MEMORY"});
  std::uint32_t memory = 0;
  std::uint32_t compute = 0;
  for (const gpu::MigInstance& one : plan) {
    const gpu::MigProfile& profile = board.profiles[one.profile];
    memory += profile.slices;
    compute += profile.compute_slices;
    instances.push_back(JsonObject{{"profile", profile.name},
                                   {"profile_id", profile.id},
                                   {"start", one.start},
                                   {"size", profile.slices},
                                   {"compute_slices", profile.compute_slices},
                                   {"memory_mib", profile.memory_mib}});
    table.Add({Slices(one.start, profile.slices), profile.name, std::to_string(profile.id),
               std::to_string(profile.compute_slices), Memory(profile.memory_mib)});
  }
  if (!console.table()) {
    console.Show(JsonObject{{"board", board.name},
                            {"possible", true},
                            {"compute_slices_used", compute},
                            {"compute_slices", board.compute_slices},
                            {"memory_slices_used", memory},
                            {"memory_slices", board.slices},
                            {"instances", std::move(instances)}});
    return 0;
  }
  table.Print(console);
  console.Note(board.name + ": " + std::to_string(compute) + " of " +
               std::to_string(board.compute_slices) + " compute slices, " + std::to_string(memory) +
               " of " + std::to_string(board.slices) + " memory slices" +
               (board.placements_known == gpu::Known::kInferred
                    ? "; placements inferred from boards like it"
                    : ""));
  return 0;
}

int ShowPartition(Console& console, const gpu::PartitionBoard& board,
                  const gpu::PartitionPlan& plan) {
  JsonArray partitions;
  Table table({"PARTITION", "COMPUTE DIES", "ADDRESSES", "MEMORY SHARED"});
  for (std::uint32_t i = 0; i < plan.mode->partitions; ++i) {
    partitions.push_back(JsonObject{{"partition", i},
                                    {"compute_dies", plan.mode->compute_dies},
                                    {"memory_mib", plan.memory_mib},
                                    {"memory_shared", plan.memory_shared}});
    table.Add({std::to_string(i), std::to_string(plan.mode->compute_dies), Memory(plan.memory_mib),
               plan.memory_shared ? "yes" : "no"});
  }
  if (console.table()) {
    table.Print(console);
  } else {
    console.Show(JsonObject{{"board", board.name},
                            {"possible", true},
                            {"mode", plan.mode->name},
                            {"memory_mode", "NPS" + std::to_string(plan.memory_domains)},
                            {"partitions", std::move(partitions)}});
  }
  return 0;
}

Error OneOf() {
  return Error{Code::kInvalidArgument, "one of --strategy, --layout and --file is needed",
               "for instance --strategy multi-tenant, --layout \"1g.18gb x3, 4g.71gb\", or "
               "--file mig-parted.yaml --selected-config all-balanced"};
}

Result<int> Plan(Invocation& invocation) {
  const Parsed& parsed = invocation.parsed;
  const int given = (parsed.Has("strategy") ? 1 : 0) + (parsed.Has("layout") ? 1 : 0) +
                    (parsed.Has("file") ? 1 : 0);
  const auto board_name = parsed.Value("board");
  if (!board_name) {
    return Error{Code::kInvalidArgument, "--board is missing", "`ringfence mig boards` lists them",
                 "board"};
  }
  if (given != 1) {
    return OneOf();
  }
  if (const gpu::PartitionBoard* amd = FindPartitionBoard(*board_name)) {
    const auto layout = parsed.Value("layout");
    if (!layout) {
      return Error{Code::kInvalidArgument, amd->name + " is cut by its partition mode only",
                   "for instance --layout CPX/NPS4", "layout"};
    }
    RINGFENCE_ASSIGN(const gpu::PartitionPlan plan, gpu::PlanPartition(*amd, *layout));
    return ShowPartition(invocation.console, *amd, plan);
  }
  RINGFENCE_ASSIGN(const gpu::MigBoard* board, gpu::FindMigBoard(*board_name));
  RINGFENCE_ASSIGN(const std::vector<gpu::MigWish> wishes, MigWishes(parsed, *board));
  RINGFENCE_ASSIGN(const std::vector<gpu::MigInstance> plan, gpu::PlanMigLayout(*board, wishes));
  return ShowPlan(invocation.console, *board, plan);
}

std::string_view Name(place::MigVerdict::Kind kind) {
  switch (kind) {
    case place::MigVerdict::Kind::kPossible:
      return "possible";
    case place::MigVerdict::Kind::kImpossible:
      return "impossible";
    case place::MigVerdict::Kind::kUnknownBoard:
      return "unknown board";
  }
  return "";
}

Result<int> Check(Invocation& invocation) {
  const std::string path = invocation.parsed.Argument(0);
  RINGFENCE_ASSIGN(const std::string text, os::ReadText(path, wire::kYamlBytesMax));
  RINGFENCE_ASSIGN(const place::MigPartedFile parted, place::ParseMigParted(text, path));
  Console& console = invocation.console;
  JsonArray rows;
  Table table({"LAYOUT", "LINE", "BOARD", "VERDICT", "REASON"});
  std::size_t impossible = 0;
  for (const place::MigConfig& config : parted.configs) {
    for (const place::MigVerdict& verdict : place::CheckMigConfig(config)) {
      impossible += verdict.kind == place::MigVerdict::Kind::kImpossible ? 1 : 0;
      table.Add({config.name, std::to_string(verdict.line), verdict.board,
                 std::string(Name(verdict.kind)), verdict.reason});
      rows.push_back(JsonObject{{"layout", config.name},
                                {"line", verdict.line},
                                {"board", verdict.board},
                                {"verdict", Name(verdict.kind)},
                                {"reason", verdict.reason}});
    }
  }
  if (console.table()) {
    table.Print(console);
    console.Note(path + ": " + Count(parted.configs.size(), "layout") + ", " +
                 std::to_string(impossible) + " impossible");
  } else {
    console.Show(rows);
  }
  return impossible == 0 ? 0 : 1;
}

}  // namespace

Result<std::vector<gpu::MigWish>> MigWishes(const Parsed& parsed, const gpu::MigBoard& board,
                                            std::optional<std::uint32_t> index) {
  if (const auto strategy = parsed.Value("strategy")) {
    RINGFENCE_ASSIGN(const gpu::MigStrategy named, gpu::ParseMigStrategy(*strategy));
    return gpu::WishesOf(named, board);
  }
  if (const auto layout = parsed.Value("layout")) {
    return gpu::ParseMigLayout(*layout);
  }
  const auto path = parsed.Value("file");
  const auto name = parsed.Value("selected-config");
  if (!path) {
    return OneOf();
  }
  RINGFENCE_ASSIGN(const std::string text, os::ReadText(*path, wire::kYamlBytesMax));
  RINGFENCE_ASSIGN(const place::MigPartedFile parted, place::ParseMigParted(text, *path));
  if (!name) {
    return Error{Code::kInvalidArgument,
                 "--selected-config is missing: " + *path + " has " +
                     std::to_string(parted.configs.size()) + " layouts",
                 "`ringfence mig check " + *path + "` lists them", "selected-config"};
  }
  RINGFENCE_ASSIGN(const place::MigConfig* found, parted.Find(*name));
  place::MigConfig config = *found;
  std::erase_if(config.entries, [&](const place::MigEntry& entry) {
    return index.has_value() && entry.devices.has_value() &&
           std::find(entry.devices->begin(), entry.devices->end(), *index) == entry.devices->end();
  });
  return place::WishesFor(config, board, *path);
}

CommandTable MigCommands() {
  CommandTable table = {
      {.path = "mig boards",
       .group = Group::kCluster,
       .summary = "List the boards that can be cut, with their profiles and placements.",
       .details =
           "Placements are {first memory slices}:size, as nvidia-smi mig -lgipp prints them.\n"
           "\"about\" marks memory that is inferred from the board's, not printed by a driver.",
       .arguments = {{.name = "BOARD", .help = "only this one, as H200-141", .required = false}},
       .examples = {{"ringfence mig boards", "all of them"},
                    {"ringfence mig boards H200-141", "one"},
                    {"ringfence mig boards -o json", "with PCI identifiers and slices"}},
       .handler = Boards},
      {.path = "mig plan",
       .group = Group::kCluster,
       .summary = "Say where the instances of a layout go, or why a board cannot have it.",
       .details =
           "Offline: needs no GPU and no server. A layout is profiles with commas between, as\n"
           "\"1g.18gb x3, 4g.71gb\"; \"@4\" after one fixes its first memory slice. Strategies "
           "are\n"
           "development (many small), inference (few large) and multi-tenant (balanced). --file\n"
           "takes a file of mig-parted, and the entry of --selected-config that is for this board.",
       .options = {{.name = "board", .value = "BOARD", .help = "as H200-141, A30-24, MI300X-192"},
                   {.name = "strategy",
                    .value = "NAME",
                    .help = "development, inference or multi-tenant",
                    .completes = Completes::kWords,
                    .words = "development inference multi-tenant"},
                   {.name = "layout", .value = "LAYOUT", .help = "profiles, or CPX/NPS4 on AMD"},
                   {.name = "file",
                    .value = "FILE",
                    .help = "a file of mig-parted",
                    .completes = Completes::kFile},
                   {.name = "selected-config", .value = "NAME", .help = "the layout in --file"}},
       .examples =
           {{"ringfence mig plan --board H200-141 --strategy multi-tenant", "balanced"},
            {"ringfence mig plan --board H200-141 --layout \"1g.18gb x3, 4g.71gb\" -o json",
             "a layout of your own"},
            {"ringfence mig plan --board A100-40 --file config.yaml --selected-config all-balanced",
             "what mig-parted would make"}},
       .handler = Plan},
      {.path = "mig check",
       .group = Group::kCluster,
       .summary = "Check every layout of a mig-parted file against the boards it is for.",
       .arguments = {{.name = "FILE",
                      .help = "a file of mig-parted",
                      .completes = Completes::kFile}},
       .examples = {{"ringfence mig check /etc/nvidia-mig-manager/config.yaml", "before using it"},
                    {"ringfence mig check config.yaml -o json", "for a pipeline"}},
       .exit_codes = "0 all are possible, 1 one is not",
       .handler = Check},
  };
  const CommandTable fleet = MigFleetCommands();
  table.insert(table.end(), fleet.begin(), fleet.end());
  return table;
}

}  // namespace ringfence::cli
