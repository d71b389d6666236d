// How fast the Cedar engine decides: 10,000 policies, 100,000 entities, one core. Every decision is
// timed by itself, from the request as text ids to the list of determining policies.
//
// usage: cedar [--requests N] [--distinct N] [--dump DIR]
// --distinct: so many different requests, again and again (all of them by default): few stay in the
// caches, many show what memory costs.
// --dump writes policies.cedar, entities.json and requests.json, for another implementation.

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <ctime>
#include <fstream>
#include <memory>
#include <random>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "base/json.h"
#include "cedar/engine.h"
#include "cedar/json.h"
#include "cedar/parser.h"

namespace ringfence::cedar {
std::size_t Allocations();  // allocations.cc
}  // namespace ringfence::cedar

namespace {

using Clock = std::chrono::steady_clock;
using ringfence::Json;
using ringfence::JsonArray;
using ringfence::JsonObject;
namespace cedar = ringfence::cedar;

constexpr int kTenants = 50;
constexpr int kGroups = 1000;  // 20 in each tenant
constexpr int kUsers = 60'000;
constexpr int kAssets = 100'000 - kUsers - kGroups - kTenants - 4;

// The mix of policies, by what their scope asks for.
constexpr int kByPrincipal = 4000;
constexpr int kByGroup = 3500;
constexpr int kByTenant = 2400;
constexpr int kByAction = 80;
constexpr int kUnscoped = 20;

class World {
 public:
  explicit World(unsigned seed) : random_(seed) {}

  int Below(int count) { return static_cast<int>(random_() % static_cast<unsigned>(count)); }
  static std::string Uid(const char* type, int id) {
    return std::string(type) + "::\"" + type + std::to_string(id) + "\"";
  }
  static cedar::EntityUid Entity(const char* type, int id) {
    return {type, type + std::to_string(id)};
  }
  std::string Action() {
    static const char* const kNames[] = {"read", "write", "copy", "share"};
    return std::string("Action::\"") + kNames[Below(4)] + "\"";
  }

  std::string Policies() {
    std::string out;
    const auto add = [&](const std::string& effect, const std::string& scope,
                         const std::string& condition) {
      out += effect + "(" + scope + ")" + condition + ";\n";
    };
    for (int i = 0; i < kByPrincipal; ++i) {
      add("permit",
          "principal == " + Uid("User", Below(kUsers)) + ", action in [" + Action() + ", " +
              Action() + "], resource == " + Uid("Asset", Below(kAssets)),
          i % 2 == 0 ? " when { context.mfa && context.age < 3600 }" : "");
    }
    for (int i = 0; i < kByGroup; ++i) {
      add(i % 10 == 0 ? "forbid" : "permit",
          "principal in " + Uid("Group", Below(kGroups)) + ", action == " + Action() +
              ", resource is Asset",
          i % 2 == 0 ? " when { resource.class <= principal.clearance && context.mfa }"
                     : " when { resource.owner == principal || resource.labels.contains(\"l" +
                           std::to_string(Below(20)) + "\") }");
    }
    for (int i = 0; i < kByTenant; ++i) {
      add(i % 20 == 0 ? "forbid" : "permit",
          "principal, action == " + Action() + ", resource in " + Uid("Tenant", Below(kTenants)),
          " when { principal in " + Uid("Group", Below(kGroups)) +
              " && context.ip.isInRange(ip(\"10." + std::to_string(Below(256)) + ".0.0/16\")) }");
    }
    for (int i = 0; i < kByAction; ++i) {
      add("permit", "principal, action == " + Action() + ", resource",
          " when { principal.clearance == " + std::to_string(100 + i) + " }");
    }
    for (int i = 0; i < kUnscoped; ++i) {
      add("forbid", "principal, action, resource",
          " when { resource.class > " + std::to_string(i + 5) + " && !context.mfa }");
    }
    return out;
  }

  std::vector<cedar::Entity> Entities() {
    using cedar::Value;
    std::vector<cedar::Entity> out;
    for (int i = 0; i < kTenants; ++i) {
      out.push_back({.uid = Entity("Tenant", i)});
    }
    for (int i = 0; i < kGroups; ++i) {
      out.push_back({.uid = Entity("Group", i), .parents = {Entity("Tenant", i % kTenants)}});
    }
    for (int i = 0; i < kUsers; ++i) {
      cedar::Entity user{.uid = Entity("User", i)};
      user.attributes = {{"clearance", Value::Long(Below(5))},
                         {"name", Value::String("user number " + std::to_string(i))},
                         {"mail", Value::String(std::to_string(i) + "@example.org")}};
      for (int k = 0; k < 3; ++k) {
        user.parents.push_back(Entity("Group", Below(kGroups)));
      }
      out.push_back(std::move(user));
    }
    for (int i = 0; i < kAssets; ++i) {
      cedar::Entity asset{.uid = Entity("Asset", i)};
      asset.attributes = {{"class", Value::Long(Below(5))},
                          {"owner", Value::Entity(Entity("User", Below(kUsers)))},
                          {"labels", Value::Set({Value::String("l" + std::to_string(Below(20))),
                                                 Value::String("l" + std::to_string(Below(20)))})}};
      asset.parents.push_back(Entity("Tenant", Below(kTenants)));
      out.push_back(std::move(asset));
    }
    for (const char* name : {"read", "write", "copy", "share"}) {
      out.push_back({.uid = {"Action", name}});
    }
    return out;
  }

  cedar::Request Request() {
    using cedar::Value;
    cedar::ExtensionValue ip{.type = cedar::Extension::kIp};
    ip.ip.address = {10, static_cast<std::uint8_t>(Below(256)), 1, 2};
    ip.ip.prefix = 32;
    return {Entity("User", Below(kUsers)), *cedar::ParseEntityUid(Action()),
            Entity("Asset", Below(kAssets)),
            Value::Record({{"mfa", Value::Bool(Below(4) != 0)},
                           {"age", Value::Long(Below(7200))},
                           {"ip", Value::Extended(ip)}})};
  }

 private:
  std::mt19937 random_;
};

void Dump(const std::string& folder, const std::string& policies, const cedar::Entities& entities,
          const std::vector<cedar::Request>& requests) {
  std::ofstream(folder + "/policies.cedar") << policies;
  std::ofstream(folder + "/entities.json") << cedar::ToJsonText(entities);
  std::ofstream out(folder + "/requests.json");
  out << "[";
  for (std::size_t i = 0; i < requests.size(); ++i) {
    const cedar::Request& request = requests[i];
    out << (i == 0 ? "\n" : ",\n")
        << ringfence::CanonicalJson(JsonObject{{"principal", cedar::ToText(request.principal)},
                                               {"action", cedar::ToText(request.action)},
                                               {"resource", cedar::ToText(request.resource)},
                                               {"context", cedar::ToJson(request.context)}});
  }
  out << "\n]\n";
}

double Milliseconds(Clock::duration time) {
  return std::chrono::duration<double, std::milli>(time).count();
}

// A request as the one who asks has it: written a moment ago, not fetched from far away.
cedar::Request JustMade(const cedar::Request& request) {
  cedar::ValueRecord context;
  for (const auto& [name, value] : request.context.record()) {
    context.emplace(name, value.is(cedar::Value::Kind::kExtension)
                              ? cedar::Value::Extended(value.extension())
                              : value);
  }
  return {request.principal, request.action, request.resource,
          cedar::Value::Record(std::move(context))};
}

struct Options {
  std::size_t requests = 200'000;
  std::size_t distinct = SIZE_MAX;
  std::string dump;       // a folder
  std::string decisions;  // a file
  bool json = false;
};

Options Read(int argc, char** argv) {
  Options options;
  for (int i = 1; i + 1 < argc; i += 2) {
    const std::string_view name = argv[i];
    const char* value = argv[i + 1];
    if (name == "--requests") {
      options.requests = std::stoul(value);
    } else if (name == "--distinct") {
      options.distinct = std::stoul(value);
    } else if (name == "--dump") {
      options.dump = value;
    } else if (name == "--decisions") {
      options.decisions = value;
    } else if (name == "--output") {
      options.json = std::string_view(value) == "json";
    }
  }
  return options;
}

struct Timed {
  std::vector<std::uint32_t> ns;  // of each decision, sorted
  std::size_t allowed = 0;
  std::size_t reasons = 0;
  std::size_t errors = 0;
  std::size_t allocations = 0;

  std::uint32_t at(double share) const {
    return ns[static_cast<std::size_t>(static_cast<double>(ns.size() - 1) * share)];
  }
};

Timed Time(const cedar::Engine& engine, const std::vector<cedar::Request>& requests,
           std::ostream* decisions) {
  Timed timed;
  cedar::Engine::Scratch scratch;
  for (std::size_t i = 0; i < requests.size() / 10; ++i) {  // warm: the scratch's memory
    (void)engine.Decide(requests[i], scratch);
  }
  for (const cedar::Request& one : requests) {
    const cedar::Request request = JustMade(one);
    const std::size_t before = cedar::Allocations();
    const auto start = Clock::now();
    const auto outcome = engine.Decide(request, scratch);
    const auto took = Clock::now() - start;
    timed.allocations += cedar::Allocations() - before;
    timed.ns.push_back(static_cast<std::uint32_t>(
        std::chrono::duration_cast<std::chrono::nanoseconds>(took).count()));
    timed.allowed += outcome.decision == cedar::Decision::kAllow ? 1U : 0U;
    timed.reasons += outcome.reasons.size();
    timed.errors += outcome.errors.size();
    if (decisions != nullptr) {  // as tests/peers/cedar writes them
      *decisions << (outcome.decision == cedar::Decision::kAllow ? "allow [" : "deny [");
      for (std::size_t i = 0; i < outcome.reasons.size(); ++i) {
        *decisions << (i == 0 ? "" : ", ") << outcome.reasons[i];
      }
      *decisions << "] " << outcome.errors.size() << "\n";
    }
  }
  std::sort(timed.ns.begin(), timed.ns.end());
  return timed;
}

// Decisions a second of this program's processor time, without a clock between them.
double Rate(const cedar::Engine& engine, const std::vector<cedar::Request>& requests) {
  cedar::Engine::Scratch scratch;
  std::size_t allowed = 0;
  const std::clock_t start = std::clock();
  for (const cedar::Request& request : requests) {
    allowed += engine.Decide(request, scratch).decision == cedar::Decision::kAllow ? 1U : 0U;
  }
  const double seconds = static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC;
  return allowed > requests.size() ? 0 : static_cast<double>(requests.size()) / seconds;
}

struct Reloaded {
  double wall_ms = 0;       // the quickest
  double processor_ms = 0;  // the median
  std::size_t decided = 0;  // by the other thread meanwhile
};

// Reads and compiles the policies again and again and puts them in place of the others, while
// another thread goes on deciding with whatever is in place.
Reloaded Reload(const std::string& text, const std::shared_ptr<const cedar::EntityStore>& store,
                const std::vector<cedar::Request>& requests) {
  std::atomic<std::shared_ptr<const cedar::Engine>> live =
      cedar::Engine::Make(*cedar::ParsePolicies(text), store);
  std::atomic<bool> stop = false;
  std::atomic<std::size_t> decided = 0;
  std::thread decider([&] {
    cedar::Engine::Scratch scratch;
    for (std::size_t i = 0; !stop; ++i) {
      (void)live.load()->Decide(requests[i % requests.size()], scratch);
      decided.fetch_add(1, std::memory_order_relaxed);
    }
  });
  const auto processor_ms = [] {
    timespec now{};
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return static_cast<double>(now.tv_sec) * 1e3 + static_cast<double>(now.tv_nsec) / 1e6;
  };
  Reloaded out{.wall_ms = 1e9};
  std::vector<double> processor;
  for (int i = 0; i < 7; ++i) {
    const auto start = Clock::now();
    const double before = processor_ms();
    live = cedar::Engine::Make(*cedar::ParsePolicies(text), store);
    out.wall_ms = std::min(out.wall_ms, Milliseconds(Clock::now() - start));
    processor.push_back(processor_ms() - before);
  }
  stop = true;
  decider.join();
  std::sort(processor.begin(), processor.end());
  out.processor_ms = processor[processor.size() / 2];
  out.decided = decided;
  return out;
}

}  // namespace

int main(int argc, char** argv) {
  const Options options = Read(argc, argv);
  World world(1);
  const std::string text = world.Policies();
  auto entities = cedar::Entities::Make(world.Entities());
  auto policies = cedar::ParsePolicies(text);
  if (!entities.has_value() || !policies.has_value()) {
    std::fprintf(stderr, "%s\n",
                 (entities.has_value() ? policies.error() : entities.error()).message.c_str());
    return 1;
  }
  std::vector<cedar::Request> requests;
  for (std::size_t i = 0; i < options.requests; ++i) {
    requests.push_back(i < options.distinct ? world.Request() : requests[i % options.distinct]);
  }
  if (!options.dump.empty()) {
    Dump(options.dump, text, *entities, requests);
  }
  const auto start = Clock::now();
  const auto store = cedar::EntityStore::Make(std::move(entities).value());
  const double store_ms = Milliseconds(Clock::now() - start);
  const auto engine = cedar::Engine::Make(std::move(policies).value(), store);
  std::ofstream decisions;
  if (!options.decisions.empty()) {
    decisions.open(options.decisions);
  }
  const Timed timed = Time(*engine, requests, decisions.is_open() ? &decisions : nullptr);
  const double rate = Rate(*engine, requests);
  const Reloaded reloaded = Reload(text, store, requests);
  const std::size_t policy_bytes = engine->bytes() / engine->policies().size();
  const std::size_t entity_bytes = store->bytes() / store->entities().all().size();
  if (options.json) {
    std::printf(
        "{\"policies\": %zu, \"entities\": %zu, \"requests\": %zu, \"allowed\": %zu, \"p50\": %u, "
        "\"p99\": %u, \"rate\": %.0f, \"allocations\": %zu, \"reload_ms\": %.1f, "
        "\"reload_processor_ms\": %.1f, \"decided\": %zu, \"policy_bytes\": %zu, "
        "\"entity_bytes\": %zu}\n",
        engine->policies().size(), store->entities().all().size(), requests.size(), timed.allowed,
        timed.at(0.5), timed.at(0.99), rate, timed.allocations, reloaded.wall_ms,
        reloaded.processor_ms, reloaded.decided, policy_bytes, entity_bytes);
    return timed.allocations == 0 ? 0 : 1;
  }
  std::printf(
      "policies %zu: %d by principal, %d by group, %d by tenant, %d by action, %d unscoped\n",
      engine->policies().size(), kByPrincipal, kByGroup, kByTenant, kByAction, kUnscoped);
  std::printf("entities %zu: %d users, %d groups, %d tenants, %d assets\n",
              store->entities().all().size(), kUsers, kGroups, kTenants, kAssets);
  std::printf("decisions %zu: %zu allowed, %zu determining policies, %zu errors\n", requests.size(),
              timed.allowed, timed.reasons, timed.errors);
  std::printf("per decision: p50 %u ns, p90 %u ns, p99 %u ns, p99.9 %u ns, most %u ns\n",
              timed.at(0.5), timed.at(0.9), timed.at(0.99), timed.at(0.999), timed.ns.back());
  std::printf("throughput: %.0f decisions/s of processor time\n", rate);
  std::printf("allocations while deciding: %zu\n", timed.allocations);
  std::printf(
      "policies read and compiled in %.1f ms (%.1f of processor time) while another thread "
      "made %zu decisions; entities compiled in %.1f ms\n",
      reloaded.wall_ms, reloaded.processor_ms, reloaded.decided, store_ms);
  std::printf("memory: %zu bytes a policy, %zu bytes an entity, compiled forms only\n",
              policy_bytes, entity_bytes);
  return timed.allocations == 0 ? 0 : 1;
}
