#include "users.h"

#include <algorithm>

#include "base/check.h"
#include "base/json.h"

namespace ringfence::simulation {
namespace {

constexpr const char* kAdmin = "admin";
constexpr std::size_t kOverheardMax = 200;

struct Person {
  const char* name;
  const char* tenant;
};
constexpr Person kPeople[] = {{"alice@acme.example", "acme/a"},
                              {"bob@acme.example", "acme/b/deep"},
                              {"gina@globex.example", "globex/x"},
                              {"mallory@globex.example", "acme/a"}};  // may not

std::string ChooseJob(Chance& chance) {
  const std::string time = std::to_string(chance.Between(0, chance.In1000(800) ? 8000 : 60000));
  switch (chance.Between(0, 9)) {
    case 0:
      return "signal:" + std::to_string(chance.Between(1, 31)) + ":" + time;
    case 1:
      return "oom:" + time;
    case 2:
      return "stay";
    case 3:
      return "cling";
    default:
      return "exit:" + std::to_string(chance.Between(0, 3)) + ":" + time;
  }
}

}  // namespace

std::string PolicyText(bool with_boundary) {
  std::string text;
  const auto add = [&](const std::string& kind, const std::string& name, const std::string& spec) {
    text += (text.empty() ? "" : "---\n") + std::string("apiVersion: ringfence.dev/v1\nkind: ") +
            kind + "\nmetadata: {name: " + name + "}\nspec: {" + spec + "}\n";
  };
  for (const char* tenant : {"acme", "acme/a", "acme/b", "acme/b/deep", "globex", "globex/x"}) {
    add("Tenant", tenant, "");
  }
  for (const char* principal : {"admin", "alice@acme.example", "bob@acme.example",
                                "gina@globex.example", "mallory@globex.example"}) {
    add("Principal", principal, "kind: user");
  }
  add("Binding", "b1", "principal: admin, role: admin, tenant: /");
  add("Binding", "b2", "principal: alice@acme.example, role: developer, tenant: acme");
  add("Binding", "b3", "principal: bob@acme.example, role: developer, tenant: acme/b");
  add("Binding", "b4", "principal: gina@globex.example, role: developer, tenant: globex");
  add("Binding", "b5", "principal: mallory@globex.example, role: developer, tenant: globex");
  add("Quota", "q1", "tenant: acme, gpus: 9");
  add("Quota", "q2", "tenant: acme/b, gpus: 5");
  add("Quota", "q3", "tenant: globex, gpus: 7");
  if (with_boundary) {
    add("Boundary", "apart", "between: [acme/b, globex], least: node");
  }
  return text;
}

void Users::SignIn() {
  tokens_[kAdmin] = server_.MintToken(kAdmin);
  for (const Person& person : kPeople) {
    tokens_[person.name] = server_.MintToken(person.name);
  }
}

net::Request Users::Make(const std::string& who, const std::string& method, const std::string& path,
                         const Json& body) const {
  net::Request request;
  request.method = method;
  request.path = path;
  request.headers.emplace_back("authorization", "Bearer " + tokens_.at(who));
  request.body = CanonicalJson(body);
  request.remote_address = "198.51.100.7";
  return request;
}

void Users::RequestSomething(std::size_t gpus_max) {
  Chance& chance = scheduler_.chance();
  const Person& person = kPeople[chance.In1000(30) ? 3 : chance.Between(0, 2)];
  const std::string key = "request-" + std::to_string(next_key_++);
  net::Request request = Make(
      person.name, "POST", "/v1/leases",
      JsonObject{
          {"tenant", person.tenant},
          {"gpus", chance.Between(
                       1, static_cast<std::int64_t>(
                              chance.In1000(700) ? std::min<std::size_t>(gpus_max, 2) : gpus_max))},
          {"command", JsonArray{"job", Json(key), Json(ChooseJob(chance))}},
          {"timeout_ms", chance.Between(1000, chance.In1000(800) ? 15000 : 120000)}});
  request.headers.emplace_back("idempotency-key", key);
  ++asked;
  Try(person.name, request, key, 6);
}

void Users::Try(const std::string& who, const net::Request& request, const std::string& key,
                int attempts) {
  network_.Send("users", request, [=, this](const Result<net::Response>& answer) {
    const bool unknown = !answer.has_value() || answer->status == 503 || answer->status == 429;
    if (unknown && attempts > 1) {
      scheduler_.After(scheduler_.chance().Time(100, 10000),
                       [=, this] { Try(who, request, key, attempts - 1); });
      return;
    }
    if (unknown || answer->status >= 300) {
      return;
    }
    const auto body = ParseJson(answer->body, answer->body.size());
    RINGFENCE_CHECK(body.has_value());
    const auto& id = body->at("id").as_string();
    judge_.OnAcknowledged(key, std::string(id.data(), id.size()));
    ++granted;
    if (who.starts_with("mallory")) {
      judge_.Condemn("mallory was given a lease in another company");
    }
  });
}

void Users::EndSomething() {
  const auto& open = judge_.open_leases();
  if (open.empty()) {
    return;
  }
  auto chosen = open.begin();
  std::advance(chosen, scheduler_.chance().Between(0, static_cast<std::int64_t>(open.size()) - 1));
  network_.Send("users", Make(kAdmin, "POST", "/v1/leases/" + *chosen + "/end", JsonObject{}),
                [](const Result<net::Response>&) {});
}

void Users::ScrubQuarantined() {
  for (const auto& [uuid, gpu] : judge_.gpus()) {
    if (gpu.state == model::GpuState::kQuarantined) {
      network_.Send("users", Make(kAdmin, "POST", "/v1/gpus/" + uuid + "/scrub", JsonObject{}),
                    [](const Result<net::Response>&) {});
    }
  }
}

void Users::Overhear(const net::Request& request) {
  if (request.path == "/v1/agent/receipts" && receipts_.size() < kOverheardMax) {
    receipts_.push_back(request.body);
  }
}

void Users::Lie(SimNode& node) {
  Chance& chance = scheduler_.chance();
  std::vector<std::string> leases(judge_.open_leases().begin(), judge_.open_leases().end());
  net::Request request;
  request.method = "POST";
  request.remote_address = "192.0.2.66";
  request.peer =
      net::PeerCertificate{node.name(), {"ringfence://node/" + node.name()}, node.fingerprint()};
  const std::string lease = leases.empty() ? "" : chance.Pick(leases);
  switch (chance.Between(0, 4)) {
    case 0:    // an old receipt as it was
    case 1: {  // an old receipt, offered for something else
      if (receipts_.empty()) {
        return;
      }
      request.path = "/v1/agent/receipts";
      request.body = chance.Pick(receipts_);
      auto body = ParseJson(request.body, request.body.size());
      if (chance.In1000(700)) {
        body->as_object()["lease"] = chance.In1000(300) ? "" : lease;
        body->as_object()["gpus"] = JsonArray{Json(chance.Pick(node.gpus()).uuid)};
      }
      request.body = CanonicalJson(*body);
      break;
    }
    case 2:  // it has ended (it has not)
      request.path = "/v1/agent/leases/" + lease + "/step";
      request.body = CanonicalJson(JsonObject{{"step", "ended"}, {"ending", "exited 0"}});
      break;
    case 3:  // it has started (perhaps not)
      request.path = "/v1/agent/leases/" + lease + "/step";
      request.body = CanonicalJson(JsonObject{{"step", "started"}});
      break;
    default:  // nothing runs here
      request.path = "/v1/agent/report";
      request.body = CanonicalJson(JsonObject{{"version", "0"},
                                              {"starting", chance.In1000(300)},
                                              {"witnessed", 0},
                                              {"missing", JsonArray{}},
                                              {"boxes", JsonArray{}}});
      break;
  }
  scheduler_.Trace(node.name() + " lies:");
  network_.Send(node.name(), request, [](const Result<net::Response>&) {});
}

}  // namespace ringfence::simulation
