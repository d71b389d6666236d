#pragma once

// What of a node a tenant's boxes may have, and how its images are named: the kinds BoxRule and
// BoxException of the policy folder.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/time.h"
#include "model/box_request.h"
#include "model/tenant.h"
#include "policy/source.h"

namespace ringfence::policy {

class Policy;

// Holds for a tenant and all below it. A rule below cannot take back what one above demands or
// forbids: limits are the least of all, demands add up; only mounts and devices are permissions,
// and add up too.
struct BoxRule {
  model::TenantPath tenant = model::TenantPath::Root();
  bool images_pinned = false;                // an image must be asked for by digest
  bool images_only = false;                  // a box without an image is refused
  std::vector<std::string> mounts;           // may be read
  std::vector<std::string> writable_mounts;  // may be written too
  std::optional<std::uint64_t> shm_bytes_max;
  std::optional<std::uint64_t> tmp_bytes_max;
  std::optional<std::uint64_t> huge_bytes_max;  // none stated: no huge pages
  std::vector<std::string> devices;             // of model::kFabricDevices: may be had
  Source source;
};

// kPermissionDenied, naming the rule or what is missing. `pinned`: the image was named by digest.
Status CheckBox(const Policy& policy, const model::TenantPath& tenant, const model::BoxRequest& box,
                bool pinned);

}  // namespace ringfence::policy
