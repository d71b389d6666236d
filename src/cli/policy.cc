// `ringfence policy ...`

#include "policy/policy.h"

#include <algorithm>
#include <iterator>

#include "base/code.h"
#include "cli/commands.h"
#include "cli/console.h"
#include "cli/human.h"
#include "cli/policy_folder.h"
#include "cli/settings.h"
#include "cli/text.h"
#include "os/file.h"
#include "policy/rulebook.h"

namespace ringfence::cli {
namespace {

JsonArray LinesOf(std::string_view text) {
  JsonArray lines;
  while (!text.empty()) {
    const std::size_t end = text.find('\n');
    if (end != 0) {
      lines.emplace_back(std::string(text.substr(0, end)));
    }
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
  }
  return lines;
}

Result<int> Check(Invocation& invocation) {
  RINGFENCE_ASSIGN(const std::string folder, PolicyFolderOf(invocation));
  Console& console = invocation.console;
  const auto policy = policy::Policy::Load(folder);
  if (!policy.has_value()) {
    const JsonArray findings = LinesOf(policy.error().message);
    if (!console.table()) {
      console.Show(JsonObject{{"ok", false}, {"folder", folder}, {"findings", findings}});
      return kExitFindings;
    }
    for (const Json& finding : findings) {
      console.out() << Safe(std::string_view(finding.get_string().data(),
                                             finding.get_string().size()))
                    << '\n';
    }
    console.Warn(Count(findings.size(), "finding") + " in " + folder +
                 "; a server keeps the policy it has until this is mended");
    return kExitFindings;
  }
  const auto count = [](const auto& things) { return static_cast<std::int64_t>(things.size()); };
  const policy::Policy& good = **policy;
  JsonArray exceptions;
  for (const policy::BoxException& one : policy::ExceptionsInForce(good, invocation.clock.Now())) {
    exceptions.emplace_back(one.Warning());
    if (console.table()) {
      console.Warn(one.Warning());
    }
  }
  WarnOfRules(console, good);
  if (!console.table()) {
    const auto& warnings = good.rulebook().warnings();
    console.Show(JsonObject{{"ok", true},
                            {"folder", folder},
                            {"findings", JsonArray()},
                            {"warnings", JsonArray(warnings.begin(), warnings.end())},
                            {"exceptions", std::move(exceptions)},
                            {"digest", good.digest()},
                            {"tenants", count(good.tenants())},
                            {"principals", count(good.principals())},
                            {"bindings", count(good.bindings())}});
    return kExitOk;
  }
  console.out() << console.Good(console.Tick()) << ' ' << Safe(folder) << ": "
                << Count(good.tenants().size(), "tenant") << ", "
                << Count(good.principals().size(), "principal") << ", "
                << Count(good.bindings().size(), "binding") << ", digest "
                << good.digest().substr(0, 12) << '\n';
  return kExitOk;
}

}  // namespace

Result<std::string> PolicyFolderOf(const Invocation& invocation) {
  std::string folder = invocation.parsed.Argument(0);
  if (folder.empty()) {
    folder = invocation.settings.Text(Setting::kPolicyFolder);
  }
  if (!os::IsDirectory(folder)) {
    return Error{
        Code::kNotFound, "there is no folder " + folder,
        "name the policy's folder: ringfence " + std::string(invocation.parsed.path) + " DIR"};
  }
  return folder;
}

CommandTable PolicyCommands() {
  CommandTable table = {
      {.path = "policy check",
       .group = Group::kAccess,
       .summary = "Check a policy folder, without a server; all findings at once.",
       .arguments = {{.name = "DIR",
                      .help = "the folder (default: policy.folder)",
                      .required = false,
                      .completes = Completes::kFolder}},
       .examples = {{"ringfence policy check policy/", "before it is committed"}},
       .exit_codes = "0 good, 1 findings",
       .handler = Check},
  };
  for (CommandTable (*piece)() : {PolicyVersionCommands, AccessCommands}) {
    CommandTable more = piece();
    std::move(more.begin(), more.end(), std::back_inserter(table));
  }
  return table;
}

}  // namespace ringfence::cli
