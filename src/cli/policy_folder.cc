#include "cli/policy_folder.h"

#include "cli/settings.h"
#include "os/file.h"

namespace ringfence::cli {

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

OptionSpec PolicyFolderOption() {
  return {.name = "policy",
          .value = "DIR",
          .help = "the policy's folder (default: policy.folder)",
          .completes = Completes::kFolder};
}

}  // namespace ringfence::cli
