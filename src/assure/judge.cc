// From what was seen to what it means.

#include <algorithm>

#include "assure/doctor.h"

namespace ringfence::assure {
namespace {

constexpr std::uint64_t kMiB = std::uint64_t{1} << 20U;
constexpr std::uint64_t kDiskFail = 256 * kMiB;
constexpr std::uint64_t kDiskWarn = 2048 * kMiB;
constexpr std::uint64_t kFilesFail = 1000;
constexpr std::uint64_t kFilesWarn = 20000;
constexpr std::uint64_t kMemoryFail = 256 * kMiB;
constexpr std::uint64_t kMemoryWarn = 1024 * kMiB;
constexpr std::uint64_t kOpenFilesFail = 1024;
constexpr std::uint64_t kOpenFilesWarn = 8192;
constexpr int kYearLeast = 2025;
constexpr int kYearMost = 2100;

std::string Mebibytes(std::uint64_t bytes) { return std::to_string(bytes / kMiB) + " MiB"; }

Outcome Graded(std::uint64_t have, std::uint64_t fail, std::uint64_t warn) {
  return have < fail ? Outcome::kFail : have < warn ? Outcome::kWarn : Outcome::kOk;
}

std::string Joined(const std::vector<std::string>& texts) {
  std::string text;
  for (const std::string& one : texts) {
    text += (text.empty() ? "" : ", ") + one;
  }
  return text;
}

class Judgement {
 public:
  explicit Judgement(const Seen& seen) : seen_(seen) {}

  void Common() {
    Add("kernel.release", "the kernel", Outcome::kOk, seen_.kernel.release,
        "what each control needs of it is checked one by one", "");
    JudgeClock();
    JudgeMemory();
    JudgeDisk();
    Add("state.owner", "who made and can change the state folder",
        seen_.state_trust.empty() ? Outcome::kOk : Outcome::kFail,
        seen_.state_trust.empty() ? seen_.state : seen_.state_trust,
        "keys and links in it would be another user's", "choose a folder of your own: --state DIR");
    Add("limits.open_files", "how many files a process may open",
        Graded(seen_.open_files, kOpenFilesFail, kOpenFilesWarn), std::to_string(seen_.open_files),
        "each connection and each box takes some",
        "raise the hard limit: ulimit -Hn 65536, or LimitNOFILE= of the service");
  }

  void Server() {
    const bool free = seen_.listen_error.empty();
    const bool ours = !free && seen_.listen_is_ours;
    Add("port.listen", "the server's address", free || ours ? Outcome::kOk : Outcome::kFail,
        seen_.listen + (free   ? " is free"
                        : ours ? " is held by the Ringfence that runs here"
                               : ": " + seen_.listen_error),
        "the server must be able to listen there",
        "choose another: --listen ADDRESS:PORT, or stop what holds it (ss -ltnp)");
  }

  void Node() {
    Add("node.root", "root", seen_.root ? Outcome::kOk : Outcome::kUnknown,
        seen_.root ? "yes" : "not root: what only root can try was not tried",
        "the jailer builds boxes, and needs root for it", "run doctor, and the node, as root");
    JudgeControls();
    Add("kernel.openat2", "openat2", seen_.kernel.openat2 ? Outcome::kOk : Outcome::kWarn,
        seen_.kernel.openat2 ? "there" : "not there (Linux 5.6)",
        "the runtime resolves paths below a box's root more safely with it",
        "use Linux 5.6 or later");
    JudgeRuntime();
    Add("node.programs", "the programs of a node",
        seen_.programs_missing.empty() ? Outcome::kOk : Outcome::kFail,
        seen_.programs_missing.empty() ? "all there" : "missing: " + Joined(seen_.programs_missing),
        "jailer, worker and init are programs of their own", "build or install all of Ringfence");
    JudgeUserIds();
    JudgeDriver();
  }

  std::vector<Check> Take() { return std::move(checks_); }

 private:
  void Add(std::string id, std::string what, Outcome outcome, std::string evidence, std::string why,
           std::string fix) {
    checks_.push_back({std::move(id), std::move(what), outcome, std::move(evidence), std::move(why),
                       outcome == Outcome::kOk ? "" : std::move(fix)});
  }

  void JudgeClock() {
    const std::chrono::year_month_day date(std::chrono::floor<std::chrono::days>(seen_.now));
    const int year = static_cast<int>(date.year());
    Add("clock.year", "the clock",
        year < kYearLeast || year > kYearMost ? Outcome::kFail : Outcome::kOk,
        FormatTime(seen_.now), "certificates, grants and audit entries carry its time",
        "set the clock");
    const Outcome outcome = seen_.clock == os::ClockSync::kYes  ? Outcome::kOk
                            : seen_.clock == os::ClockSync::kNo ? Outcome::kWarn
                                                                : Outcome::kUnknown;
    Add("clock.sync", "whether somebody keeps the clock right", outcome,
        outcome == Outcome::kOk     ? "the kernel says it is synchronised"
        : outcome == Outcome::kWarn ? "the kernel says it is not synchronised"
                                    : "the kernel does not say",
        "a grant may be started for two minutes; clocks further apart refuse each other's",
        "run a time service: apt-get install chrony");
  }

  void JudgeMemory() {
    if (!seen_.memory.has_value()) {
      Add("memory", "memory", Outcome::kUnknown, "could not be read", "", "");
      return;
    }
    Add("memory", "memory", Graded(seen_.memory->available_bytes, kMemoryFail, kMemoryWarn),
        Mebibytes(seen_.memory->available_bytes) + " available of " +
            Mebibytes(seen_.memory->total_bytes),
        "without it the kernel kills processes, ours or a job's", "free some, or add some");
  }

  void JudgeDisk() {
    if (!seen_.disk.has_value()) {
      Add("disk.room", "room where the state lies", Outcome::kUnknown, "could not be read", "", "");
      return;
    }
    const os::DiskRoom& disk = *seen_.disk;
    Add("disk.room", "room where the state lies",
        disk.read_only ? Outcome::kFail : Graded(disk.free_bytes, kDiskFail, kDiskWarn),
        disk.read_only ? seen_.state + " is on a read-only file system"
                       : Mebibytes(disk.free_bytes) + " free for " + seen_.state,
        "when the disk is full, every change is refused", "make room, or move it: --state DIR");
    if (disk.total_files == 0) {
      Add("disk.files", "files that can still be made there", Outcome::kOk,
          "this file system does not count them", "the audit log is many small files", "");
      return;
    }
    Add("disk.files", "files that can still be made there",
        Graded(disk.free_files, kFilesFail, kFilesWarn),
        std::to_string(disk.free_files) + " of " + std::to_string(disk.total_files),
        "the audit log is many small files", "remove files, or use a file system with more inodes");
  }

  void JudgeControls() {
    for (const isolate::Control& control : isolate::Controls()) {
      const std::string what = std::string(control.what);
      if (control.needs_root && !seen_.kernel.tried) {
        Add(std::string(control.id), what, Outcome::kUnknown, "only root can try it",
            "needs " + std::string(control.needs), "run doctor as root");
        continue;
      }
      const auto missing = control.missing(seen_.kernel);
      Add(std::string(control.id), what,
          !missing           ? Outcome::kOk
          : control.required ? Outcome::kFail
                             : Outcome::kWarn,
          missing.value_or(std::string(control.needs) + ": there"),
          control.required ? "without it the " + std::string(Name(control.wearer)) +
                                 " refuses to run; it needs " + std::string(control.needs)
                           : "one wall more, with " + std::string(control.needs),
          std::string(control.mend));
    }
  }

  void JudgeRuntime() {
    const bool there = seen_.runtime_error.empty();
    Add("runtime.runc", "the runtime of boxes", there ? Outcome::kOk : Outcome::kFail,
        there
            ? seen_.runtime_path + ", version " + seen_.runtime.upstream +
                  (seen_.runtime.package.empty() ? "" : " (package " + seen_.runtime.package + ")")
            : seen_.runtime_error,
        "boxes are built with it", "apt-get install runc");
    if (!there) {
      return;
    }
    if (!seen_.advisories_error.empty()) {
      Add("runtime.flaws", "known flaws of the runtime", Outcome::kUnknown, seen_.advisories_error,
          "", "install all of Ringfence");
      return;
    }
    std::size_t fixed = 0;
    for (const Advisory& advisory : seen_.advisories) {
      if (!WhyFixed(advisory, seen_.runtime).empty()) {
        ++fixed;
        continue;
      }
      Add("runtime." + advisory.id, "a known flaw of the runtime",
          advisory.blocks ? Outcome::kFail : Outcome::kWarn,
          "nothing shows that " +
              (seen_.runtime.package.empty() ? "version " + seen_.runtime.upstream
                                             : seen_.runtime.package) +
              " is free of it",
          advisory.what,
          "apt-get update && apt-get install runc; mended upstream in " +
              Joined(advisory.upstream));
    }
    Add("runtime.flaws", "known flaws of the runtime", Outcome::kOk,
        std::to_string(fixed) + " of " + std::to_string(seen_.advisories.size()) +
            " known flaws are shown to be mended",
        "a flaw in it is a way out of a box", "");
  }

  void JudgeUserIds() {
    const std::string range =
        std::to_string(seen_.uid_first) + " to " + std::to_string(seen_.uid_last);
    Add("users.range", "user ids of boxes and daemons",
        seen_.uid_accounts.empty() ? Outcome::kOk : Outcome::kFail,
        seen_.uid_accounts.empty() ? range + ": nobody else's"
                                   : range + " also holds " + Joined(seen_.uid_accounts),
        "a box's user must be nobody on this machine", "choose another range: node.uid_base");
    Add("users.shared", "other nodes on this machine",
        seen_.uid_sharers.empty() ? Outcome::kOk : Outcome::kWarn,
        seen_.uid_sharers.empty() ? "none with the same user ids"
                                  : "the same user ids are used by " + Joined(seen_.uid_sharers),
        "boxes of two nodes with one range have the same user on the host",
        "give each a range of its own: node.uid_base");
  }

  void JudgeDriver() {
    if (!seen_.driver) {
      Add("gpu.driver", "the GPU driver", Outcome::kWarn,
          "no NVIDIA driver: a node here has simulated GPUs",
          "what is said of simulated GPUs is no evidence about hardware",
          "install the driver, if this machine has GPUs");
      return;
    }
    Add("gpu.driver", "the GPU driver",
        seen_.driver_missing.empty() ? Outcome::kOk : Outcome::kFail,
        seen_.driver_version +
            (seen_.driver_missing.empty() ? "" : "; missing: " + Joined(seen_.driver_missing)),
        "inventory, boxes and scrubs need its libraries and device files",
        "nvidia-modprobe -u -c 0; install the driver's libraries (libnvidia-ml1, libcuda1)");
    const bool open = seen_.profiling_admin_only == "0";
    Add("gpu.profiling", "performance counters",
        open                                 ? Outcome::kWarn
        : seen_.profiling_admin_only.empty() ? Outcome::kUnknown
                                             : Outcome::kOk,
        open ? "every process may read them (RmProfilingAdminOnly: 0)"
        : seen_.profiling_admin_only.empty() ? "the driver does not say"
                                             : "only root may read them",
        "they are a side channel between jobs",
        "options nvidia NVreg_RestrictProfilingToAdminUsers=1, and load the module again");
  }

  const Seen& seen_;
  std::vector<Check> checks_;
};

}  // namespace

std::string_view Name(Outcome outcome) {
  switch (outcome) {
    case Outcome::kOk:
      return "ok";
    case Outcome::kWarn:
      return "warn";
    case Outcome::kFail:
      return "fail";
    case Outcome::kUnknown:
      return "unknown";
  }
  return "?";
}

std::vector<Check> Judge(const Seen& seen, Role role) {
  Judgement judgement(seen);
  judgement.Common();
  if (role != Role::kNode) {
    judgement.Server();
  }
  if (role != Role::kServer) {
    judgement.Node();
  }
  return judgement.Take();
}

bool AnyFails(const std::vector<Check>& checks) {
  return std::any_of(checks.begin(), checks.end(),
                     [](const Check& check) { return check.outcome == Outcome::kFail; });
}

}  // namespace ringfence::assure
