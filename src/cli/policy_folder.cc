#include "cli/policy_folder.h"

#include "cli/fields.h"
#include "cli/settings.h"
#include "os/file.h"
#include "policy/rulebook.h"

namespace ringfence::cli {
namespace {

// The commands that answer for a folder do not need a server, and do not wait for one.
constexpr std::chrono::milliseconds kServerWait = std::chrono::seconds(2);

void WarnUnlessInForce(const Invocation& invocation, const policy::Policy& policy) {
  auto connection = Connect(invocation.settings);
  if (!connection.has_value()) {
    return;
  }
  const auto api = Api::Create(std::move(connection).value(), kServerWait);
  const auto status = api.has_value() ? (*api)->Get("/v1/status") : api.error();
  const Json* const in_force = status.has_value() ? Field(*status, "policy") : nullptr;
  if (in_force == nullptr || TextOf(*in_force, "digest") == policy.digest()) {
    return;
  }
  invocation.console.Warn(
      "this answers for the folder; the server has another policy in force, digest " +
      TextOf(*in_force, "digest").substr(0, 12) + ": --in-force answers for that");
}

}  // namespace

Result<std::unique_ptr<policy::Policy>> LoadPolicyFolder(const Invocation& invocation,
                                                         std::string named) {
  if (named.empty()) {
    named = invocation.settings.Text(Setting::kPolicyFolder);
  }
  if (!os::IsDirectory(named)) {
    return Error{Code::kNotFound, "there is no folder " + named,
                 "name the policy's folder, with --policy DIR or RINGFENCE_POLICY"};
  }
  auto policy = policy::Policy::Load(named);
  if (!policy.has_value()) {
    return Prefix("policy folder " + named, policy.error());
  }
  return policy;
}

Result<std::map<std::string, std::string>> FilesOfVersion(const Json& version) {
  std::map<std::string, std::string> files;
  const Json* const json = Field(version, "files");
  const auto* const object = json == nullptr ? nullptr : json->if_object();
  if (object == nullptr) {
    return Error{Code::kInternal, "the server's answer has no files"};
  }
  for (const auto& member : *object) {
    if (const auto* const text = member.value().if_string()) {
      files.emplace(std::string(member.key()), std::string(text->data(), text->size()));
    }
  }
  return files;
}

Result<std::unique_ptr<policy::Policy>> FetchPolicyInForce(Api& api) {
  RINGFENCE_ASSIGN(const Json facts, api.Get("/v1/policy"));
  RINGFENCE_ASSIGN(const Json version,
                   api.Get(Target("/v1/policy/versions", TextOf(facts, "version"), "")));
  RINGFENCE_ASSIGN(const auto files, FilesOfVersion(version));
  RINGFENCE_ASSIGN(auto policy, policy::Policy::Parse(files));
  if (policy->digest() != TextOf(facts, "digest")) {
    return Error{Code::kConflict, "the policy was changed meanwhile", "try again"};
  }
  return policy;
}

Result<std::unique_ptr<policy::Policy>> LoadAskedPolicy(const Invocation& invocation) {
  const auto named = invocation.parsed.Value("policy");
  if (invocation.parsed.Has("in-force")) {
    if (named.has_value()) {
      return Error{Code::kInvalidArgument, "--policy and --in-force are two policies",
                   "ask one at a time"};
    }
    RINGFENCE_ASSIGN(const auto api, Api::Open(invocation.settings));
    return FetchPolicyInForce(*api);
  }
  RINGFENCE_ASSIGN(auto policy, LoadPolicyFolder(invocation, named.value_or("")));
  if (!named.has_value()) {
    WarnUnlessInForce(invocation, *policy);
  }
  return policy;
}

OptionSpec InForceOption() {
  return {.name = "in-force", .help = "ask the policy that is in force at the server"};
}

void WarnOfRules(Console& console, const policy::Policy& policy) {
  for (const std::string& warning : policy.rulebook().warnings()) {
    console.Warn(warning);
  }
}

OptionSpec PolicyFolderOption() {
  return {.name = "policy",
          .value = "DIR",
          .help = "the policy's folder (default: policy.folder)",
          .completes = Completes::kFolder};
}

}  // namespace ringfence::cli
