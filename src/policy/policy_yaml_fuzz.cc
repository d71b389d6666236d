// Any bytes as a policy folder: refused with words, or loaded whole. Files are divided by a line of
// "===", so that one input can reach across files.

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include "base/check.h"
#include "base/encoding.h"
#include "policy/boundary.h"
#include "policy/policy.h"
#include "wire/yaml.h"

namespace {

using ringfence::policy::Policy;

void CheckWhole(const Policy& policy) {
  bool administered = false;
  for (const auto& tenant : policy.tenants()) {
    RINGFENCE_CHECK(tenant.path.parent().is_root() || policy.FindTenant(tenant.path.parent()));
  }
  for (const auto& binding : policy.bindings()) {
    RINGFENCE_CHECK(policy.FindPrincipal(binding.principal) != nullptr);
    RINGFENCE_CHECK(binding.tenant.is_root() || policy.FindTenant(binding.tenant) != nullptr);
    administered = administered || (binding.role == "admin" && binding.tenant.is_root());
    const auto decision = policy.Decide(
        {binding.principal, ringfence::policy::Action::kLeaseRequest, binding.tenant});
    RINGFENCE_CHECK(!decision.reason.empty());
  }
  for (const auto& boundary : policy.boundaries()) {
    if (boundary.scope == ringfence::policy::BoundaryScope::kPair) {
      RINGFENCE_CHECK(ringfence::policy::LeastBetween(policy, boundary.a, boundary.b).least >=
                      boundary.least);
    }
  }
  RINGFENCE_CHECK(administered);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  std::string_view text(reinterpret_cast<const char*>(data), size);
  constexpr std::string_view kDivider = "\n===\n";
  std::map<std::string, std::string> files;
  for (int i = 0; i < 8; ++i) {
    const std::size_t end = text.find(kDivider);
    files["f" + std::to_string(i) + ".yaml"] = text.substr(0, end == text.npos ? end : end + 1);
    if (end == text.npos) {
      break;
    }
    text.remove_prefix(end + kDivider.size());
  }
  const auto policy = Policy::Parse(files);
  if (policy.has_value()) {
    CheckWhole(**policy);
  } else {
    RINGFENCE_CHECK(!policy.error().message.empty());
    RINGFENCE_CHECK(policy.error().message.size() < 100'000);
  }
  // The same bytes as a configuration file: what can be read can be written and read again.
  const auto json = ringfence::wire::YamlToJson(files["f0.yaml"], "f0.yaml");
  if (json.has_value()) {
    const std::string yaml = ringfence::wire::JsonToYaml(*json);
    const auto again = ringfence::wire::YamlToJson(yaml, "again.yaml");
    RINGFENCE_CHECK(again.has_value() || yaml.size() > ringfence::wire::kYamlBytesMax);
    RINGFENCE_CHECK(!again.has_value() || *again == *json);
  }
  return 0;
}
