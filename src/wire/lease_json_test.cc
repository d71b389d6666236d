// Goal: what the writer writes the reader takes back unchanged, and a request with anything wrong
// in it is refused with the field's name.
// Method: round trips of full and of empty leases; each member removed, mistyped, misspelt.

#include "wire/lease_json.h"

#include <gtest/gtest.h>

namespace ringfence::wire {
namespace {

Result<model::LeaseRequest> Read(std::string_view text) {
  return LeaseRequestFromJson(ParseJson(text, kLeaseJsonBytesMax).value());
}

model::Lease FullLease() {
  model::Lease lease;
  lease.id = "lease-1";
  lease.request.tenant = model::TenantPath::Create("acme/research/vision").value();
  lease.request.gpus = 2;
  lease.request.command = {"python3", "train.py", ""};
  lease.request.environment = {{"A", "1"}, {"B", "\xc3\xa4 \"quoted\"\n"}};
  lease.request.memory_bytes_max = model::kMemoryBytesMax;
  lease.request.cpu_millis_max = 2500;
  lease.request.pids_max = 64;
  lease.request.timeout = std::chrono::minutes(90);
  lease.principal = "alice@acme.example";
  lease.state = model::LeaseState::kQuarantined;
  lease.node = "node-1";
  lease.gpus = {"GPU-1", "GPU-2"};
  lease.created = Timestamp(Milliseconds(1'700'000'000'123));
  lease.updated = lease.created + std::chrono::seconds(5);
  lease.started = lease.created + std::chrono::seconds(1);
  lease.ended = lease.created + std::chrono::seconds(4);
  lease.outcome = "signalled";
  lease.exit_code = 137;
  lease.reason = "scrub failed";
  lease.end_requested = true;
  lease.simulated = true;
  lease.receipts = {"r1", "r2"};
  lease.steps = {{model::LeaseState::kRequested, lease.created, ""},
                 {model::LeaseState::kQuarantined, lease.updated, "scrub failed"}};
  return lease;
}

std::string Text(const model::Lease& lease) { return CanonicalJson(LeaseToJson(lease)); }

TEST(LeaseJsonTest, ShapeIsFrozen) {
  EXPECT_EQ(
      Text(FullLease()),
      R"({"created":"2023-11-14T22:13:20.123Z","end_requested":true,)"
      R"("ended":"2023-11-14T22:13:24.123Z","exit_code":137,"gpus":["GPU-1","GPU-2"],)"
      R"("id":"lease-1","node":"node-1","outcome":"signalled","principal":"alice@acme.example",)"
      R"("reason":"scrub failed","receipts":["r1","r2"],"request":{"command":["python3",)"
      R"("train.py",""],"cpu_millis":2500,"env":{"A":"1","B":"ä \"quoted\"\n"},"gpus":2,)"
      R"("memory_bytes":4398046511104,"pids":64,"tenant":"acme/research/vision",)"
      R"("timeout_ms":5400000},"simulated":true,"started":"2023-11-14T22:13:21.123Z",)"
      R"("state":"quarantined","steps":[{"reason":"","state":"requested",)"
      R"("time":"2023-11-14T22:13:20.123Z"},{"reason":"scrub failed","state":"quarantined",)"
      R"("time":"2023-11-14T22:13:25.123Z"}],"updated":"2023-11-14T22:13:25.123Z"})");
}

TEST(LeaseJsonTest, AProbeHasItsOwnCommandAndTenantAndNothingElse) {
  const std::string probe = R"("probe":{"node":"n1","name":"ptrace","role":"attack",)"
                            R"("walls_away":["seccomp"],"facts":["digest=00"]})";
  const std::string start = R"({"tenant":"ringfence-proof-attacker","gpus":0,)";
  const auto request = Read(start + probe + "}");
  ASSERT_TRUE(request.has_value()) << request.error().message;
  EXPECT_EQ(request->command,
            (std::vector<std::string>{"/run/ringfence/probe", "ptrace", "attack", "digest=00"}));
  const auto again = LeaseRequestFromJson(LeaseRequestToJson(*request), "");
  ASSERT_TRUE(again.has_value()) << again.error().message;
  EXPECT_EQ(again->probe->walls_away, request->probe->walls_away);
  for (const char* more :
       {R"(,"command":["sh"])", R"(,"command":["/run/ringfence/probe","x"])", R"(,"env":{"A":"1"})",
        R"(,"image":"x")", R"(,"mounts":[{"name":"data","path":"/data"}])"}) {
    EXPECT_FALSE(Read(start + probe + more + "}").has_value()) << more;
  }
  EXPECT_FALSE(Read(R"({"tenant":"acme","gpus":0,)" + probe + "}").has_value()) << "its tenant";
  EXPECT_FALSE(Read(R"({"tenant":"acme","gpus":0,"command":["true"]})").has_value())
      << "only a probe goes without a GPU";
}

TEST(LeaseJsonTest, RoundTrips) {
  model::Lease bare;
  bare.request.tenant = model::TenantPath::Create("acme").value();
  bare.request.command = {"true"};
  for (const model::Lease& lease : {FullLease(), bare}) {
    const std::string text = Text(lease);
    const auto back = LeaseFromJson(ParseJson(text, kLeaseJsonBytesMax).value());
    ASSERT_TRUE(back.has_value()) << back.error().message;
    EXPECT_EQ(Text(*back), text);
    EXPECT_EQ(back->exit_code, lease.exit_code);
    EXPECT_EQ(back->started, lease.started);
    EXPECT_EQ(back->request.environment, lease.request.environment);
    EXPECT_EQ(back->steps.size(), lease.steps.size());
  }
}

TEST(LeaseJsonTest, AReasonOfAnyBytesAndLengthCanBeReadBack) {
  model::Lease lease = FullLease();
  for (const std::string& reason : {std::string("\xff\xfe bad"), std::string(20000, 'x'), "x" + [] {
                                      std::string umlauts;
                                      for (int i = 0; i < 9000; ++i) {
                                        umlauts += "\xc3\xa4";
                                      }
                                      return umlauts;
                                    }()}) {
    lease.reason = reason;
    lease.steps[1].reason = reason;
    const auto back = LeaseFromJson(ParseJson(Text(lease), kLeaseJsonBytesMax).value());
    ASSERT_TRUE(back.has_value()) << back.error().message;
    EXPECT_EQ(back->reason.substr(0, 1), reason[0] == 'x' ? "x" : "?");
  }
}

TEST(LeaseJsonTest, EveryMemberIsNeededOrHasItsMeaningAndNoOtherIsTaken) {
  const Json whole = LeaseToJson(FullLease());
  const std::string needed[] = {"id", "request", "principal", "state", "created", "updated"};
  for (const auto& member : whole.get_object()) {
    const std::string key(member.key().data(), member.key().size());
    Json without = whole;
    without.get_object().erase(member.key());
    const bool is_needed = std::find(std::begin(needed), std::end(needed), key) != std::end(needed);
    EXPECT_EQ(LeaseFromJson(without).has_value(), !is_needed) << key;
    Json mistyped = whole;
    mistyped.get_object()[member.key()] = 1.5;
    const auto refused = LeaseFromJson(mistyped);
    ASSERT_FALSE(refused.has_value()) << key;
    EXPECT_EQ(refused.error().field, key);
    Json more = whole;
    more.get_object()[key + "x"] = 1;
    EXPECT_EQ(LeaseFromJson(more).error().message, "unknown field " + key + "x");
  }
}

TEST(LeaseRequestJsonTest, TheLeastAndItsDefaults) {
  const auto request = Read(R"({"tenant": "acme", "command": ["true"]})");
  ASSERT_TRUE(request.has_value()) << request.error().message;
  const model::LeaseRequest defaults;
  EXPECT_EQ(request->gpus, 1U);
  EXPECT_EQ(request->memory_bytes_max, defaults.memory_bytes_max);
  EXPECT_EQ(request->cpu_millis_max, defaults.cpu_millis_max);
  EXPECT_EQ(request->pids_max, defaults.pids_max);
  EXPECT_EQ(request->timeout, defaults.timeout);
  EXPECT_TRUE(request->environment.empty());
}

TEST(LeaseRequestJsonTest, HeldForAnotherRuntime) {
  const auto read = [](std::string_view text) {
    return LeaseRequestFromJson(ParseJson(text, 4096).value());
  };
  const auto held = read(R"({"tenant":"acme/a","runtime":"cdi"})");
  ASSERT_TRUE(held.has_value()) << held.error().message;
  EXPECT_EQ(held->runtime, model::LeaseRuntime::kCdi);
  const auto again = LeaseRequestFromJson(LeaseRequestToJson(*held));
  ASSERT_TRUE(again.has_value()) << again.error().message;
  EXPECT_EQ(again->runtime, model::LeaseRuntime::kCdi);
  EXPECT_EQ(read(R"({"tenant":"acme/a","runtime":"lxc"})").error().field, "runtime");
  EXPECT_EQ(read(R"({"tenant":"acme/a","runtime":"cdi","command":["x"]})").error().field,
            "command");
  EXPECT_EQ(read(R"({"tenant":"acme/a","runtime":"box"})").error().field, "command");
}

TEST(LeaseRequestJsonTest, EachErrorNamesItsField) {
  const std::pair<std::string_view, std::string_view> cases[] = {
      {R"([])", ""},
      {R"({"command": ["true"]})", "tenant"},
      {R"({"tenant": "acme"})", "command"},
      {R"({"tenant": "Acme", "command": ["true"]})", "tenant"},
      {R"({"tenant": "/", "command": ["true"]})", "tenant"},
      {R"({"tenant": 1, "command": ["true"]})", "tenant"},
      {R"({"tenant": "acme", "command": "true"})", "command"},
      {R"({"tenant": "acme", "command": []})", "command"},
      {R"({"tenant": "acme", "command": [1]})", "command"},
      {R"({"tenant": "acme", "command": ["a\u0000b"]})", "command"},
      {R"({"tenant": "acme", "command": ["true"], "gpus": 0})", "gpus"},
      {R"({"tenant": "acme", "command": ["true"], "gpus": 65})", "gpus"},
      {R"({"tenant": "acme", "command": ["true"], "gpus": -1})", "gpus"},
      {R"({"tenant": "acme", "command": ["true"], "gpus": 4294967297})", "gpus"},
      {R"({"tenant": "acme", "command": ["true"], "gpus": "1"})", "gpus"},
      {R"({"tenant": "acme", "command": ["true"], "gpus": 1.5})", "gpus"},
      {R"({"tenant": "acme", "command": ["true"], "env": []})", "env"},
      {R"({"tenant": "acme", "command": ["true"], "env": {"A": 1}})", "env"},
      {R"({"tenant": "acme", "command": ["true"], "env": {"LD_PRELOAD": "x"}})", "env"},
      {R"({"tenant": "acme", "command": ["true"], "memory_bytes": 1})", "memory"},
      {R"({"tenant": "acme", "command": ["true"], "memory_bytes": "4G"})", "memory_bytes"},
      {R"({"tenant": "acme", "command": ["true"], "cpu_millis": 0})", "cpu"},
      {R"({"tenant": "acme", "command": ["true"], "pids": 0})", "pids"},
      {R"({"tenant": "acme", "command": ["true"], "timeout_ms": 0})", "timeout"},
      {R"({"tenant": "acme", "command": ["true"], "gpu": 1})", "gpu"},
  };
  for (const auto& [text, field] : cases) {
    const auto request = Read(text);
    ASSERT_FALSE(request.has_value()) << text;
    EXPECT_EQ(request.error().code, Code::kInvalidArgument);
    EXPECT_EQ(request.error().field, field) << text << ": " << request.error().message;
  }
}

}  // namespace
}  // namespace ringfence::wire
