// How fast the Cedar engine decides: 10,000 policies, 100,000 entities, one core. Every decision is
// timed by itself, from the request as text ids to the list of determining policies.
//
// usage: cedar [--requests N] [--distinct N] [--dump DIR]
// --distinct: so many different requests, again and again (all of them by default): few stay in the
// caches, many show what memory costs.
// --dump writes policies.cedar, entities.json and requests.json, for another implementation.

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <random>
#include <string>
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

}  // namespace

int main(int argc, char** argv) {
  std::size_t count = 200'000;
  std::size_t distinct = SIZE_MAX;
  std::string folder;
  for (int i = 1; i + 1 < argc; i += 2) {
    if (std::strcmp(argv[i], "--requests") == 0) {
      count = std::stoul(argv[i + 1]);
    } else if (std::strcmp(argv[i], "--distinct") == 0) {
      distinct = std::stoul(argv[i + 1]);
    } else if (std::strcmp(argv[i], "--dump") == 0) {
      folder = argv[i + 1];
    }
  }
  World world(1);
  const std::string text = world.Policies();
  auto entities = cedar::Entities::Make(world.Entities());
  if (!entities.has_value()) {
    std::fprintf(stderr, "%s\n", entities.error().message.c_str());
    return 1;
  }
  std::vector<cedar::Request> requests;
  for (std::size_t i = 0; i < count; ++i) {
    requests.push_back(i < distinct ? world.Request() : requests[i % distinct]);
  }
  if (!folder.empty()) {
    Dump(folder, text, *entities, requests);
  }
  const auto load = Clock::now();
  const auto store = cedar::EntityStore::Make(std::move(entities).value());
  const auto loaded = Clock::now();
  auto policies = cedar::ParsePolicies(text);
  if (!policies.has_value()) {
    std::fprintf(stderr, "%s\n", policies.error().message.c_str());
    return 1;
  }
  const auto engine = cedar::Engine::Make(std::move(policies).value(), store);
  const auto compiled = Clock::now();

  cedar::Engine::Scratch scratch;
  std::size_t allowed = 0;
  std::size_t reasons = 0;
  std::size_t errors = 0;
  for (std::size_t i = 0; i < count / 10; ++i) {  // warm: caches, and the scratch's memory
    (void)engine->Decide(requests[i], scratch);
  }
  std::vector<std::uint32_t> times(count);
  std::size_t allocations = 0;
  double total_ms = 0;
  for (std::size_t i = 0; i < count; ++i) {
    const cedar::Request request = JustMade(requests[i]);
    const std::size_t before = cedar::Allocations();
    const auto one = Clock::now();
    const auto outcome = engine->Decide(request, scratch);
    const auto took = Clock::now() - one;
    allocations += cedar::Allocations() - before;
    total_ms += Milliseconds(took);
    times[i] = static_cast<std::uint32_t>(
        std::chrono::duration_cast<std::chrono::nanoseconds>(took).count());
    allowed += outcome.decision == cedar::Decision::kAllow ? 1U : 0U;
    reasons += outcome.reasons.size();
    errors += outcome.errors.size();
  }
  std::sort(times.begin(), times.end());
  const auto at = [&](double share) {
    return times[static_cast<std::size_t>(static_cast<double>(count - 1) * share)];
  };
  std::printf(
      "policies %d: %d by principal, %d by group, %d by tenant, %d by action, %d unscoped\n",
      kByPrincipal + kByGroup + kByTenant + kByAction + kUnscoped, kByPrincipal, kByGroup,
      kByTenant, kByAction, kUnscoped);
  std::printf("entities %zu: %d users, %d groups, %d tenants, %d assets\n",
              store->entities().all().size(), kUsers, kGroups, kTenants, kAssets);
  std::printf("decisions %zu: %zu allowed, %zu determining policies, %zu errors\n", count, allowed,
              reasons, errors);
  std::printf("per decision: p50 %u ns, p90 %u ns, p99 %u ns, p99.9 %u ns, most %u ns\n", at(0.5),
              at(0.9), at(0.99), at(0.999), times.back());
  std::printf("throughput: %.0f decisions/s on one core, timing included\n",
              static_cast<double>(count) / total_ms * 1000);
  std::printf("allocations while deciding: %zu\n", allocations);
  std::printf("policies parsed and compiled in %.1f ms; entities compiled in %.1f ms\n",
              Milliseconds(compiled - loaded), Milliseconds(loaded - load));
  std::printf("memory: %zu bytes a policy, %zu bytes an entity, compiled forms only\n",
              engine->bytes() / engine->policies().size(),
              store->bytes() / store->entities().all().size());
  return allocations == 0 ? 0 : 1;
}
