// Goal: whatever dies, whenever, in whatever order messages come: no GPU is held twice or leased
// with another's data in it, every lease comes to an end, quotas and boundaries hold, and the audit
// log is exactly what was acknowledged.
// Method: the real server, agents and jailer decisions in simulated worlds without real time or
// network, one after another from consecutive seeds, each with misfortunes of its own; judged after
// every commit and every deed of a machine. docs/hacking.md says how to replay one.

#include <fcntl.h>
#include <sched.h>
#include <unistd.h>

#include <chrono>
#include <cinttypes>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <random>
#include <string>

#include "os/file.h"
#include "os/log.h"
#include "world.h"

namespace ringfence::simulation {
namespace {

struct Options {
  std::uint64_t seed = 1;
  std::uint64_t lives = 1000;
  bool random = false;  // some worlds of a seed of the moment follow
  bool twice = false;   // each world is run again and must be the same
  bool trace = false;   // everything that happens, on standard output
};

struct Total {
  std::uint64_t worlds = 0;
  std::uint64_t lives = 0;
  std::uint64_t ran = 0;
  std::uint64_t quarantined = 0;
  std::uint64_t entries = 0;
  std::uint64_t requests = 0;
  std::uint64_t faults = 0;
  std::uint64_t crashes = 0;
  double hours = 0;
};

std::string MakeFolder() {
  // Memory, where there is such a place: nothing here needs to survive the machine.
  const char* place = access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp";
  std::string name = std::string(place) + "/ringfence-simulation-XXXXXX";
  if (mkdtemp(name.data()) == nullptr) {
    std::perror("mkdtemp");
    std::exit(2);
  }
  return name;
}

WorldReport RunWorld(std::uint64_t seed, const std::string& folder, std::size_t trace_kept) {
  WorldReport report;
  {
    World world(seed, folder + "/world", trace_kept);
    report = world.Run();
  }
  (void)os::RemoveTree(folder + "/world");
  return report;
}

void Tell(const WorldReport& report) {
  for (const std::string& line : report.trace) {
    std::printf("  %s\n", line.c_str());
  }
  std::printf("\nFAILED: %s\n", report.verdict.c_str());
  std::printf("  seed %" PRIu64 ", step %" PRIu64 ", %.1f simulated minutes, life %" PRIu64
              " of this world\n",
              report.seed, report.steps, static_cast<double>(report.time.count()) / 60000.0,
              report.tally.leases);
  std::printf("  again: make simulate SEED=%" PRIu64 " LIVES=1 (TRACE=1: everything)\n",
              report.seed);
}

bool RunWorlds(std::uint64_t seed, std::uint64_t lives, const Options& options,
               const std::string& folder, Total& total) {
  const std::uint64_t until = total.lives + lives;
  for (; total.lives < until; ++seed) {
    const WorldReport report = RunWorld(seed, folder, options.trace ? 100'000'000 : 60);
    ++total.worlds;
    total.lives += report.tally.leases;
    total.ran += report.tally.ran;
    total.quarantined += report.tally.quarantined;
    total.entries += report.tally.entries;
    total.requests += report.requests;
    total.faults += report.faults;
    total.crashes += report.server_crashes;
    total.hours += static_cast<double>(report.time.count()) / 3'600'000.0;
    if (options.trace && report.verdict.empty()) {
      for (const std::string& line : report.trace) {
        std::printf("  %s\n", line.c_str());
      }
    }
    if (!report.verdict.empty()) {
      Tell(report);
      std::printf("  after %" PRIu64 " lives in %" PRIu64 " worlds\n", total.lives, total.worlds);
      return false;
    }
    if (options.twice) {
      const WorldReport again = RunWorld(seed, folder, 60);
      if (again.trace_hash != report.trace_hash || again.steps != report.steps) {
        std::printf("FAILED: seed %" PRIu64 " gave two different runs (%" PRIu64 " and %" PRIu64
                    " steps)\n",
                    seed, report.steps, again.steps);
        return false;
      }
    }
  }
  return true;
}

// One thread runs at a time: on one core the baton passes without waking another.
void StayOnOneCore() {
  cpu_set_t cores;
  CPU_ZERO(&cores);
  const int here = sched_getcpu();
  CPU_SET(static_cast<std::size_t>(here < 0 ? 0 : here), &cores);
  (void)sched_setaffinity(0, sizeof cores, &cores);
}

Options Parse(int argc, char** argv) {
  Options options;
  for (int i = 1; i < argc; ++i) {
    const auto number = [&] {
      return i + 1 < argc ? std::strtoull(argv[++i], nullptr, 10) : std::uint64_t{0};
    };
    if (std::strcmp(argv[i], "--seed") == 0) {
      options.seed = number();
    } else if (std::strcmp(argv[i], "--lives") == 0) {
      options.lives = number();
    } else if (std::strcmp(argv[i], "--random") == 0) {
      options.random = true;
    } else if (std::strcmp(argv[i], "--twice") == 0) {
      options.twice = true;
    } else if (std::strcmp(argv[i], "--trace") == 0) {
      options.trace = true;
    } else {
      std::fprintf(stderr,
                   "usage: simulation [--seed N] [--lives N] [--random] [--twice] [--trace]\n");
      std::exit(2);
    }
  }
  return options;
}

int Main(int argc, char** argv) {
  const Options options = Parse(argc, argv);
  (void)std::signal(SIGPIPE, SIG_IGN);  // boxes write to agents that are gone
  if (std::getenv("SIMULATION_LOG") == nullptr) {
    const int nowhere = open("/dev/null", O_WRONLY | O_CLOEXEC);
    (void)dup2(nowhere, STDERR_FILENO);  // what the product says of each misfortune
  }
  os::SetLogLevel(os::Level::kError);
  StayOnOneCore();
  const std::string folder = MakeFolder();
  const auto begin = std::chrono::steady_clock::now();
  Total total;
  bool good = RunWorlds(options.seed, options.lives, options, folder, total);
  if (good && options.random) {
    const std::uint64_t seed = std::random_device()() + std::uint64_t{1'000'000};
    std::printf("and from seed %" PRIu64 ":\n", seed);
    (void)std::fflush(stdout);
    good = RunWorlds(seed, options.lives / 4, options, folder, total);
  }
  const double seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  std::printf("%s: %" PRIu64 " lives (%" PRIu64 " ran) in %" PRIu64
              " worlds, %.1f simulated hours; %" PRIu64 " faults, %" PRIu64
              " server crashes, %" PRIu64 " quarantines, %" PRIu64 " requests, %" PRIu64
              " audit entries\n%.1f s, %.0f lives a minute\n",
              good ? "all held" : "FAILED", total.lives, total.ran, total.worlds, total.hours,
              total.faults, total.crashes, total.quarantined, total.requests, total.entries,
              seconds, static_cast<double>(total.lives) * 60.0 / seconds);
  (void)os::RemoveTree(folder);
  return good ? 0 : 1;
}

}  // namespace
}  // namespace ringfence::simulation

int main(int argc, char** argv) { return ringfence::simulation::Main(argc, argv); }
