#pragma once

// The boundaries around one request; Placer's own.

#include <map>
#include <set>
#include <string>
#include <vector>

#include "place/placer.h"

namespace ringfence::place {

class Placer::TenantFence : public Fence {
 public:
  TenantFence(const Placer& placer, const Request& request) : placer_(placer), request_(request) {}

  bool NodeOpen(std::uint32_t node) const override;
  bool GpuOpen(std::uint32_t node, std::uint32_t gpu, const Form& form) const override;

  // Who closes it, with the boundary's own reason; null for nobody.
  struct Closed {
    const Lease* by = nullptr;
    std::string reason;
  };
  Closed NodeClosed(std::uint32_t node) const;
  Closed GpuClosed(std::uint32_t node, std::uint32_t gpu, const Form& form) const;

  std::set<std::uint32_t> taken;  // nodes that have a part of this request already

 private:
  const policy::IsolationDemand& Between(const Lease& other) const;

  const Placer& placer_;
  const Request& request_;
  mutable std::map<model::TenantPath, policy::IsolationDemand> between_;
};

}  // namespace ringfence::place
