#pragma once

// The network rules of a policy as objects of Kubernetes and two of its network plugins.
//
// Pods carry their tenant as three labels: ringfence.dev/department, /team and /project; a tenant
// above matches everything below it. What a format cannot say is left out, which closes more than
// the policy does and never less, and is named.

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "policy/policy.h"

namespace ringfence::policy {

enum class ExportFormat { kKubernetes, kCalico, kCilium };
std::optional<ExportFormat> ParseExportFormat(std::string_view text);  // k8s, calico, cilium

struct NetworkExport {
  std::vector<Json> objects;          // the first closes everything
  std::vector<std::string> left_out;  // "rule NAME (file:line): why"
};
// `name_space` is where the pods are. It must be a DNS label.
NetworkExport ExportNetwork(const Policy& policy, ExportFormat format,
                            const std::string& name_space);

// Objects as one YAML stream.
std::string ToYamlStream(const std::vector<Json>& objects);

}  // namespace ringfence::policy
