#pragma once

// The one description of the command line. The parser, the help, the completions and docs/cli.md
// are all made from these tables, so none of them can say something the others do not do.

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "base/time.h"

namespace ringfence::cli {

class Console;
class Settings;
struct Invocation;

// What a shell should offer for a value.
enum class Completes { kNothing, kFile, kFolder, kTenant, kLease, kNode, kGpu, kToken, kWords };

struct OptionSpec {
  std::string_view name;        // without the dashes
  char letter = 0;              // 't' for -t; 0: none
  std::string_view value = {};  // "DIR"; empty: a switch that takes no value
  std::string_view help = {};   // one line, begins with a small letter, no full stop
  bool repeated = false;        // may be given more than once
  Completes completes = Completes::kNothing;
  std::string_view words = {};  // for kWords: "table json yaml"
  bool may_be_bare = false;     // the value may be left out, and is given with '=' only
};

struct ArgumentSpec {
  std::string_view name;  // "LEASE"
  std::string_view help = {};
  bool required = true;
  bool repeated = false;
  Completes completes = Completes::kNothing;
  std::string_view words = {};
};

struct Example {
  std::string_view command;
  std::string_view what;
};

enum class Group { kJobs, kCluster, kEvidence, kAccess, kOperate, kOther };
std::string_view Title(Group group);

struct CommandSpec {
  std::string_view path;  // "lease list"
  Group group = Group::kOther;
  std::string_view summary;  // one line with a capital and a full stop
  std::string_view details = {};
  std::vector<OptionSpec> options = {};
  std::vector<ArgumentSpec> arguments = {};
  bool takes_command = false;  // the words after "--" are a job's command
  std::vector<Example> examples = {};
  std::string_view exit_codes = {};  // what is special about this one's
  bool has_csv = false;              // prints --output csv too
  // The exit status, or an error that decides it. Null for a daemon: main.cc brings those.
  Result<int> (*handler)(Invocation&) = nullptr;
  bool hidden = false;
};

using CommandTable = std::vector<CommandSpec>;

// What a command line said.
struct Parsed {
  const CommandSpec* command = nullptr;  // null: only words that name a group, or none
  std::string path;                      // the command's words as far as they were understood
  std::vector<std::pair<std::string, std::string>> options;  // in order; a switch has ""
  std::vector<std::string> arguments;
  std::vector<std::string> trailing;  // after "--"

  bool Has(std::string_view option) const;
  // The last one given wins, as in most tools.
  std::optional<std::string> Value(std::string_view option) const;
  std::vector<std::string> Values(std::string_view option) const;
  // By position; empty when it was left out.
  std::string Argument(std::size_t index) const;
};

// What a handler works with. All of it outlives the call.
struct Invocation {
  const CommandTable& table;
  const Parsed& parsed;
  const Settings& settings;
  Console& console;
  const Clock& clock;
};

}  // namespace ringfence::cli
