// `ringfence policy apply|rollback|versions|show|reload`: the policy that is in force at a server.

#include "base/code.h"
#include "cli/api.h"
#include "cli/commands.h"
#include "cli/console.h"
#include "cli/fields.h"
#include "cli/human.h"
#include "cli/policy_folder.h"
#include "cli/settings.h"
#include "cli/text.h"
#include "os/file.h"
#include "policy/policy.h"

namespace ringfence::cli {
namespace {

constexpr std::int64_t kVersionMax = std::int64_t{1} << 52U;

Result<int> ShowFacts(Invocation& invocation, const Json& policy) {
  Console& console = invocation.console;
  if (!console.table()) {
    console.Show(policy);
    return 0;
  }
  FactList facts;
  facts.Add("Version", TextOf(policy, "version"));
  facts.Add("Digest", TextOf(policy, "digest"));
  facts.Add("Tenants", TextOf(policy, "tenants"));
  facts.Add("Principals", TextOf(policy, "principals"));
  facts.Add("Bindings", TextOf(policy, "bindings"));
  facts.Add("Loaded", RelativeTime(TextOf(policy, "loaded"), invocation.clock.Now()));
  facts.Print(console);
  return 0;
}

Result<std::int64_t> VersionArgument(const std::string& text) {
  auto number = ParseCount(text, 1, kVersionMax);
  if (!number.has_value()) {
    return Prefix("VERSION", number.error());
  }
  return number;
}

// What to tell the server beside the policy itself.
Result<JsonObject> ChangeOf(const Parsed& parsed) {
  JsonObject change;
  if (parsed.Has("force")) {
    change["force"] = true;
  }
  if (const auto reason = parsed.Value("reason")) {
    change["reason"] = *reason;
  }
  if (const auto text = parsed.Value("expect")) {
    auto number = ParseCount(*text, 0, kVersionMax);
    if (!number.has_value()) {
      return Prefix("--expect", number.error());
    }
    change["expected_version"] = *number;
  }
  return change;
}

Result<int> ShowApplied(Invocation& invocation, const Json& applied) {
  Console& console = invocation.console;
  if (!console.table()) {
    console.Show(applied);
    return 0;
  }
  const std::string version = TextOf(applied, "version");
  if (!BoolOf(applied, "changed")) {
    console.Note("nothing to change: version " + version + " is in force and is this policy");
    return 0;
  }
  console.out() << console.Good(console.Tick()) << " version " << version << " is in force, digest "
                << Safe(TextOf(applied, "digest").substr(0, 12));
  if (const std::string restores = TextOf(applied, "restores"); !restores.empty()) {
    console.out() << ", as version " << Safe(restores) << " was";
  }
  console.out() << '\n';
  if (const std::string previous = TextOf(applied, "previous"); !previous.empty()) {
    console.Note("`ringfence policy rollback " + previous + "` puts back what was before");
  }
  return 0;
}

Result<int> Apply(Invocation& invocation) {
  RINGFENCE_ASSIGN(const std::string folder, PolicyFolderOf(invocation));
  RINGFENCE_ASSIGN(const auto policy, policy::Policy::Load(folder));
  WarnOfRules(invocation.console, *policy);
  RINGFENCE_ASSIGN(JsonObject request, ChangeOf(invocation.parsed));
  JsonObject files;
  for (const auto& [name, text] : policy->files()) {
    files[name] = text;
  }
  request["files"] = std::move(files);
  RINGFENCE_ASSIGN(const auto api, Api::Open(invocation.settings));
  const Json body(std::move(request));
  RINGFENCE_ASSIGN(const Json applied, api->Post("/v1/policy/versions", &body));
  return ShowApplied(invocation, applied);
}

Result<int> Rollback(Invocation& invocation) {
  RINGFENCE_ASSIGN(JsonObject request, ChangeOf(invocation.parsed));
  if (const std::string text = invocation.parsed.Argument(0); !text.empty()) {
    RINGFENCE_ASSIGN(const std::int64_t number, VersionArgument(text));
    request["version"] = number;
  }
  RINGFENCE_ASSIGN(const auto api, Api::Open(invocation.settings));
  const Json body(std::move(request));
  RINGFENCE_ASSIGN(const Json applied, api->Post("/v1/policy/rollback", &body));
  return ShowApplied(invocation, applied);
}

std::string HowOf(const Json& version) {
  if (Field(version, "signed") != nullptr && !BoolOf(version, "signed")) {
    return "NOT SIGNED";
  }
  const std::string restores = TextOf(version, "restores");
  return TextOf(version, "origin") + (restores.empty() ? "" : " of " + restores) +
         (BoolOf(version, "forced") ? ", forced" : "");
}

Result<int> Versions(Invocation& invocation) {
  RINGFENCE_ASSIGN(const std::size_t limit, LimitOf(invocation.parsed));
  RINGFENCE_ASSIGN(const auto api, Api::Open(invocation.settings));
  RINGFENCE_ASSIGN(const JsonArray versions, api->List("/v1/policy/versions", {}, limit));
  Console& console = invocation.console;
  if (!console.table()) {
    console.Show(versions);
    return 0;
  }
  const Timestamp now = invocation.clock.Now();
  Table table({"VERSION", "IN FORCE", "DIGEST", "WHEN", "BY", "HOW", "REASON"});
  for (const Json& version : versions) {
    table.Add({TextOf(version, "version"), BoolOf(version, "in_force") ? "yes" : "",
               TextOf(version, "digest").substr(0, 12), RelativeTime(TextOf(version, "time"), now),
               TextOf(version, "by"), HowOf(version), TextOf(version, "reason")});
  }
  table.Print(console);
  return 0;
}

// Checks all before it writes the first: the names come from the server.
Status WriteFiles(const std::map<std::string, std::string>& files, const std::string& folder) {
  if (os::Exists(folder)) {
    return Error{Code::kConflict, folder + " is there already", "name a folder that is not"};
  }
  for (const auto& [name, text] : files) {
    if (name.empty() || name.starts_with('/') || name.starts_with('.') ||
        name.find("/.") != std::string::npos || name.find('\0') != std::string::npos) {
      return Error{Code::kCorrupt, "the server names a file outside of the folder: " + Safe(name)};
    }
  }
  RINGFENCE_TRY(os::MakeDirs(folder, 0755));
  for (const auto& [name, text] : files) {
    if (const std::size_t slash = name.rfind('/'); slash != std::string::npos) {
      RINGFENCE_TRY(os::MakeDirs(folder + "/" + name.substr(0, slash), 0755));
    }
    RINGFENCE_TRY(os::WriteFileDurable(folder + "/" + name, AsBytes(text), 0644));
  }
  return {};
}

Result<int> ShowVersion(Invocation& invocation, Api& api) {
  RINGFENCE_ASSIGN(const std::int64_t number, VersionArgument(invocation.parsed.Argument(0)));
  RINGFENCE_ASSIGN(const Json version,
                   api.Get(Target("/v1/policy/versions", std::to_string(number), "")));
  RINGFENCE_ASSIGN(const auto files, FilesOfVersion(version));
  Console& console = invocation.console;
  if (const auto folder = invocation.parsed.Value("write")) {
    RINGFENCE_TRY(WriteFiles(files, *folder));
    console.Note(Count(files.size(), "file") + " of version " + std::to_string(number) +
                 " are in " + Safe(*folder));
    return 0;
  }
  if (!console.table()) {
    console.Show(version);
    return 0;
  }
  FactList facts;
  facts.Add("Version", TextOf(version, "version"));
  facts.Add("In force", BoolOf(version, "in_force") ? "yes" : "no");
  facts.Add("Digest", TextOf(version, "digest"));
  facts.Add("By", TextOf(version, "by"));
  facts.Add("When", TextOf(version, "time"));
  facts.Add("How", HowOf(version));
  facts.Add("Reason", TextOf(version, "reason"));
  facts.Add("Instead of", TextOf(version, "previous"));
  facts.Print(console);
  Table table({"FILE", "SIZE"});
  for (const auto& [name, text] : files) {
    table.Add({name, FormatSize(text.size())});
  }
  table.Print(console);
  return 0;
}

Result<int> Show(Invocation& invocation) {
  RINGFENCE_ASSIGN(const auto api, Api::Open(invocation.settings));
  if (!invocation.parsed.Argument(0).empty()) {
    return ShowVersion(invocation, *api);
  }
  if (invocation.parsed.Has("write")) {
    return Error{Code::kInvalidArgument, "--write needs a version",
                 "`ringfence policy versions` lists them", "policy show"};
  }
  RINGFENCE_ASSIGN(const Json policy, api->Get("/v1/policy"));
  return ShowFacts(invocation, policy);
}

Result<int> Reload(Invocation& invocation) {
  RINGFENCE_ASSIGN(JsonObject request, ChangeOf(invocation.parsed));
  RINGFENCE_ASSIGN(const auto api, Api::Open(invocation.settings));
  const Json body(std::move(request));
  RINGFENCE_ASSIGN(const Json policy, api->Post("/v1/policy/reload", &body));
  return ShowFacts(invocation, policy);
}

const OptionSpec kForce{.name = "force",
                        .help = "break the glass: even if it is refused; needs --reason"};
const OptionSpec kReason{.name = "reason", .value = "TEXT", .help = "why; goes on record"};
const OptionSpec kExpect{
    .name = "expect", .value = "VERSION", .help = "only if this version is in force now"};

}  // namespace

CommandTable PolicyVersionCommands() {
  return {
      {.path = "policy apply",
       .group = Group::kAccess,
       .summary = "Put a policy folder in force, as a new version, on all servers at once.",
       .details = "The folder is checked here and by the server, stored whole, signed and audited. "
                  "One with an error, or one that would leave nobody who could change it back, is "
                  "refused and the old policy stays. From the first apply on, the server's own "
                  "folder does not count any more.",
       .options = {kExpect, kForce, kReason},
       .arguments = {{.name = "DIR",
                      .help = "the folder (default: policy.folder)",
                      .required = false,
                      .completes = Completes::kFolder}},
       .examples = {{"ringfence policy apply policy/", "what is in git is now in force"},
                    {"ringfence policy apply policy/ --expect 7 --reason 'ticket 4711'",
                     "unless somebody changed it since version 7"}},
       .exit_codes = "2 errors in the policy, 3 not allowed; the old one stays",
       .handler = Apply},
      {.path = "policy rollback",
       .group = Group::kAccess,
       .summary = "Put an earlier version of the policy in force again, at once.",
       .details = "It becomes a new version with the earlier one's files.",
       .options = {kExpect, kForce, kReason},
       .arguments = {{.name = "VERSION",
                      .help = "which (default: the one before the one in force)",
                      .required = false}},
       .examples = {{"ringfence policy rollback", "undo the last change"},
                    {"ringfence policy rollback 3 --reason 'locked out the night shift'",
                     "a certain version"}},
       .handler = Rollback},
      {.path = "policy versions",
       .group = Group::kAccess,
       .summary = "List the versions of the policy: who put which in force, when and why.",
       .options = {LimitOption()},
       .examples = {{"ringfence policy versions", "the newest first"}},
       .handler = Versions},
      {.path = "policy show",
       .group = Group::kAccess,
       .summary = "Show which policy is in force, or one version and its files.",
       .options = {{.name = "write",
                    .value = "DIR",
                    .help = "write the version's files into a new folder",
                    .completes = Completes::kFolder}},
       .arguments = {{.name = "VERSION", .help = "which (default: in force)", .required = false}},
       .examples = {{"ringfence policy show", "its digest, and since when"},
                    {"ringfence policy show 3 --write policy-3", "get its files back"}},
       .handler = Show},
      {.path = "policy reload",
       .group = Group::kAccess,
       .summary = "Have the server read its policy folder again.",
       .details =
           "A folder with an error changes nothing: the policy in force stays. Once something "
           "was applied, --force lets the server's folder count again.",
       .options = {kForce, kReason},
       .examples = {{"ringfence policy check && ringfence policy reload", "check, then apply"}},
       .handler = Reload},
  };
}

}  // namespace ringfence::cli
