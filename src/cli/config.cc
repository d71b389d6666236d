#include "cli/config.h"

#include "base/code.h"
#include "cli/commands.h"
#include "cli/console.h"
#include "cli/human.h"
#include "cli/settings.h"
#include "cli/text.h"
#include "os/file.h"

namespace ringfence::cli {
namespace {

std::string Shown(const Settings& settings, const SettingSpec& spec) {
  const SettingValue& value = settings.At(spec.setting);
  if (spec.kind == ValueKind::kSecret) {
    return value.origin == Origin::kEnvironment ? "(set)" : "";
  }
  if (value.text.empty() && spec.fallback.starts_with('<')) {
    return "(" + std::string(spec.fallback.substr(1, spec.fallback.size() - 2)) + ")";
  }
  return value.text;
}

Result<int> Show(Invocation& invocation) {
  const Settings& settings = invocation.settings;
  Console& console = invocation.console;
  if (!console.table()) {
    JsonArray all;
    for (const SettingSpec& spec : SettingTable()) {
      all.push_back(JsonObject{{"key", spec.key},
                               {"value", Shown(settings, spec)},
                               {"from", settings.At(spec.setting).source},
                               {"environment", spec.environment}});
    }
    console.Show(all);
    return 0;
  }
  Table table({"KEY", "VALUE", "FROM"});
  for (const SettingSpec& spec : SettingTable()) {
    table.Add({std::string(spec.key), Shown(settings, spec), settings.At(spec.setting).source});
  }
  table.Print(console);
  console.Note(settings.file().empty() ? "no configuration file; `ringfence config init` writes one"
                                       : "configuration file: " + settings.file());
  return 0;
}

}  // namespace

int ShowConfigFindings(Console& console, const Settings& settings,
                       const std::vector<Finding>& findings) {
  const int status = findings.empty() ? kExitOk : kExitFindings;
  if (!console.table()) {
    JsonArray all;
    for (const Finding& finding : findings) {
      all.push_back(JsonObject{{"where", finding.where},
                               {"key", finding.key},
                               {"what", finding.what},
                               {"fix", finding.fix}});
    }
    console.Show(JsonObject{
        {"ok", findings.empty()}, {"file", settings.file()}, {"findings", std::move(all)}});
    return status;
  }
  for (const Finding& finding : findings) {
    std::string line = finding.where + (finding.where.empty() ? "" : ": ") + finding.key +
                       (finding.key.empty() ? "" : ": ") + finding.what;
    console.out() << SafeLines(line) << '\n';
    if (!finding.fix.empty()) {
      console.out() << "  fix: " << Safe(finding.fix) << '\n';
    }
  }
  if (findings.empty()) {
    console.out() << console.Good(console.Tick()) << ' '
                  << (settings.file().empty() ? "no configuration file; defaults are in force"
                                              : Safe(settings.file()) + " is good")
                  << '\n';
  } else {
    console.Warn(Count(findings.size(), "finding"));
  }
  return status;
}

std::string ConfigTemplate() {
  std::string text =
      "# Ringfence's configuration. Flags win over the environment, the environment over this\n"
      "# file, this file over the defaults, which are shown below. `ringfence config show` prints\n"
      "# what is in force and why, `ringfence config check` what is wrong.\n"
      "# Paths are relative to this file.\n";
  std::vector<std::string> open;
  for (const SettingSpec& spec : SettingTable()) {
    if (spec.kind == ValueKind::kSecret) {
      continue;
    }
    std::vector<std::string> parts;
    std::string_view key = spec.key;
    for (std::size_t dot = key.find('.'); dot != std::string_view::npos; dot = key.find('.')) {
      parts.emplace_back(key.substr(0, dot));
      key.remove_prefix(dot + 1);
    }
    std::size_t same = 0;
    while (same < parts.size() && same < open.size() && parts[same] == open[same]) {
      ++same;
    }
    if (parts.size() == same && parts.empty()) {
      text += "\n";
    }
    for (std::size_t i = same; i < parts.size(); ++i) {
      text += (i == 0 ? "\n#" : "#") + std::string(i * 2, ' ') + parts[i] + ":\n";
    }
    open = parts;
    const std::string indent(parts.size() * 2, ' ');
    const bool computed = spec.fallback.starts_with('<');
    std::string value(computed || spec.fallback.empty() ? "" : spec.fallback);
    if (spec.kind == ValueKind::kNames) {
      value = "[]";
    }
    text +=
        "#" + indent + "# " + std::string(spec.help) + " (" + std::string(spec.environment) + ")";
    text +=
        computed
            ? "; default: " + std::string(spec.fallback.substr(1, spec.fallback.find('>') - 1)) +
                  std::string(spec.fallback.substr(spec.fallback.find('>') + 1))
            : "";
    text += "\n#" + indent + std::string(key) + ":" + (value.empty() ? "" : " " + value) + "\n";
  }
  return text;
}

namespace {

Result<int> Init(Invocation& invocation) {
  std::string path = invocation.parsed.Argument(0);
  if (path.empty()) {
    path = invocation.settings.state() + "/ringfence.yaml";
  }
  const std::string text = ConfigTemplate();
  const std::size_t slash = path.rfind('/');
  if (slash != std::string::npos && slash > 0) {
    RINGFENCE_TRY(os::MakeDirs(path.substr(0, slash)));
  }
  if (invocation.parsed.Has("force")) {
    RINGFENCE_TRY(os::WriteFileDurable(path, AsBytes(text)));
  } else if (auto made = os::CreateFileDurable(path, AsBytes(text)); !made.has_value()) {
    if (made.error().code == Code::kConflict) {
      return Error{Code::kConflict, path + " is already there", "--force overwrites it"};
    }
    return made.error();
  }
  invocation.console.Note("wrote " + path + "; every line is a comment until you change it");
  return 0;
}

}  // namespace

CommandTable ConfigCommands() {
  return {
      {.path = "config show",
       .group = Group::kOperate,
       .summary = "Show every setting, its value and where it came from.",
       .examples = {{"ringfence config show", "what is in force, and why"}},
       .handler = Show},
      {.path = "config check",
       .group = Group::kOperate,
       .summary = "Check the configuration; all findings, with file and line.",
       .examples = {{"ringfence config check --config ringfence.yaml", "before it is installed"}},
       .exit_codes = "0 good, 1 findings",
       .handler = nullptr},
      {.path = "config init",
       .group = Group::kOperate,
       .summary = "Write a commented configuration file.",
       .options = {{.name = "force", .help = "overwrite one that is there"}},
       .arguments = {{.name = "FILE",
                      .help = "where to (default: <state>/ringfence.yaml)",
                      .required = false,
                      .completes = Completes::kFile}},
       .examples = {{"ringfence config init", "begin with all defaults"}},
       .handler = Init},
  };
}

}  // namespace ringfence::cli
