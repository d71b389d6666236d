// Goal: what is in the way fails, what is good to know warns, what cannot be known is said to be
// so, and each says why it matters and what to do. Method: a machine that has everything, made of
// values; from it each thing is taken away alone. This machine is looked at too, and nothing of it
// changes.

#include "assure/doctor.h"

#include <gtest/gtest.h>

#include <functional>
#include <map>

#include "os/file.h"
#include "os/self.h"

namespace ringfence::assure {
namespace {

Seen Good() {
  Seen seen;
  seen.now = ParseTime("2026-11-15T12:00:00Z").value();
  seen.root = true;
  seen.kernel.release = "6.12.0";
  seen.kernel.landlock_abi = 6;
  seen.kernel.seccomp = seen.kernel.pidfd = seen.kernel.close_range = seen.kernel.openat2 = true;
  seen.kernel.tmpfs = seen.kernel.tried = seen.kernel.cgroup_kill = true;
  seen.kernel.device_program = true;
  seen.kernel.cgroups = {{"/sys/fs/cgroup", true, {"cpu", "memory", "pids"}}};
  seen.clock = os::ClockSync::kYes;
  seen.memory = os::Memory{std::uint64_t{8} << 30U, std::uint64_t{4} << 30U};
  seen.disk = os::DiskRoom{std::uint64_t{50} << 30U, std::uint64_t{100} << 30U, 1'000'000,
                           2'000'000, false};
  seen.state = "/var/lib/ringfence";
  seen.listen = "127.0.0.1:8443";
  seen.open_files = 1 << 20U;
  seen.runtime_path = "/usr/sbin/runc";
  seen.runtime = {"1.3.3", "1.3.3+ds1-1", ""};
  seen.advisories = {{"CVE-1", "a way out", {"1.3.0"}, {}, true},
                     {"CVE-2", "a nuisance", {"1.3.0"}, {}, false}};
  seen.driver = true;
  seen.driver_version = "580";
  seen.profiling_admin_only = "1";
  return seen;
}

std::map<std::string, Outcome> NotOk(const Seen& seen, Role role = Role::kBoth) {
  std::map<std::string, Outcome> found;
  for (const Check& check : Judge(seen, role)) {
    EXPECT_FALSE(check.what.empty() || check.evidence.empty()) << check.id;
    if (check.outcome == Outcome::kOk) {
      EXPECT_TRUE(check.fix.empty()) << check.id;
    } else {
      found[check.id] = check.outcome;
    }
  }
  return found;
}

TEST(DoctorTest, AGoodMachineHasNothingInTheWay) {
  EXPECT_TRUE(NotOk(Good()).empty());
  EXPECT_FALSE(AnyFails(Judge(Good(), Role::kBoth)));
}

TEST(DoctorTest, EachThingIsFoundByItself) {
  struct Case {
    std::function<void(Seen&)> change;
    std::string id;
    Outcome outcome;
  };
  const std::vector<Case> cases = {
      {[](Seen& s) { s.now = Timestamp(); }, "clock.year", Outcome::kFail},
      {[](Seen& s) { s.clock = os::ClockSync::kNo; }, "clock.sync", Outcome::kWarn},
      {[](Seen& s) { s.clock = os::ClockSync::kUnknown; }, "clock.sync", Outcome::kUnknown},
      {[](Seen& s) { s.memory->available_bytes = 1 << 20U; }, "memory", Outcome::kFail},
      {[](Seen& s) { s.memory->available_bytes = 500 << 20U; }, "memory", Outcome::kWarn},
      {[](Seen& s) { s.memory.reset(); }, "memory", Outcome::kUnknown},
      {[](Seen& s) { s.disk->free_bytes = 1 << 20U; }, "disk.room", Outcome::kFail},
      {[](Seen& s) { s.disk->free_bytes = 1 << 30U; }, "disk.room", Outcome::kWarn},
      {[](Seen& s) { s.disk->read_only = true; }, "disk.room", Outcome::kFail},
      {[](Seen& s) { s.disk->free_files = 5; }, "disk.files", Outcome::kFail},
      {[](Seen& s) { s.disk.reset(); }, "disk.room", Outcome::kUnknown},
      {[](Seen& s) { s.state_trust = "mallory made it"; }, "state.owner", Outcome::kFail},
      {[](Seen& s) { s.open_files = 256; }, "limits.open_files", Outcome::kFail},
      {[](Seen& s) { s.open_files = 4096; }, "limits.open_files", Outcome::kWarn},
      {[](Seen& s) { s.listen_error = "in use"; }, "port.listen", Outcome::kFail},
      {[](Seen& s) { s.kernel.landlock_abi = 1; }, "agent.landlock.ports", Outcome::kWarn},
      {[](Seen& s) { s.kernel.namespaces = "no"; }, "box.namespaces", Outcome::kFail},
      {[](Seen& s) { s.kernel.openat2 = false; }, "kernel.openat2", Outcome::kWarn},
      {[](Seen& s) { s.runtime_error = "not there"; }, "runtime.runc", Outcome::kFail},
      {[](Seen& s) { s.advisories[0].upstream = {"1.3.9"}; }, "runtime.CVE-1", Outcome::kFail},
      {[](Seen& s) { s.advisories[1].upstream = {"1.3.9"}; }, "runtime.CVE-2", Outcome::kWarn},
      {[](Seen& s) { s.advisories_error = "no list"; }, "runtime.flaws", Outcome::kUnknown},
      {[](Seen& s) { s.programs_missing = {"x"}; }, "node.programs", Outcome::kFail},
      {[](Seen& s) { s.uid_accounts = {"account bob"}; }, "users.range", Outcome::kFail},
      {[](Seen& s) { s.uid_sharers = {"/tmp/other"}; }, "users.shared", Outcome::kWarn},
      {[](Seen& s) { s.driver = false; }, "gpu.driver", Outcome::kWarn},
      {[](Seen& s) { s.driver_missing = {"/dev/nvidia-uvm"}; }, "gpu.driver", Outcome::kFail},
      {[](Seen& s) { s.profiling_admin_only = "0"; }, "gpu.profiling", Outcome::kWarn},
      {[](Seen& s) { s.root = false; }, "node.root", Outcome::kUnknown},
  };
  for (const Case& one : cases) {
    Seen seen = Good();
    one.change(seen);
    const auto found = NotOk(seen);
    const auto it = found.find(one.id);
    ASSERT_NE(it, found.end()) << one.id;
    EXPECT_EQ(it->second, one.outcome) << one.id;
    EXPECT_EQ(AnyFails(Judge(seen, Role::kBoth)), one.outcome == Outcome::kFail) << one.id;
  }
}

TEST(DoctorTest, EachControlOfTheTableIsAmongThem) {
  Seen seen = Good();
  seen.kernel = {};
  seen.kernel.release = "3.10";
  seen.kernel.tried = true;
  seen.kernel.namespaces = seen.kernel.user_namespaces = "no";
  const auto found = NotOk(seen);
  std::size_t named = 0;
  for (const isolate::Control& control : isolate::Controls()) {
    named += found.contains(std::string(control.id)) ? 1 : 0;
  }
  // Without cgroups at all the single controllers are not complained about one by one.
  EXPECT_EQ(named, isolate::Controls().size() - 4);
}

TEST(DoctorTest, WhatOnlyRootCanTryIsNotKnownWithoutIt) {
  Seen seen = Good();
  seen.root = seen.kernel.tried = false;
  seen.kernel.namespaces = "EPERM";
  const auto found = NotOk(seen, Role::kNode);
  EXPECT_EQ(found.at("box.namespaces"), Outcome::kUnknown);
  EXPECT_FALSE(AnyFails(Judge(seen, Role::kNode)));
}

TEST(DoctorTest, RolesAskForWhatTheyNeed) {
  Seen seen = Good();
  seen.kernel.namespaces = "no";
  EXPECT_TRUE(NotOk(seen, Role::kServer).empty());
  seen = Good();
  seen.listen_error = "in use";
  EXPECT_TRUE(NotOk(seen, Role::kNode).empty());
  seen.listen_is_ours = true;
  EXPECT_TRUE(NotOk(seen, Role::kServer).empty()) << "it is its own address";
}

TEST(DoctorTest, ThisMachineIsLookedAt) {
  const auto folder = os::TempFolder::Create("ringfence-doctor-test").value();
  LookOptions options;
  options.state = folder.path() + "/not/yet/there";
  options.listen = "127.0.0.1:0";
  options.uid_base = 1'000'000'000;
  options.programs = {"/bin/sh", "/no/such/program"};
  options.advisories_file = RINGFENCE_SOURCE_DIR "/content/runtimes/runc.yaml";
  options.now = SystemClock().Now();
  const Seen seen = Look(options);
  EXPECT_FALSE(seen.kernel.release.empty());
  EXPECT_TRUE(seen.memory.has_value() && seen.memory->total_bytes > 0);
  EXPECT_TRUE(seen.disk.has_value() && seen.disk->total_bytes > 0);
  EXPECT_EQ(seen.listen_error, "");
  EXPECT_EQ(seen.programs_missing, std::vector<std::string>{"/no/such/program"});
  EXPECT_TRUE(seen.advisories_error.empty()) << seen.advisories_error;
  EXPECT_TRUE(os::ListDir(folder.path()).value().empty());
}

}  // namespace
}  // namespace ringfence::assure
