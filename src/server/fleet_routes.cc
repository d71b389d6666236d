// Tenants, nodes and GPUs, as people see them.

#include <algorithm>
#include <map>
#include <utility>

#include "fleet/node_state.h"
#include "gpu/readings.h"
#include "lease/life.h"
#include "lease/placement.h"
#include "lease/sharing.h"
#include "policy/boundary.h"
#include "server/proven.h"
#include "server/routes.h"
#include "server/shared_gpus.h"
#include "store/proofs.h"
#include "store/telemetry_records.h"
#include "wire/node_json.h"

namespace ringfence::server {
namespace {

constexpr std::size_t kReadingsBytesMax = std::size_t{8} << 20U;

JsonObject ViewOf(const model::Node& node, std::size_t gpus, const Proven& proven, Timestamp now) {
  JsonArray missing;
  for (const std::string& what : node.missing) {
    missing.emplace_back(what);
  }
  JsonObject view{{"name", node.name},
                  {"state", std::string(Name(fleet::StateOf(node, now)))},
                  {"missing", std::move(missing)},
                  {"joined", FormatTime(node.joined)},
                  {"last_seen", FormatTime(node.last_seen)},
                  {"version", node.version},
                  {"gpus", gpus},
                  {"simulated", node.simulated},
                  {"driver_version", node.driver_version},
                  {"kernel_driver", node.kernel_driver},
                  {"library_digest", node.library_digest},
                  {"certificate_expires", FormatTime(node.certificate_expires)},
                  {"receipt_key", node.receipt_key},
                  {"witness", node.witness_vkey},
                  {"images", wire::NodeImagesToJson(node.images)},
                  {"proof", proven.grade},
                  {"witnessed_size", static_cast<std::int64_t>(node.witnessed_size)}};
  if (proven.time.has_value()) {
    view["proof_time"] = FormatTime(*proven.time);
  }
  if (node.scrub_on_free.has_value()) {
    view["scrub_on_free"] = *node.scrub_on_free;
  }
  return view;
}

JsonObject ViewOf(const model::Gpu& gpu) {
  JsonObject view{{"uuid", gpu.uuid},
                  {"node", gpu.node},
                  {"index", gpu.index},
                  {"model", gpu.model},
                  {"memory_bytes", static_cast<std::int64_t>(gpu.memory_bytes)},
                  {"pci_address", gpu.pci_address},
                  {"vbios", gpu.vbios},
                  {"gsp_firmware", gpu.gsp_firmware},
                  {"ecc", gpu.ecc},
                  {"mig", gpu.mig},
                  {"confidential_computing", gpu.confidential_computing},
                  {"processes", gpu.processes},
                  {"state", std::string(Name(gpu.state))},
                  {"simulated", gpu.simulated}};
  const auto add = [&](std::string_view name, const std::string& value) {
    if (!value.empty()) {
      view[boost::json::string_view(name.data(), name.size())] = value;
    }
  };
  if (gpu.never_run_on_hardware()) {
    view["vendor"] = gpu.vendor;
    view["compute_partition"] = gpu.compute_partition;
    view["memory_partition"] = gpu.memory_partition;
    view["never_run_on_hardware"] = true;
  }
  if (gpu.is_slice()) {
    view["parent"] = gpu.parent;
    view["profile"] = gpu.profile;
    view["gpu_instance"] = gpu.gpu_instance;
    view["compute_instance"] = gpu.compute_instance;
    if (gpu.start.has_value()) {
      view["start"] = *gpu.start;
    }
  }
  add("lease", gpu.lease);
  add("tenant", gpu.tenant);
  add("last_receipt", gpu.last_receipt);
  add("reason", gpu.reason);
  add("fault", gpu.fault);
  return view;
}

// A number of GPUs, with the slices of some as parts of one.
Json GpusOf(std::uint64_t millis) {
  return millis % 1000 == 0 ? Json(millis / 1000) : Json(static_cast<double>(millis) / 1000);
}

std::size_t CountOf(const std::vector<model::Gpu>& gpus, const std::string& node) {
  return static_cast<std::size_t>(
      std::count_if(gpus.begin(), gpus.end(), [&](const model::Gpu& gpu) {
        return gpu.node == node && !gpu.is_slice() && gpu.state != model::GpuState::kLost;
      }));
}

// One page of what is sorted by `key_of`, after the cursor.
template <typename T, typename KeyOf, typename View>
Result<net::Response> PageThrough(const Call& call, const std::vector<T>& all, KeyOf key_of,
                                  View view) {
  RINGFENCE_ASSIGN(const Page page, PageOf(call.request));
  JsonArray items;
  JsonObject body;
  std::string last;
  for (const T& one : all) {
    if (!page.cursor.empty() && key_of(one) <= page.cursor) {
      continue;
    }
    if (static_cast<std::int64_t>(items.size()) == page.limit) {
      body["next_cursor"] = last;
      break;
    }
    last = key_of(one);
    items.emplace_back(view(one));
  }
  body["items"] = std::move(items);
  return net::Response::OfJson(200, body);
}

// One that is cut is not scrubbed itself: each of its slices is.
Status TrustCut(const Call& call, store::Connection& db, model::Gpu& gpu, const std::string& why) {
  RINGFENCE_ASSIGN(auto slices, store::GpusOf(db, gpu.node));
  for (model::Gpu& slice : slices) {
    if (slice.parent != gpu.uuid || !slice.lease.empty() || slice.state == model::GpuState::kLost) {
      continue;
    }
    slice.fault.clear();
    lease::Dirty(slice, call.core.Now(), why);
    RINGFENCE_TRY(store::PutGpu(db, slice));
  }
  gpu.state = model::GpuState::kCut;
  gpu.reason.clear();
  return store::PutGpu(db, gpu);
}

// A GPU that is quarantined or dirty is put back to where the node is told to scrub it.
Status OrderScrub(const Call& call, store::Connection& db, model::Gpu& gpu) {
  if (gpu.state != model::GpuState::kQuarantined && gpu.state != model::GpuState::kDirty) {
    return Error{Code::kFailedPrecondition,
                 gpu.uuid + " is " + std::string(Name(gpu.state)) +
                     ": only a quarantined or dirty GPU can be scrubbed by hand",
                 gpu.state == model::GpuState::kShared
                     ? "end the leases that share it: `ringfence gpu show " + gpu.uuid + "`"
                 : gpu.state == model::GpuState::kLeased
                     ? "end its lease: `ringfence lease end " + gpu.lease + "`"
                     : "a free GPU is clean already"};
  }
  const Timestamp now = call.core.Now();
  const std::string why = "scrub ordered by " + call.caller.principal;
  const std::string fault = std::exchange(gpu.fault, {});  // whoever orders it has looked at that
  RINGFENCE_TRY(store::PutGpu(db, gpu));
  if (!gpu.lease.empty()) {
    RINGFENCE_ASSIGN(model::Lease lease, store::GetLease(db, gpu.lease));
    if (lease.state == model::LeaseState::kQuarantined) {
      RINGFENCE_TRY(lease::Step(lease, model::LeaseState::kScrubbing, now, why));
      RINGFENCE_TRY(store::UpdateLease(db, lease));
      RINGFENCE_TRY(HoldGpus(db, lease));
      RINGFENCE_ASSIGN(gpu, store::GetGpu(db, gpu.uuid));
    }
  } else if (!gpu.is_slice() && gpu.mig == "on") {
    RINGFENCE_TRY(TrustCut(call, db, gpu, why));
  } else {
    lease::Dirty(gpu, now, why);
    RINGFENCE_TRY(store::PutGpu(db, gpu));
  }
  audit::Entry entry = call.core.NewEntry(ActorOf(call.caller), "gpu.scrub_order");
  entry.node = gpu.node;
  entry.lease = gpu.lease;
  entry.gpus = {gpu.uuid};
  Note(call, entry);
  entry.result = "ok";
  if (!fault.empty()) {
    entry.detail["fault_cleared"] = fault;
  }
  return Core::Record(db, entry);
}

// Whose lease it is, only to those who may see that tenant's leases.
void HideLease(const Call& call, model::Gpu& gpu) {
  const auto tenant = model::TenantPath::Create(gpu.tenant);
  if (!gpu.tenant.empty() &&
      (!tenant.has_value() || !Decide(call, policy::Action::kLeaseRead, *tenant).allowed)) {
    gpu.tenant.clear();
    gpu.lease.clear();
    gpu.last_receipt.clear();
  }
}

// Whether somebody has a slice of it whom the caller may not see.
Result<bool> HasHiddenSlice(const Call& call, store::Connection& db, const model::Gpu& gpu) {
  RINGFENCE_ASSIGN(auto others, store::GpusOf(db, gpu.node));
  return std::any_of(others.begin(), others.end(), [&](model::Gpu& slice) {
    if (slice.parent != gpu.uuid || slice.lease.empty()) {
      return false;
    }
    HideLease(call, slice);
    return slice.lease.empty();
  });
}

// Who has shares of it, of those whom the caller may see; the others are counted.
void AddShares(const Call& call, const model::Gpu& gpu, const std::vector<model::Lease>& open,
               JsonObject& view) {
  if (gpu.state != model::GpuState::kShared) {
    return;
  }
  auto sharers = lease::SharersOf(gpu.uuid, open, lease::Sharers::kRunning);
  std::uint64_t promised = 0;
  for (const model::Lease* lease : sharers) {
    promised += lease->request.share->memory_bytes;
  }
  const std::size_t all = sharers.size();
  std::erase_if(sharers, [&](const model::Lease* lease) {
    return !Decide(call, policy::Action::kLeaseRead, lease->request.tenant).allowed;
  });
  view["shares"] = SharesToJson(sharers);
  view["shares_hidden"] = static_cast<std::int64_t>(all - sharers.size());
  view["shared_bytes"] = static_cast<std::int64_t>(promised);
}

// What the GPU said last, as the node told it; absent when it said nothing.
Status AddReading(const Call& call, store::Connection& db, const model::Gpu& gpu,
                  JsonObject& view) {
  RINGFENCE_ASSIGN(store::NodeTelemetry known, store::GetTelemetry(db, gpu.node));
  call.core.telemetry().Improve(known);
  RINGFENCE_ASSIGN(const Json readings, ParseJson(known.readings, kReadingsBytesMax));
  for (const Json& one : readings.get_array()) {
    RINGFENCE_ASSIGN(gpu::Reading reading, gpu::ReadingFromJson(one));
    if (reading.uuid != gpu.uuid) {
      continue;
    }
    RINGFENCE_ASSIGN(const bool hidden_slice, HasHiddenSlice(call, db, gpu));
    const Json* const hidden = view.if_contains("shares_hidden");
    if (hidden_slice || (gpu.lease.empty() && gpu.state == model::GpuState::kLeased) ||
        (hidden != nullptr && hidden->as_int64() != 0)) {
      break;  // how busy another tenant's GPU is tells what it does there
    }
    view["reading"] = gpu::ReadingToJson(reading);
    view["read"] = FormatTime(known.read);
  }
  if (!known.blind.empty()) {
    view["blind"] = known.blind;
  }
  return {};
}

}  // namespace

void GetGpu(const Call& call, const net::Responder& responder) {
  Answer(responder, [&]() -> Result<net::Response> {
    JsonObject view;
    RINGFENCE_TRY(call.core.database().Read([&](store::Connection& db) -> Status {
      RINGFENCE_ASSIGN(model::Gpu gpu, store::GetGpu(db, call.params.find("gpu")->second));
      HideLease(call, gpu);
      view = ViewOf(gpu);
      RINGFENCE_ASSIGN(const auto open, store::OpenLeasesOf(db, gpu.node));
      AddShares(call, gpu, open, view);
      return AddReading(call, db, gpu, view);
    }));
    return net::Response::OfJson(200, view);
  });
}

void ListTenants(const Call& call, const net::Responder& responder) {
  Answer(responder, [&]() -> Result<net::Response> {
    const auto policy = call.core.policy();
    std::vector<model::Lease> open;
    RINGFENCE_TRY(call.core.database().Read([&](store::Connection& db) -> Status {
      RINGFENCE_ASSIGN(open, store::OpenLeases(db));
      return {};
    }));
    std::vector<policy::Tenant> visible;
    for (const policy::Tenant& tenant : policy->tenants()) {
      if (Decide(call, policy::Action::kTenantRead, tenant.path).allowed) {
        visible.push_back(tenant);
      }
    }
    return PageThrough(
        call, visible, [](const policy::Tenant& tenant) { return tenant.path.text(); },
        [&](const policy::Tenant& tenant) {
          JsonObject view{{"path", tenant.path.text()},
                          {"kind", std::string(Name(tenant.path.kind()))},
                          {"display_name", tenant.display_name},
                          {"gpus_leased", GpusOf(lease::MillisHeld(tenant.path, open))}};
          std::optional<std::uint32_t> tightest;
          for (const policy::Quota& quota : policy->QuotasOver(tenant.path)) {
            tightest = std::min(tightest.value_or(quota.gpus_max), quota.gpus_max);
          }
          if (tightest.has_value()) {
            view["gpus_max"] = *tightest;
          }
          return view;
        });
  });
}

// What lies between two tenants, to whoever may see one of them.
void GetBoundary(const Call& call, const net::Responder& responder) {
  Answer(responder, [&]() -> Result<net::Response> {
    const auto policy = call.core.policy();
    std::vector<model::TenantPath> two;
    for (const std::string_view name : {"a", "b"}) {
      auto path = model::TenantPath::Create(call.request.Query(name));
      if (!path.has_value()) {
        Error error = path.error();
        error.field = name;
        return error;
      }
      two.push_back(std::move(path).value());
    }
    if (!Decide(call, policy::Action::kTenantRead, two[0]).allowed) {
      RINGFENCE_TRY(Authorize(call, policy::Action::kTenantRead, two[1]));
    }
    for (const model::TenantPath& path : two) {
      if (policy->FindTenant(path) == nullptr) {
        return Error{Code::kNotFound, "no tenant \"" + path.text() + "\"",
                     "`ringfence tenant list` shows them", "tenant"};
      }
    }
    return net::Response::OfJson(
        200, policy::ToJson(policy::Between(*policy, two[0], two[1]), two[0], two[1]));
  });
}

void ListNodes(const Call& call, const net::Responder& responder) {
  Answer(responder, [&]() -> Result<net::Response> {
    std::vector<model::Node> nodes;
    std::vector<model::Gpu> gpus;
    std::map<std::string, Proven> proven;
    RINGFENCE_TRY(call.core.database().Read([&](store::Connection& db) -> Status {
      RINGFENCE_ASSIGN(nodes, call.core.Nodes(db));
      RINGFENCE_ASSIGN(gpus, store::ListGpus(db));
      for (const model::Node& node : nodes) {
        RINGFENCE_ASSIGN(const JsonObject document, store::GetProofs(db, node.name));
        proven[node.name] = ProvenOf(document);
      }
      return {};
    }));
    return PageThrough(
        call, nodes, [](const model::Node& node) { return node.name; },
        [&](const model::Node& node) {
          return ViewOf(node, CountOf(gpus, node.name), proven[node.name], call.core.Now());
        });
  });
}

void GetNode(const Call& call, const net::Responder& responder) {
  Answer(responder, [&]() -> Result<net::Response> {
    const std::string name = call.params.find("node")->second;
    JsonObject body;
    RINGFENCE_TRY(call.core.database().Read([&](store::Connection& db) -> Status {
      RINGFENCE_ASSIGN(const model::Node node, call.core.NodeNamed(db, name));
      RINGFENCE_ASSIGN(const auto gpus, store::GpusOf(db, name));
      RINGFENCE_ASSIGN(const JsonObject document, store::GetProofs(db, name));
      body = ViewOf(node, CountOf(gpus, name), ProvenOf(document), call.core.Now());
      return {};
    }));
    return net::Response::OfJson(200, body);
  });
}

void ListGpus(const Call& call, const net::Responder& responder) {
  Answer(responder, [&]() -> Result<net::Response> {
    std::vector<model::Gpu> gpus;
    std::vector<model::Lease> open;
    RINGFENCE_TRY(call.core.database().Read([&](store::Connection& db) -> Status {
      RINGFENCE_ASSIGN(gpus, store::ListGpus(db));
      if (std::any_of(gpus.begin(), gpus.end(), [](const model::Gpu& gpu) {
            return gpu.state == model::GpuState::kShared;
          })) {
        RINGFENCE_ASSIGN(open, store::OpenLeases(db));
      }
      return {};
    }));
    for (model::Gpu& gpu : gpus) {
      HideLease(call, gpu);
    }
    const auto key_of = [](const model::Gpu& gpu) {
      char index[16];
      (void)snprintf(index, sizeof index, "%08x", gpu.index);
      return gpu.node + "/" + index + "/" + gpu.uuid;
    };
    std::sort(gpus.begin(), gpus.end(),
              [&](const model::Gpu& a, const model::Gpu& b) { return key_of(a) < key_of(b); });
    return PageThrough(call, gpus, key_of, [&](const model::Gpu& gpu) {
      JsonObject view = ViewOf(gpu);
      AddShares(call, gpu, open, view);
      return view;
    });
  });
}

void ScrubGpu(const Call& call, const net::Responder& responder) {
  Answer(responder, [&]() -> Result<net::Response> {
    std::string node;
    auto response = CreateOnce(call, [&](store::Connection& db, Creation& creation) -> Status {
      RINGFENCE_ASSIGN(model::Gpu gpu, store::GetGpu(db, call.params.find("gpu")->second));
      RINGFENCE_TRY(OrderScrub(call, db, gpu));
      node = gpu.node;
      creation = {202, ViewOf(gpu)};
      return {};
    });
    call.core.NotifyWork(node);
    return response;
  });
}

}  // namespace ringfence::server
