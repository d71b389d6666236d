// MIG of GPUs: what they are cut into, what is ordered of them, and what their nodes say became of
// it. An order is planned here before it is given, and again by the jailer before it is obeyed.

#include <algorithm>
#include <map>
#include <set>

#include "base/encoding.h"
#include "crypto/dsse.h"
#include "crypto/random.h"
#include "crypto/sha256.h"
#include "gpu/mig_reshape.h"
#include "isolate/mig_order.h"
#include "lease/life.h"
#include "server/agent_work.h"
#include "server/queue.h"
#include "server/routes.h"
#include "store/mig_orders.h"

namespace ringfence::server {
namespace {

std::vector<model::Gpu> SlicesOf(const std::vector<model::Gpu>& gpus, const std::string& parent) {
  std::vector<model::Gpu> slices;
  for (const model::Gpu& gpu : gpus) {
    if (gpu.parent == parent && gpu.state != model::GpuState::kLost) {
      slices.push_back(gpu);
    }
  }
  std::sort(slices.begin(), slices.end(), [](const model::Gpu& a, const model::Gpu& b) {
    return std::pair(a.start, a.uuid) < std::pair(b.start, b.uuid);
  });
  return slices;
}

JsonObject SliceView(const Call& call, const model::Gpu& slice) {
  JsonObject view{{"uuid", slice.uuid},
                  {"profile", slice.profile},
                  {"start", slice.start ? Json(*slice.start) : Json(nullptr)},
                  {"memory_bytes", static_cast<std::int64_t>(slice.memory_bytes)},
                  {"state", std::string(Name(slice.state))}};
  if (!slice.reason.empty()) {
    view["reason"] = slice.reason;
  }
  const auto tenant = model::TenantPath::Create(slice.tenant);
  if (tenant.has_value() && Decide(call, policy::Action::kLeaseRead, *tenant).allowed) {
    view["lease"] = slice.lease;
    view["tenant"] = slice.tenant;
  }
  return view;
}

JsonObject MigView(const Call& call, const model::Gpu& gpu, const std::vector<model::Gpu>& gpus,
                   const std::optional<store::MigOrder>& order) {
  JsonArray slices;
  for (const model::Gpu& slice : SlicesOf(gpus, gpu.uuid)) {
    slices.push_back(SliceView(call, slice));
  }
  JsonObject view{{"uuid", gpu.uuid},
                  {"node", gpu.node},
                  {"index", gpu.index},
                  {"model", gpu.model},
                  {"board", gpu.board},
                  {"mode", gpu.mig},
                  {"state", std::string(Name(gpu.state))},
                  {"simulated", gpu.simulated},
                  {"slices", std::move(slices)}};
  if (order.has_value()) {
    view["order"] = store::MigOrderToJson(*order);
  }
  return view;
}

Status RequireFree(const model::Gpu& gpu, const std::string& why) {
  if (!gpu.lease.empty()) {
    return Error{Code::kFailedPrecondition,
                 gpu.uuid + " is held by lease " + gpu.lease + ": " + why,
                 "wait for that lease to end, or end it: `ringfence lease end " + gpu.lease + "`"};
  }
  if (gpu.state != model::GpuState::kFree && gpu.state != model::GpuState::kCut) {
    return Error{Code::kFailedPrecondition,
                 gpu.uuid + " is " + std::string(Name(gpu.state)) +
                     (gpu.reason.empty() ? "" : " (" + gpu.reason + ")") + ": " + why,
                 gpu.state == model::GpuState::kQuarantined
                     ? "see to it, then `ringfence gpu scrub " + gpu.uuid + "`"
                     : "try again when it is scrubbed: `ringfence gpu list`"};
  }
  return {};
}

struct Plan {
  gpu::MigReshape reshape;
  bool changes = false;
};

// The board's rules first, then who is in the way.
Result<Plan> PlanOrder(const model::Gpu& gpu, const std::vector<model::Gpu>& slices,
                       const gpu::MigAim& aim) {
  if (gpu.is_slice()) {
    return Error{Code::kInvalidArgument, gpu.uuid + " is a slice of " + gpu.parent,
                 "name the GPU: " + gpu.parent};
  }
  if (gpu.state == model::GpuState::kLost) {
    return Error{Code::kFailedPrecondition, gpu.uuid + " is lost: " + gpu.reason};
  }
  if (gpu.board.empty()) {
    return Error{Code::kFailedPrecondition,
                 gpu.uuid + " (" + gpu.model + ") is no board that Ringfence can cut, or its " +
                     "driver has no MIG",
                 "`ringfence mig boards` lists those that can be"};
  }
  RINGFENCE_ASSIGN(const gpu::MigBoard* board, gpu::FindMigBoard(gpu.board));
  RINGFENCE_TRY(gpu::PlanMigLayout(*board, aim.wishes));
  std::vector<gpu::PresentSlice> there;
  for (const model::Gpu& slice : slices) {
    if (!slice.start.has_value()) {
      return Error{Code::kUnavailable, gpu.uuid + ": its node does not say where " + slice.uuid +
                                           " lies, so nothing can be planned around it"};
    }
    there.push_back({slice.uuid, slice.profile, *slice.start, slice.lease});
  }
  Plan plan;
  const bool enabled = gpu.mig == "on";
  if (aim.enabled != enabled) {
    const std::string why = "MIG mode changes only on a drained GPU";
    if (!enabled) {
      RINGFENCE_TRY(RequireFree(gpu, why));
    }
    for (const model::Gpu& slice : slices) {
      RINGFENCE_TRY(RequireFree(slice, why));
    }
  }
  RINGFENCE_ASSIGN(plan.reshape, gpu::PlanReshape(*board, there, aim));
  for (const model::Gpu& slice : slices) {
    const auto& removed = plan.reshape.removed;
    if (std::find(removed.begin(), removed.end(), slice.uuid) != removed.end()) {
      RINGFENCE_TRY(RequireFree(slice,
                                "the layout has no such slice there, and only one that is "
                                "free and scrubbed can go"));
    }
  }
  plan.changes = aim.enabled != enabled || !plan.reshape.removed.empty() ||
                 plan.reshape.target.instances.size() != slices.size();
  return plan;
}

JsonObject PlanView(const Plan& plan) {
  JsonArray removed;
  for (const std::string& uuid : plan.reshape.removed) {
    removed.emplace_back(uuid);
  }
  return JsonObject{{"target", gpu::FormatMigTarget(plan.reshape.target)},
                    {"removed", std::move(removed)},
                    {"changes", plan.changes}};
}

struct Wanted {
  gpu::MigAim aim;
  bool dry_run = false;
};

Result<Wanted> ReadWanted(const net::Request& request) {
  RINGFENCE_ASSIGN(const Json body, BodyOf(request));
  RINGFENCE_ASSIGN(auto reader, JsonReader::Open(body));
  RINGFENCE_ASSIGN(const std::string aim, reader.String("aim", gpu::kMigLayoutBytesMax));
  Wanted wanted;
  RINGFENCE_ASSIGN(wanted.dry_run, reader.BoolOr("dry_run", false));
  RINGFENCE_TRY(reader.Finish());
  auto parsed = gpu::ParseMigAim(aim);
  if (!parsed.has_value()) {
    Error error = parsed.error();
    error.field = "aim";
    return error;
  }
  wanted.aim = std::move(*parsed);
  return wanted;
}

Status RecordOrder(const Call& call, store::Connection& db, const store::MigOrder& order,
                   const Plan& plan, const std::string& replaced) {
  audit::Entry entry = call.core.NewEntry(ActorOf(call.caller), "mig.reshape");
  entry.node = order.node;
  entry.gpus = {order.gpu};
  Note(call, entry);
  entry.result = "ok";
  entry.detail["order"] = order.id;
  entry.detail["aim"] = order.aim;
  entry.detail["target"] = order.target;
  entry.detail["removed"] = static_cast<std::int64_t>(plan.reshape.removed.size());
  if (!replaced.empty()) {
    entry.detail["replaces"] = replaced;
  }
  return Core::Record(db, entry);
}

// `node` is whom to wake.
Status OrderMig(const Call& call, store::Connection& db, const Wanted& wanted, Creation& creation,
                std::string& node) {
  RINGFENCE_ASSIGN(const model::Gpu gpu, store::GetGpu(db, call.params.find("gpu")->second));
  node = gpu.node;
  RINGFENCE_ASSIGN(const auto gpus, store::GpusOf(db, gpu.node));
  RINGFENCE_ASSIGN(auto order, store::FindMigOrder(db, gpu.uuid));
  const std::string aim = gpu::FormatMigAim(wanted.aim);
  creation.status = 200;
  if (order.has_value() && order->is_open() && order->aim == aim && !wanted.dry_run) {
    creation.body = MigView(call, gpu, gpus, order);  // said before
    return {};
  }
  RINGFENCE_ASSIGN(const Plan plan, PlanOrder(gpu, SlicesOf(gpus, gpu.uuid), wanted.aim));
  const bool open = order.has_value() && order->is_open();
  if (!wanted.dry_run && (plan.changes || open)) {
    const Timestamp now = call.core.Now();
    const std::int64_t now_ms = now.time_since_epoch() / Milliseconds(1);
    store::MigOrder next;
    next.id = crypto::RandomId("mig");
    next.gpu = gpu.uuid;
    next.node = gpu.node;
    next.serial = std::max(now_ms, order.has_value() ? order->serial + 1 : 1);
    next.aim = aim;
    next.target = gpu::FormatMigTarget(plan.reshape.target);
    next.ordered_by = call.caller.principal;
    next.ordered = now;
    next.updated = now;
    RINGFENCE_TRY(store::PutMigOrder(db, next));
    RINGFENCE_TRY(RecordOrder(call, db, next, plan, open ? order->id : ""));
    order = next;
    creation.status = 202;
  }
  creation.body = MigView(call, gpu, gpus, order);
  creation.body["plan"] = PlanView(plan);
  return {};
}

struct MigNews {
  std::string gpu;
  std::string envelope;
  std::string error;
};

Result<MigNews> ReadNews(const net::Request& request) {
  RINGFENCE_ASSIGN(const Json body, BodyOf(request));
  RINGFENCE_ASSIGN(auto reader, JsonReader::Open(body));
  MigNews news;
  RINGFENCE_ASSIGN(news.gpu, reader.String("gpu", 80));
  RINGFENCE_ASSIGN(news.envelope, reader.StringOr("envelope", "", crypto::kEnvelopeBytesMax));
  RINGFENCE_ASSIGN(news.error, reader.StringOr("error", "", 2048));
  RINGFENCE_TRY(reader.Finish());
  if (news.envelope.empty() == news.error.empty()) {
    return Error{Code::kInvalidArgument, "either envelope or error must be given", {}, "envelope"};
  }
  return news;
}

// What an order touched is not clean any more, whatever the records said.
Status DirtyTouched(const Call& call, store::Connection& db, const isolate::MigReport& report) {
  RINGFENCE_ASSIGN(auto gpus, store::GpusOf(db, report.node));
  for (model::Gpu& gpu : gpus) {
    const bool touched =
        std::find(report.touched.begin(), report.touched.end(), gpu.uuid) != report.touched.end();
    if (touched && gpu.state == model::GpuState::kFree && gpu.lease.empty()) {
      lease::Dirty(gpu, call.core.Now(), "cut anew: not scrubbed yet");
      RINGFENCE_TRY(store::PutGpu(db, gpu));
    }
  }
  return {};
}

Status TakeReport(const Call& call, store::Connection& db, const MigNews& news) {
  RINGFENCE_ASSIGN(const model::Node node, store::GetNode(db, call.caller.principal));
  RINGFENCE_ASSIGN(const Bytes raw, FromBase64(node.receipt_key));
  RINGFENCE_ASSIGN(const crypto::PublicKey key, crypto::PublicKey::FromRaw(raw));
  RINGFENCE_ASSIGN(const isolate::MigReport report, isolate::OpenMigReport(key, news.envelope));
  RINGFENCE_ASSIGN(auto order, store::FindMigOrder(db, report.gpu));
  if (report.node != node.name || !order.has_value() || order->node != node.name) {
    return Error{Code::kPermissionDenied, "the report is not about an order for this node"};
  }
  if (order->serial == report.serial && !order->is_open()) {
    return {};  // taken before
  }
  RINGFENCE_TRY(DirtyTouched(call, db, report));
  audit::Entry entry = call.core.NewEntry(ActorOf(call.caller),
                                          report.reason.empty() ? "mig.applied" : "mig.failed");
  entry.node = node.name;
  entry.gpus = {report.gpu};
  entry.result = report.reason.empty() ? "ok" : "error";
  entry.detail["order"] = report.order;
  entry.detail["report_digest"] = Hex(crypto::Sha256(AsBytes(news.envelope)));
  if (!report.reason.empty()) {
    entry.detail["why"] = report.reason.substr(0, 1024);
  }
  if (report.live.has_value()) {
    entry.detail["now"] = gpu::FormatMigTarget(gpu::TargetOf(*report.live));
  }
  RINGFENCE_TRY(Core::Record(db, entry));
  if (order->serial != report.serial) {
    return {};  // of one that was replaced meanwhile
  }
  order->state =
      report.reason.empty() ? store::MigOrderState::kApplied : store::MigOrderState::kFailed;
  order->reason = report.reason;
  order->updated = call.core.Now();
  return store::PutMigOrder(db, *order);
}

Status NoteDelay(const Call& call, store::Connection& db, const MigNews& news) {
  RINGFENCE_ASSIGN(auto order, store::FindMigOrder(db, news.gpu));
  if (!order.has_value() || order->node != call.caller.principal || !order->is_open() ||
      order->reason == news.error) {
    return {};
  }
  order->reason = news.error;
  order->updated = call.core.Now();
  return store::PutMigOrder(db, *order);
}

}  // namespace

Result<std::set<std::string>> AddMigOrders(Core& core, const std::string& node, JsonArray& orders) {
  std::vector<store::MigOrder> open;
  RINGFENCE_TRY(core.database().Read([&](store::Connection& db) -> Status {
    RINGFENCE_ASSIGN(open, store::OpenMigOrders(db));
    return {};
  }));
  std::erase_if(open, [&](const store::MigOrder& order) { return order.node != node; });
  const bool any_new = std::any_of(open.begin(), open.end(), [](const store::MigOrder& order) {
    return order.state == store::MigOrderState::kOrdered;
  });
  if (any_new) {
    RINGFENCE_TRY(core.Change([&](store::Connection& db) -> Status {
      for (store::MigOrder& order : open) {
        RINGFENCE_ASSIGN(auto now, store::FindMigOrder(db, order.gpu));
        if (now.has_value() && now->state == store::MigOrderState::kOrdered) {
          now->state = store::MigOrderState::kApplying;
          RINGFENCE_TRY(store::PutMigOrder(db, *now));
          order = *now;
        }
      }
      return {};
    }));
  }
  std::set<std::string> gpus;
  for (const store::MigOrder& order : open) {
    gpus.insert(order.gpu);
    orders.emplace_back(JsonObject{
        {"do", "mig"},
        {"gpus", JsonArray{Json(order.gpu)}},
        {"order", isolate::SealMigOrder(core.keys().grant, {order.id, order.serial, order.node,
                                                            order.gpu, order.aim})}});
  }
  return gpus;
}

void GetGpuMig(const Call& call, const net::Responder& responder) {
  Answer(responder, [&]() -> Result<net::Response> {
    JsonObject view;
    RINGFENCE_TRY(call.core.database().Read([&](store::Connection& db) -> Status {
      RINGFENCE_ASSIGN(const model::Gpu gpu, store::GetGpu(db, call.params.find("gpu")->second));
      RINGFENCE_ASSIGN(const auto gpus, store::GpusOf(db, gpu.node));
      RINGFENCE_ASSIGN(const auto order, store::FindMigOrder(db, gpu.uuid));
      view = MigView(call, gpu, gpus, order);
      return {};
    }));
    return net::Response::OfJson(200, view);
  });
}

void ListMig(const Call& call, const net::Responder& responder) {
  Answer(responder, [&]() -> Result<net::Response> {
    RINGFENCE_ASSIGN(const Page page, PageOf(call.request));
    std::vector<model::Gpu> gpus;
    std::map<std::string, store::MigOrder> orders;
    RINGFENCE_TRY(call.core.database().Read([&](store::Connection& db) -> Status {
      RINGFENCE_ASSIGN(gpus, store::ListGpus(db));
      RINGFENCE_ASSIGN(auto all, store::ListMigOrders(db));
      for (store::MigOrder& order : all) {
        const std::string gpu = order.gpu;
        orders[gpu] = std::move(order);
      }
      return {};
    }));
    const auto key_of = [](const model::Gpu& gpu) {
      char index[16];
      (void)snprintf(index, sizeof index, "%08x", gpu.index);
      return gpu.node + "/" + index + "/" + gpu.uuid;
    };
    std::map<std::string, const model::Gpu*> whole;
    for (const model::Gpu& gpu : gpus) {
      if (!gpu.is_slice() && gpu.state != model::GpuState::kLost) {
        whole[key_of(gpu)] = &gpu;
      }
    }
    JsonObject body;
    JsonArray items;
    for (auto one = whole.upper_bound(page.cursor); one != whole.end(); ++one) {
      if (static_cast<std::int64_t>(items.size()) == page.limit) {
        body["next_cursor"] = std::prev(one)->first;
        break;
      }
      const auto order = orders.find(one->second->uuid);
      items.push_back(MigView(
          call, *one->second, gpus,
          order == orders.end() ? std::optional<store::MigOrder>() : std::optional(order->second)));
    }
    body["items"] = std::move(items);
    return net::Response::OfJson(200, body);
  });
}

void OrderGpuMig(const Call& call, const net::Responder& responder) {
  Answer(responder, [&]() -> Result<net::Response> {
    RINGFENCE_ASSIGN(const Wanted wanted, ReadWanted(call.request));
    std::string node;
    auto response = CreateOnce(call, [&](store::Connection& db, Creation& creation) {
      return OrderMig(call, db, wanted, creation, node);
    });
    if (response.has_value() && !node.empty()) {
      call.core.NotifyWork(node);
    }
    return response;
  });
}

void AgentMig(const Call& call, const net::Responder& responder) {
  Answer(responder, [&]() -> Result<net::Response> {
    RINGFENCE_ASSIGN(const MigNews news, ReadNews(call.request));
    RINGFENCE_TRY(call.core.Change([&](store::Connection& db) {
      return news.error.empty() ? TakeReport(call, db, news) : NoteDelay(call, db, news);
    }));
    if (news.error.empty()) {
      call.core.NotifyWork(call.caller.principal);
      ServeQueueAfter(call.core);
    }
    return net::Response::OfJson(200, JsonObject{});
  });
}

}  // namespace ringfence::server
