// Goal: no lease request passes that a box could not hold or that reaches around the box, and no
// lease takes a step that the table does not have.
// Method: the whole table of steps, pair by pair; each limit at, below and above its edge.

#include "model/lease.h"

#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <set>

namespace ringfence::model {
namespace {

constexpr LeaseState kStates[] = {
    LeaseState::kRequested, LeaseState::kAdmitted,    LeaseState::kQueued, LeaseState::kPlaced,
    LeaseState::kPreparing, LeaseState::kActive,      LeaseState::kEnding, LeaseState::kScrubbing,
    LeaseState::kClosed,    LeaseState::kQuarantined,
};

TEST(LeaseStateTest, TheWholeTable) {
  const std::map<std::string, std::set<std::string>> followers = {
      {"requested", {"admitted", "closed"}},
      {"admitted", {"queued", "placed", "closed"}},
      {"queued", {"placed", "closed"}},
      {"placed", {"preparing", "ending", "closed", "quarantined"}},
      {"preparing", {"active", "ending", "quarantined"}},
      {"active", {"ending", "quarantined"}},
      {"ending", {"scrubbing", "quarantined"}},
      {"scrubbing", {"closed", "quarantined"}},
      {"closed", {}},
      {"quarantined", {"scrubbing", "closed"}},
  };
  int allowed = 0;
  for (const LeaseState from : kStates) {
    for (const LeaseState to : kStates) {
      const bool expected = followers.at(std::string(Name(from))).contains(std::string(Name(to)));
      EXPECT_EQ(MayFollow(from, to), expected) << Name(from) << " -> " << Name(to);
      allowed += expected ? 1 : 0;
    }
  }
  EXPECT_EQ(allowed, 22);
}

TEST(LeaseStateTest, NothingThatHeldAGpuClosesUnscrubbed) {
  for (const LeaseState from : {LeaseState::kPreparing, LeaseState::kActive, LeaseState::kEnding}) {
    EXPECT_FALSE(MayFollow(from, LeaseState::kClosed)) << Name(from);
  }
}

TEST(LeaseStateTest, NamesGoBothWays) {
  for (const LeaseState state : kStates) {
    EXPECT_EQ(ParseLeaseState(Name(state)).value(), state);
    EXPECT_EQ(IsOver(state), Name(state) == "closed" || Name(state) == "quarantined");
  }
  EXPECT_FALSE(ParseLeaseState("Closed").has_value());
  EXPECT_FALSE(ParseLeaseState("").has_value());
}

LeaseRequest Good() {
  LeaseRequest request;
  request.tenant = TenantPath::Create("acme/research/vision").value();
  request.command = {"nvidia-smi", "-L"};
  return request;
}

// The field that Validate names; empty when it passes. Every error must have words and a hint.
template <typename Change>
std::string FieldOf(const Change& change) {
  LeaseRequest request = Good();
  change(request);
  const Status status = request.Validate();
  if (status.has_value()) {
    return {};
  }
  EXPECT_EQ(status.error().code, Code::kInvalidArgument);
  EXPECT_FALSE(status.error().message.empty());
  EXPECT_FALSE(status.error().hint.empty());
  return status.error().field;
}

TEST(LeaseRequestTest, DefaultsAndEveryLevelOfTenantPass) {
  for (const std::string_view tenant : {"acme", "acme/research", "acme/research/vision"}) {
    EXPECT_EQ(FieldOf([&](auto& r) { r.tenant = TenantPath::Create(tenant).value(); }), "");
  }
  EXPECT_EQ(FieldOf([](auto& r) { r.tenant = TenantPath::Root(); }), "tenant");
}

TEST(LeaseRequestTest, NumbersAtTheirEdges) {
  EXPECT_EQ(FieldOf([](auto& r) { r.gpus = 0; }), "gpus");
  EXPECT_EQ(FieldOf([](auto& r) { r.gpus = kGpusPerLeaseMax; }), "");
  EXPECT_EQ(FieldOf([](auto& r) { r.gpus = kGpusPerLeaseMax + 1; }), "gpus");
  EXPECT_EQ(FieldOf([](auto& r) { r.memory_bytes_max = kMemoryBytesMin; }), "");
  EXPECT_EQ(FieldOf([](auto& r) { r.memory_bytes_max = kMemoryBytesMin - 1; }), "memory");
  EXPECT_EQ(FieldOf([](auto& r) { r.memory_bytes_max = kMemoryBytesMax; }), "");
  EXPECT_EQ(FieldOf([](auto& r) { r.memory_bytes_max = kMemoryBytesMax + 1; }), "memory");
  EXPECT_EQ(FieldOf([](auto& r) { r.cpu_millis_max = kCpuMillisMin - 1; }), "cpu");
  EXPECT_EQ(FieldOf([](auto& r) { r.cpu_millis_max = kCpuMillisMax; }), "");
  EXPECT_EQ(FieldOf([](auto& r) { r.cpu_millis_max = kCpuMillisMax + 1; }), "cpu");
  EXPECT_EQ(FieldOf([](auto& r) { r.pids_max = 0; }), "pids");
  EXPECT_EQ(FieldOf([](auto& r) { r.pids_max = kPidsMax; }), "");
  EXPECT_EQ(FieldOf([](auto& r) { r.pids_max = kPidsMax + 1; }), "pids");
  EXPECT_EQ(FieldOf([](auto& r) { r.timeout = Milliseconds(999); }), "timeout");
  EXPECT_EQ(FieldOf([](auto& r) { r.timeout = Milliseconds(1000); }), "");
  EXPECT_EQ(FieldOf([](auto& r) { r.timeout = std::chrono::days(30); }), "");
  EXPECT_EQ(FieldOf([](auto& r) { r.timeout = std::chrono::days(30) + Milliseconds(1); }),
            "timeout");
  EXPECT_EQ(FieldOf([](auto& r) { r.timeout = Milliseconds(-1); }), "timeout");
}

TEST(LeaseRequestTest, Commands) {
  EXPECT_EQ(FieldOf([](auto& r) { r.command.clear(); }), "command");
  EXPECT_EQ(FieldOf([](auto& r) { r.command = {"", "x"}; }), "command");
  EXPECT_EQ(FieldOf([](auto& r) { r.command = {"echo", ""}; }), "");
  EXPECT_EQ(FieldOf([](auto& r) { r.command = {"echo", std::string("a\0b", 3)}; }), "command");
  EXPECT_EQ(FieldOf([](auto& r) { r.command = {"echo", "\xff"}; }), "command");
  EXPECT_EQ(FieldOf([](auto& r) { r.command.assign(kCommandWordsMax, "a"); }), "");
  EXPECT_EQ(FieldOf([](auto& r) { r.command.assign(kCommandWordsMax + 1, "a"); }), "command");
  EXPECT_EQ(FieldOf([](auto& r) { r.command = {std::string(kCommandBytesMax - 1, 'a')}; }), "");
  EXPECT_EQ(FieldOf([](auto& r) { r.command = {std::string(kCommandBytesMax, 'a')}; }), "command");
}

TEST(LeaseRequestTest, HeldForAnotherRuntime) {
  const auto held = [](auto& r) {
    r.runtime = LeaseRuntime::kCdi;
    r.command.clear();
    r.environment.clear();
  };
  EXPECT_EQ(FieldOf(held), "");
  EXPECT_EQ(FieldOf([&](auto& r) { held(r), r.command = {"true"}; }), "command");
  EXPECT_EQ(FieldOf([&](auto& r) { held(r), r.environment = {{"A", "b"}}; }), "env");
  EXPECT_EQ(FieldOf([&](auto& r) { held(r), r.gpus = 0; }), "gpus");
  EXPECT_EQ(ParseLeaseRuntime(Name(LeaseRuntime::kCdi)).value(), LeaseRuntime::kCdi);
  EXPECT_EQ(ParseLeaseRuntime(Name(LeaseRuntime::kBox)).value(), LeaseRuntime::kBox);
  EXPECT_FALSE(ParseLeaseRuntime("docker").has_value());
}

TEST(LeaseRequestTest, EnvironmentNames) {
  const auto field = [](std::string name, std::string value = "1") {
    return FieldOf([&](auto& r) { r.environment = {{name, value}}; });
  };
  for (const char* name : {"A", "_", "a9", "HOME", "LDFLAGS", "LD", "CUDA_CACHE_PATH"}) {
    EXPECT_EQ(field(name), "") << name;
  }
  for (const char* name :
       {"", "9A", "A-B", "A=B", "A B", "\xc3\xa4", "LD_PRELOAD", "LD_", "LD_LIBRARY_PATH",
        "RINGFENCE_LEASE", "NVIDIA_VISIBLE_DEVICES", "CUDA_VISIBLE_DEVICES"}) {
    EXPECT_EQ(field(name), "env") << name;
  }
  EXPECT_EQ(field(std::string("A\0B", 3)), "env");
  EXPECT_EQ(field(std::string(kEnvironmentNameBytesMax + 1, 'A')), "env");
  EXPECT_EQ(field("A", std::string("\0", 1)), "env");
  EXPECT_EQ(field("A", "\xc0\x80"), "env");
  EXPECT_EQ(field("A", ""), "");
  EXPECT_EQ(field("A", std::string(kEnvironmentBytesMax - 3, 'x')), "");
  EXPECT_EQ(field("A", std::string(kEnvironmentBytesMax - 2, 'x')), "env");
  EXPECT_EQ(FieldOf([](auto& r) { r.environment = {{"A", "1"}, {"B", "1"}, {"A", "2"}}; }), "env");
  EXPECT_EQ(FieldOf([](auto& r) {
              for (std::size_t i = 0; i <= kEnvironmentMax; ++i) {
                r.environment.emplace_back("V" + std::to_string(i), "");
              }
            }),
            "env");
}

TEST(LeaseRequestTest, ReservedNamesSayWhyAndValuesStayOutOfErrors) {
  LeaseRequest request = Good();
  request.environment = {{"LD_PRELOAD", "hunter2"}};
  EXPECT_EQ(request.Validate().error().message,
            "env may not set LD_PRELOAD: LD_ variables change which libraries the box's own "
            "start-up code loads");
  request.environment = {{"CUDA_VISIBLE_DEVICES", "hunter2"}};
  EXPECT_EQ(request.Validate().error().message,
            "env may not set CUDA_VISIBLE_DEVICES: the lease decides which GPUs the job sees");
  request.environment = {{"TOKEN", std::string("hunter2\0", 8)}};
  EXPECT_EQ(request.Validate().error().message.find("hunter2"), std::string::npos);
}

TEST(LeaseRequestTest, AShareIsOfOneGpuInABoxAndSaysHowMuch) {
  const auto field = [](const std::function<void(LeaseRequest&)>& change) {
    LeaseRequest request = Good();
    request.gpus = 1;
    request.share = ShareRequest{IsolationClass::kTime, std::uint64_t{16} << 30U, 0};
    change(request);
    const Status valid = request.Validate();
    return valid.has_value() ? "" : valid.error().field;
  };
  EXPECT_EQ(field([](auto&) {}), "");
  EXPECT_EQ(field([](auto& r) { r.share->isolation = IsolationClass::kMig; }), "share.class");
  EXPECT_EQ(field([](auto& r) { r.share->memory_bytes = 0; }), "share.memory_bytes");
  EXPECT_EQ(field([](auto& r) { r.share->threads_percent = 50; }), "share.threads_percent");
  EXPECT_EQ(field([](auto& r) { r.gpus = 2; }), "gpus");
  EXPECT_EQ(field([](auto& r) { r.box.exception = "debugging"; }), "share");
  EXPECT_EQ(field([](auto& r) {
              r.runtime = LeaseRuntime::kCdi;
              r.command.clear();
              r.environment.clear();
            }),
            "share");
}

}  // namespace
}  // namespace ringfence::model
