// `ringfence policy ...`

#include "policy/policy.h"

#include "base/code.h"
#include "cli/api.h"
#include "cli/commands.h"
#include "cli/console.h"
#include "cli/fields.h"
#include "cli/human.h"
#include "cli/settings.h"
#include "cli/text.h"
#include "os/file.h"

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
  std::string folder = invocation.parsed.Argument(0);
  if (folder.empty()) {
    folder = invocation.settings.Text(Setting::kPolicyFolder);
  }
  if (!os::IsDirectory(folder)) {
    return Error{Code::kNotFound, "there is no folder " + folder,
                 "name the policy's folder: ringfence policy check DIR"};
  }
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
  if (!console.table()) {
    console.Show(JsonObject{{"ok", true},
                            {"folder", folder},
                            {"findings", JsonArray()},
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

Result<int> ShowFacts(Invocation& invocation, const Json& policy) {
  Console& console = invocation.console;
  if (!console.table()) {
    console.Show(policy);
    return 0;
  }
  FactList facts;
  facts.Add("Digest", TextOf(policy, "digest"));
  facts.Add("Tenants", TextOf(policy, "tenants"));
  facts.Add("Principals", TextOf(policy, "principals"));
  facts.Add("Bindings", TextOf(policy, "bindings"));
  facts.Add("Loaded", RelativeTime(TextOf(policy, "loaded"), invocation.clock.Now()));
  facts.Print(console);
  return 0;
}

Result<int> Show(Invocation& invocation) {
  RINGFENCE_ASSIGN(const auto api, Api::Open(invocation.settings));
  RINGFENCE_ASSIGN(const Json policy, api->Get("/v1/policy"));
  return ShowFacts(invocation, policy);
}

Result<int> Reload(Invocation& invocation) {
  RINGFENCE_ASSIGN(const auto api, Api::Open(invocation.settings));
  RINGFENCE_ASSIGN(const Json policy, api->Post("/v1/policy/reload", nullptr));
  return ShowFacts(invocation, policy);
}

}  // namespace

CommandTable PolicyCommands() {
  return {
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
      {.path = "policy show",
       .group = Group::kAccess,
       .summary = "Show which policy is in force.",
       .examples = {{"ringfence policy show", "its digest, and since when"}},
       .handler = Show},
      {.path = "policy reload",
       .group = Group::kAccess,
       .summary = "Have the server read its policy folder again.",
       .details = "A folder with an error changes nothing: the policy in force stays.",
       .examples = {{"ringfence policy check && ringfence policy reload", "check, then apply"}},
       .handler = Reload},
  };
}

}  // namespace ringfence::cli
