#pragma once

// The table of every command, put together from one piece for each noun.

#include "cli/command.h"

namespace ringfence::cli {

const CommandTable& AllCommands();

CommandTable RunCommands();
CommandTable LeaseCommands();
CommandTable CdiCommands();
CommandTable TenantCommands();
CommandTable NodeCommands();
CommandTable GpuCommands();
CommandTable ImageCommands();
CommandTable MigCommands();
CommandTable PlaceCommands();
CommandTable StatusCommands();
CommandTable AuditCommands();
CommandTable AuditVerifyCommands();
CommandTable AlertCommands();
CommandTable AnomalyCommands();
CommandTable EventCommands();
CommandTable IntelCommands();
CommandTable TokenCommands();
CommandTable UsageCommands();
CommandTable PolicyCommands();
CommandTable BoundaryCommands();
CommandTable PolicyVersionCommands();
CommandTable PolicyCompileCommands();
CommandTable CanCommands();
CommandTable AccessCommands();
CommandTable PolicyVersionCommands();
CommandTable WhoCanCommands();
CommandTable PolicyTestCommands();
CommandTable NetworkCommands();
CommandTable ProveCommands();
CommandTable ConfigCommands();
CommandTable DaemonCommands();
CommandTable BackupCommands();
CommandTable CedarCommands();
CommandTable DoctorCommands();
CommandTable RuleCommands();
CommandTable AdvisoryCommands();
CommandTable AssessCommands();
CommandTable CheckCommands();
CommandTable RiskCommands();
CommandTable ComplyCommands();
CommandTable BaselineCommands();
CommandTable AssessFleetCommands();
CommandTable CompletionCommands();
CommandTable HelpCommands();

// Shared by the lists.
OptionSpec LimitOption();
Result<std::size_t> LimitOf(const Parsed& parsed, std::size_t fallback = 100);

}  // namespace ringfence::cli
