#include "cli/app.h"

#include <cerrno>

#include "base/code.h"
#include "cli/commands.h"
#include "cli/completion.h"
#include "cli/config.h"
#include "cli/console.h"
#include "cli/follow.h"
#include "cli/help.h"
#include "cli/parse.h"

namespace ringfence::cli {
namespace {

std::string Variable(const SettingsInput& input, const std::string& name) {
  const auto found = input.environment.find(name);
  return found == input.environment.end() ? "" : found->second;
}

ConsoleOptions ConsoleFor(const AppInput& input, const Parsed& parsed, Format format) {
  const std::string terminal = Variable(input.settings, "TERM");
  const bool plain =
      !Variable(input.settings, "NO_COLOR").empty() || parsed.Has("no-color") || terminal == "dumb";
  std::string locale;
  for (const char* name : {"LC_ALL", "LC_CTYPE", "LANG"}) {
    if (locale.empty()) {
      locale = Variable(input.settings, name);
    }
  }
  ConsoleOptions options;
  options.format = format;
  options.colour_out = input.out_is_terminal && !plain;
  options.colour_err = input.err_is_terminal && !plain;
  options.unicode = terminal != "linux" && (locale.find("UTF-8") != std::string::npos ||
                                            locale.find("utf8") != std::string::npos);
  options.quiet = parsed.Has("quiet");
  options.progress = input.err_is_terminal || parsed.Has("verbose");
  return options;
}

// Works whatever the configuration says.
bool NeedsNoSettings(std::string_view path) {
  return path == "help" || path == "version" || path == "completion" || path == "config init" ||
         path.starts_with("__");
}

// An error that names the command is about how it was called; other fields are of its input.
int Fail(Console& console, const CommandTable& table, const Parsed& parsed, const Error& error) {
  console.Failure(error);
  if (error.code == Code::kInvalidArgument && error.field == parsed.path) {
    console.err() << "usage: " << UsageOf(table, error.field) << '\n';
  }
  return Facts(error.code).exit_status;
}

int RunDaemon(const Daemons& daemons, const Parsed& parsed, const Settings& settings,
              Console& console, const CommandTable& table) {
  if (parsed.path == "up") {
    UpOptions options;
    options.detach = parsed.Has("detach");
    options.quiet = parsed.Has("quiet");
    if (const auto wait = parsed.Value("wait")) {
      const auto time = ParseDuration(*wait);
      if (!time.has_value()) {
        return Fail(console, table, parsed, Prefix("--wait", time.error()));
      }
      options.wait = *time;
    }
    return daemons.up(settings, options);
  }
  if (parsed.path == "down") {
    return daemons.down(settings);
  }
  if (parsed.path == "server") {
    return daemons.server(settings);
  }
  const std::string join_token = parsed.Value("join-token").value_or("");
  if (parsed.path == "jailer") {
    return daemons.jailer(settings, {join_token, parsed.Value("socket").value_or("")});
  }
  return daemons.agent(settings, {join_token, parsed.Value("jailer").value_or("")});
}

// A result that nobody could read is no success.
int Flushed(Console& console, int status) {
  errno = 0;
  console.out().flush();
  if (console.out()) {
    return status;
  }
  if (errno == EPIPE || errno == 0) {
    return status == kExitOk ? kExitBrokenPipe : status;
  }
  console.Failure(
      {Code::kInternal, "the output could not be written", "is the disk of its file full?"});
  return Facts(Code::kInternal).exit_status;
}

}  // namespace

int RunApp(AppInput input, std::ostream& out, std::ostream& err, const Clock& clock) {
  const CommandTable& table = AllCommands();
  if (input.words == std::vector<std::string>{"--version"}) {
    input.words = {"version"};
  }
  const auto parsed = Parse(table, input.words);
  if (!parsed.has_value()) {
    Console console(out, err, ConsoleFor(input, Parsed{}, Format::kTable));
    console.Failure(parsed.error());
    err << "usage: " << UsageOf(table, parsed.error().field) << '\n';
    return kExitUsage;
  }
  if (parsed->Has("help") || parsed->command == nullptr) {
    out << HelpOf(table, parsed->path) << std::flush;
    return kExitOk;
  }
  const bool completing = parsed->path == "__complete";
  input.settings.flags = completing ? FlagsSoFar(table, parsed->trailing) : parsed->options;
  const LoadedSettings loaded = LoadSettings(input.settings);
  Console console(out, err,
                  ConsoleFor(input, *parsed, ParseFormat(loaded.settings.Text(Setting::kOutput))));
  if (parsed->path == "config check") {
    return Flushed(console, ShowConfigFindings(console, loaded.settings, loaded.findings));
  }
  if (!loaded.findings.empty() && !NeedsNoSettings(parsed->path)) {
    return Fail(console, table, *parsed, FindingsError(loaded.findings));
  }
  if (console.format() == Format::kCsv && !parsed->command->has_csv &&
      parsed->command->handler != nullptr) {
    return Fail(console, table, *parsed,
                {Code::kInvalidArgument, "`ringfence " + parsed->path + "` prints no csv",
                 "--output json, yaml or table; `ringfence usage` is one that prints csv"});
  }
  if (parsed->command->handler == nullptr) {
    return RunDaemon(input.daemons, *parsed, loaded.settings, console, table);
  }
  Invocation invocation{table, *parsed, loaded.settings, console, clock};
  const auto status = parsed->command->handler(invocation);
  return Flushed(console,
                 status.has_value() ? *status : Fail(console, table, *parsed, status.error()));
}

}  // namespace ringfence::cli
