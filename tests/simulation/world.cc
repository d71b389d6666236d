#include "world.h"

#include <algorithm>

#include "audit/verify.h"
#include "base/check.h"
#include "base/encoding.h"
#include "crypto/x509.h"
#include "isolate/join_token.h"
#include "os/file.h"

namespace ringfence::simulation {
namespace {

constexpr Milliseconds kQuietWithin = std::chrono::minutes(30);

std::unique_ptr<policy::Policy> MakePolicy(bool with_boundary) {
  auto policy = policy::Policy::Parse({{"policy.yaml", PolicyText(with_boundary)}});
  RINGFENCE_CHECK(policy.has_value());
  return std::move(*policy);
}

std::uint64_t Seeded(std::uint64_t seed) {
  SeedOpenSsl(seed);
  return seed;
}

Json AnswerOf(SimServer& server, const net::Request& request) {
  Json json;
  server.Handle(request, [&](const Result<net::Response>& response) {
    RINGFENCE_CHECK(response.has_value() && response->status < 300);
    json = ParseJson(response->body, response->body.size()).value();
  });
  return json;
}

std::string TextIn(const Json& json, const char* name) {
  const auto& text = json.at(name).as_string();
  return {text.data(), text.size()};
}

}  // namespace

World::World(std::uint64_t seed, std::string folder, std::size_t trace_kept)
    : folder_(std::move(folder)),
      scheduler_(Seeded(seed)),
      policy_(MakePolicy(scheduler_.chance().In1000(500))),
      judge_(scheduler_, *policy_,
             {[this](const std::string& lease) {
                return std::any_of(nodes_.begin(), nodes_.end(),
                                   [&](const auto& node) { return node->BoxRuns(lease); });
              },
              [this](const std::string& uuid) { return ResidueOn(uuid); }}),
      server_(scheduler_, judge_,
              std::shared_ptr<const policy::Policy>(policy_.get(), [](const policy::Policy*) {}),
              folder_ + "/server"),
      network_(scheduler_, server_),
      users_(scheduler_, network_, server_, judge_) {
  scheduler_.SetTraceKept(trace_kept);
  report_.seed = seed;
}

World::~World() { scheduler_.Finish(); }

void World::Begin() {
  Chance& chance = scheduler_.chance();
  server_.on_crash = [this] {
    scheduler_.After(scheduler_.chance().In1000(100) ? scheduler_.chance().Time(10000, 90000)
                                                     : scheduler_.chance().Time(50, 5000),
                     [this] {
                       if (!server_.up()) {
                         server_.Start();
                       }
                     });
  };
  network_.on_delivery = [this](const std::string&, const net::Request& request) {
    users_.Overhear(request);
  };
  server_.Start();
  users_.SignIn();
  const std::int64_t nodes = chance.Between(1, 3);
  for (std::int64_t i = 1; i <= nodes; ++i) {
    const std::string name = "n" + std::to_string(i);
    const auto gpus = static_cast<std::size_t>(chance.Between(1, 6));
    gpus_max_ = std::max(gpus_max_, gpus);
    nodes_.push_back(std::make_unique<SimNode>(
        SimNode::Place{scheduler_, network_, judge_, folder_ + "/" + name}, name, gpus));
    Join(*nodes_.back());
    nodes_.back()->PowerOn();
  }
  // Each world has misfortunes of its own: some often, some never.
  for (int i = 0; i < static_cast<int>(Fault::kCount); ++i) {
    weights_.push_back(static_cast<int>(chance.Between(-2, 4)));
  }
  fault_every_ = chance.Time(4000, 40000);
  user_every_ = chance.Time(250, 3000);
}

// The real join, by the real routes: token, proof by the jailer's half, certificate.
void World::Join(SimNode& node) {
  net::Request ask;
  ask.method = "POST";
  ask.path = "/v1/node-tokens";
  ask.headers.emplace_back("authorization", "Bearer " + server_.MintToken("admin"));
  ask.body = CanonicalJson(JsonObject{{"node", node.name()}});
  const auto token = isolate::ParseJoinToken(TextIn(AnswerOf(server_, ask), "token"));
  RINGFENCE_CHECK(token.has_value());
  const auto made = crypto::MakeRequest(node.name());
  RINGFENCE_CHECK(made.has_value());
  net::Request join;
  join.method = "POST";
  join.path = "/v1/agent/join";
  join.body =
      CanonicalJson(JsonObject{{"secret", Base64Url(isolate::AgentHalf(token->secret).Reveal())},
                               {"request", made->request_pem},
                               {"receipt_key", node.ReceiptKey()},
                               {"key_proof", node.KeyProof(isolate::JailerHalf(token->secret))},
                               {"witness", node.WitnessVkey()}});
  const Json answer = AnswerOf(server_, join);
  node.Joined(token->grant_key,
              {server_.server_address(), TextIn(answer, "ca"), TextIn(answer, "certificate"),
               made->private_key_pem, TextIn(answer, "log_vkey")});
}

void World::RunUntil(Milliseconds time) {
  while (judge_.verdict().empty() && scheduler_.Step(time)) {
  }
}

void World::PlanUser() {
  scheduler_.After(scheduler_.chance().Time(0, 2 * user_every_.count()), [this] {
    if (healed_) {
      return;
    }
    users_.RequestSomething(gpus_max_);
    if (scheduler_.chance().In1000(150)) {
      users_.EndSomething();
    }
    PlanUser();
  });
}

void World::Heal() {
  scheduler_.Trace("everything heals");
  healed_ = true;
  network_.lost_in_1000 = network_.unheard_in_1000 = 0;
  network_.repeated_in_1000 = network_.late_in_1000 = 0;
  network_.cut.clear();
  server_.writes_failing_in_1000 = server_.killed_at_write_in_1000 = 0;
  server_.clock().offset = Milliseconds(0);
  for (const auto& node : nodes_) {
    node->clock().offset = Milliseconds(0);
    node->faults = {};
    for (SimGpu& gpu : node->gpus()) {
      gpu.present = true;
      gpu.bad = false;
    }
  }
}

std::string World::ResidueOn(const std::string& uuid) const {
  for (const auto& node : nodes_) {
    for (const SimGpu& gpu : node->gpus()) {
      if (gpu.uuid == uuid) {
        return gpu.residue;
      }
    }
  }
  return "?";
}

bool World::IsQuiet() const {
  return server_.up() && judge_.open_leases().empty() &&
         std::all_of(judge_.gpus().begin(), judge_.gpus().end(),
                     [](const auto& gpu) { return gpu.second.state == model::GpuState::kFree; }) &&
         std::all_of(nodes_.begin(), nodes_.end(),
                     [](const auto& node) { return node->Records() == 0 && node->boxes() == 0; });
}

WorldReport World::Run() {
  Begin();
  PlanUser();
  PlanFault();
  RunUntil(scheduler_.chance().Time(3 * 60'000, 15 * 60'000));
  Heal();
  const Milliseconds deadline = scheduler_.now() + kQuietWithin;
  for (int round = 0; judge_.verdict().empty() && scheduler_.now() < deadline; ++round) {
    RunUntil(scheduler_.now() + std::chrono::seconds(5));
    if (IsQuiet()) {
      break;
    }
    // Nobody ends a lease now: each job has its time, and each lease must come to its end by
    // itself.
    if (server_.up() && round % 4 == 0) {
      users_.ScrubQuarantined();
    }
    scheduler_.After(std::chrono::seconds(5), [] {});  // time passes though nothing happens
  }
  if (judge_.verdict().empty()) {
    Finish();
  }
  report_.verdict = judge_.verdict();
  report_.steps = scheduler_.steps();
  report_.trace_hash = scheduler_.trace_hash();
  report_.trace.assign(scheduler_.trace().begin(), scheduler_.trace().end());
  report_.tally = judge_.tally();
  report_.requests = server_.requests;
  report_.server_crashes = server_.crashes;
  report_.time = scheduler_.now();
  return report_;
}

void World::Finish() {
  if (!server_.up()) {
    judge_.Condemn("the server is down long after everything healed");
    return;
  }
  for (const auto& node : nodes_) {
    if (node->Records() != 0 || node->boxes() != 0) {
      judge_.Condemn(node->name() + " still has " + std::to_string(node->Records()) +
                     " records and " + std::to_string(node->boxes()) +
                     " boxes long after everything healed");
    }
  }
  const auto logged = server_.FinishLog();
  if (!logged.has_value()) {
    judge_.Condemn("the audit log cannot be read: " + logged.error().message);
    return;
  }
  const Status read = server_.core().database().Read([&](store::Connection& db) -> Status {
    judge_.AtTheEnd(db, *logged);
    return {};
  });
  RINGFENCE_CHECK(read.has_value());
  audit::VerifyOptions options;
  options.folder = server_.log_folder();
  options.vkeys = {server_.log_vkey()};
  options.threads = 1;
  const auto verified = audit::VerifyLog(options);
  if (!verified.has_value() || !verified->ok) {
    judge_.Condemn("the audit log does not verify" +
                   (verified.has_value() && !verified->problems.empty()
                        ? ": " + verified->problems.front()
                        : std::string()));
  }
}

}  // namespace ringfence::simulation
