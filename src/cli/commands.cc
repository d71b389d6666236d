#include "cli/commands.h"

#include <iterator>

#include "cli/api.h"
#include "cli/human.h"
#include "cli/parse.h"
#include "cli/settings.h"

namespace ringfence::cli {

const std::vector<OptionSpec>& GlobalOptions() {
  static const std::vector<OptionSpec> kOptions = [] {
    OptionSpec output = SettingOption(Setting::kOutput, 'o');
    output.value = "table|json|yaml";
    return std::vector<OptionSpec>{
        output,
        SettingOption(Setting::kState),
        SettingOption(Setting::kClientServer),
        SettingOption(Setting::kClientCa),
        {.name = "config",
         .value = "FILE",
         .help = "configuration file to read",
         .completes = Completes::kFile},
        {.name = "quiet", .letter = 'q', .help = "say nothing but results and errors"},
        {.name = "verbose", .letter = 'v', .help = "say what is going on"},
        {.name = "no-color", .help = "no colours (NO_COLOR does the same)"},
        {.name = "help", .letter = 'h', .help = "show help, and do nothing else"},
    };
  }();
  return kOptions;
}

const CommandTable& AllCommands() {
  static const CommandTable kTable = [] {
    CommandTable table;
    for (CommandTable (*piece)() :
         {RunCommands,           LeaseCommands,  StatusCommands,   TenantCommands,
          NodeCommands,          GpuCommands,    ImageCommands,    AuditCommands,
          AuditVerifyCommands,   TokenCommands,  PolicyCommands,   NetworkCommands,
          ProveCommands,         DaemonCommands, BackupCommands,   CdiCommands,
          DoctorCommands,        CedarCommands,  MigCommands,      PlaceCommands,
          RuleCommands,          AssessCommands, AdvisoryCommands, AnomalyCommands,
          IntelCommands,         EventCommands,  AlertCommands,    CheckCommands,
          RiskCommands,          UsageCommands,  BoundaryCommands, ConfigCommands,
          CompletionCommands,    HelpCommands,   ComplyCommands,   BaselineCommands,
          PolicyCompileCommands, CanCommands,    WhoCanCommands,   PolicyTestCommands,
          AssessFleetCommands}) {
      CommandTable commands = piece();
      std::move(commands.begin(), commands.end(), std::back_inserter(table));
    }
    return table;
  }();
  return kTable;
}

OptionSpec LimitOption() {
  return {.name = "limit", .letter = 'n', .value = "N", .help = "show at most N (default 100)"};
}

Result<std::size_t> LimitOf(const Parsed& parsed, std::size_t fallback) {
  const auto text = parsed.Value("limit");
  if (!text) {
    return fallback;
  }
  const auto count = ParseCount(*text, 1, static_cast<std::int64_t>(kListMax));
  if (!count.has_value()) {
    return Prefix("--limit", count.error());
  }
  return static_cast<std::size_t>(*count);
}

}  // namespace ringfence::cli
