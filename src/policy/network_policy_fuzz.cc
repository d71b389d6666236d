// Any bytes as a file of network rules beside a good folder: refused with words, or loaded; and
// what was loaded opens nothing that no rule may open, and comes out as objects of the right shape.

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/check.h"
#include "policy/network.h"
#include "policy/network_export.h"
#include "policy/network_shape_test.h"

namespace {

using namespace ringfence;          // NOLINT(google-build-using-namespace)
using namespace ringfence::policy;  // NOLINT(google-build-using-namespace)

constexpr std::string_view kBase =
    "apiVersion: ringfence.dev/v1\nkind: Tenant\nmetadata: {name: acme}\nspec: {}\n---\n"
    "apiVersion: ringfence.dev/v1\nkind: Tenant\nmetadata: {name: acme/research}\nspec: {}\n---\n"
    "apiVersion: ringfence.dev/v1\nkind: Tenant\nmetadata: {name: globex}\nspec: {}\n---\n"
    "apiVersion: ringfence.dev/v1\nkind: Principal\nmetadata: {name: admin}\n"
    "spec: {kind: user}\n---\n"
    "apiVersion: ringfence.dev/v1\nkind: Binding\nmetadata: {name: root}\n"
    "spec: {principal: admin, role: admin, tenant: /}\n";

void CheckClosed(const Policy& policy, const NetworkRule& rule) {
  RINGFENCE_CHECK(!rule.ports.empty() && rule.ports.size() <= kPortsPerRuleMax);
  RINGFENCE_CHECK(policy.FindTenant(rule.from) != nullptr);
  for (const model::PortRange& ports : rule.ports) {
    const auto again = model::PortRange::Parse(ports.text());
    RINGFENCE_CHECK(again.has_value() && *again == ports);
    for (const char* never : {"169.254.169.254", "127.0.0.1", "224.0.0.1", "0.0.0.0"}) {
      const auto answer = AskFlow(policy, {rule.from, never, ports});
      RINGFENCE_CHECK(answer.has_value() && !answer->allowed);
    }
    if (rule.target == NetworkTarget::kTenant) {
      const auto answer = AskFlow(policy, {rule.from, rule.to_tenant.text(), ports});
      RINGFENCE_CHECK(answer.has_value() && answer->allowed);
    }
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  const auto policy = Policy::Parse({{"base.yaml", std::string(kBase)}, {"network.yaml", text}});
  if (!policy.has_value()) {
    RINGFENCE_CHECK(!policy.error().message.empty());
    return 0;
  }
  for (const NetworkRule& rule : (*policy)->network_rules()) {
    CheckClosed(**policy, rule);
  }
  for (const ExportFormat format :
       {ExportFormat::kKubernetes, ExportFormat::kCalico, ExportFormat::kCilium}) {
    const NetworkExport exported = ExportNetwork(**policy, format, "jobs");
    RINGFENCE_CHECK(shape::Wrong(exported, format).empty());
  }
  return 0;
}
