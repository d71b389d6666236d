// On-chip shared memory between two living processes of one card, by the very program that boxes
// run (ringfence-probe shared-memory): under plain time-slicing it must find nothing, under an MPS
// daemon it must find the neighbour's words, and after the neighbour has gone nothing again. Both
// must have been at work at the same time. Prints one JSON object; exit status 0 when all of it is
// so.
//   chip_probe PROBE-PROGRAM [MILLISECONDS]
//   chip_probe --simulate LIB-FOLDER PROBE-PROGRAM [MILLISECONDS]
// The daemon is one of its own (nvidia-cuda-mps-control, from PATH or MPS_CONTROL), with its pipes
// in a temporary folder; it is stopped by its process id. Needs no other user of the first card,
// and no mode of it changed.

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <string>
#include <thread>
#include <vector>

#include "../../probes/sha256.h"
#include "base/encoding.h"
#include "base/json.h"
#include "crypto/random.h"
#include "simulated.h"

namespace ringfence::gpu {
namespace {

using std::chrono::milliseconds;
using Words = std::vector<std::string>;
constexpr std::size_t kLineBytesMax = 1 << 20U;
constexpr milliseconds kDaemonTime{10000};
constexpr int kAgainMax = 2;

// A process with its output to read. Killed with this object if it still runs.
class Process {
 public:
  Process(const Words& command, const Words& environment, bool quiet_input = true) {
    int out[2];
    int in[2];
    if (pipe2(out, O_CLOEXEC) != 0 || pipe2(in, O_CLOEXEC) != 0) {
      std::perror("pipe");
      std::exit(2);
    }
    pid_ = fork();
    if (pid_ == 0) {
      (void)dup2(out[1], 1);
      (void)dup2(quiet_input ? open("/dev/null", O_RDONLY) : in[0], 0);
      std::vector<char*> arguments;
      for (const std::string& word : command) {
        arguments.push_back(const_cast<char*>(word.c_str()));
      }
      arguments.push_back(nullptr);
      for (const std::string& variable : environment) {
        (void)putenv(const_cast<char*>(variable.c_str()));
      }
      (void)execvp(arguments[0], arguments.data());
      std::perror(arguments[0]);
      _exit(127);
    }
    (void)close(out[1]);
    (void)close(in[0]);
    out_ = out[0];
    in_ = in[1];
  }
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;
  ~Process() {
    (void)close(in_);
    if (pid_ > 0) {
      (void)kill(pid_, SIGKILL);
      (void)waitpid(pid_, nullptr, 0);
    }
    (void)close(out_);
  }

  int pid() const { return pid_; }
  void Say(const std::string& text) { (void)!write(in_, text.data(), text.size()); }
  void CloseInput() {
    (void)close(in_);
    in_ = -1;
  }
  std::string ReadLine() const {
    std::string line;
    for (char c = 0; line.size() < kLineBytesMax && read(out_, &c, 1) == 1 && c != '\n';) {
      line += c;
    }
    return line;
  }
  // Its exit status; -1 when a signal ended it.
  int Wait() {
    int status = 0;
    (void)waitpid(pid_, &status, 0);
    pid_ = -1;
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  }
  bool EndsWithin(milliseconds time) {
    const auto end = std::chrono::steady_clock::now() + time;
    int status = 0;
    while (std::chrono::steady_clock::now() < end) {
      if (waitpid(pid_, &status, WNOHANG) == pid_) {
        pid_ = -1;
        return true;
      }
      std::this_thread::sleep_for(milliseconds(20));
    }
    return false;
  }

 private:
  int pid_ = -1;
  int out_ = -1;
  int in_ = -1;
};

struct Setup {
  std::string probe;
  std::string milliseconds;
  Words environment;
};

struct Ran {
  bool well = false;  // both spoke as they should
  bool overlapped = false;
  std::string result;
  JsonObject said;
};

std::int64_t NumberOf(const Json& json, const char* name) {
  const JsonObject* object = json.if_object();
  const Json* value = object == nullptr ? nullptr : object->if_contains(name);
  return value == nullptr || !value->is_number() ? -1 : value->to_number<std::int64_t>();
}

Json Parse(const std::string& line) {
  auto json = ParseJson(line, kLineBytesMax);
  return json.has_value() ? *json : Json(JsonObject{{"said", line}});
}

std::string DigestOf(const Bytes& secret) {
  const auto digest = probe::Sha256({reinterpret_cast<const char*>(secret.data()), secret.size()});
  return Hex(std::as_bytes(std::span(digest)));
}

// The victim at work, and ended with SIGTERM; `alive`: the attacker runs meanwhile, else
// afterwards.
Ran RunPair(const Setup& setup, bool alive) {
  Ran ran;
  const Bytes secret = crypto::RandomBytes(32);
  Process victim({setup.probe, "shared-memory", "victim", "secret=" + Hex(secret)},
                 setup.environment);
  const Json ready = Parse(victim.ReadLine());
  Json done;
  const auto end = [&] {
    (void)kill(victim.pid(), SIGTERM);
    done = Parse(victim.ReadLine());
    return victim.Wait() == 0;
  };
  const bool ended_first = alive || end();
  Words words = {setup.probe, "shared-memory", "attack", "digest=" + DigestOf(secret),
                 "milliseconds=" + setup.milliseconds};
  if (const JsonObject* object = ready.if_object();
      object != nullptr && object->contains("facts")) {
    for (const auto& fact : object->at("facts").as_object()) {
      words.push_back(std::string(fact.key()) + "=" + std::string(fact.value().as_string()));
    }
  }
  Process attacker(words, setup.environment);
  const Json said = Parse(attacker.ReadLine());
  const int status = attacker.Wait();
  const bool ended = alive ? end() : ended_first;
  const std::int64_t from = NumberOf(said, "from_ns");
  const std::int64_t until = NumberOf(said, "until_ns");
  const std::int64_t gap = NumberOf(done, "gap_ns_max");
  ran.well = ended && from > 0 && (status == 0 || status == 10);
  // Its kernels ran before, after and, with no gap as long as the attack, during it.
  ran.overlapped = NumberOf(done, "rounds") > 1 && NumberOf(done, "from_ns") <= from &&
                   NumberOf(done, "until_ns") >= until && gap >= 0 && gap < until - from;
  ran.result = status == 0 ? "held" : status == 10 ? "leaked" : "cannot_try";
  ran.said = JsonObject{{"result", ran.result},
                        {"overlapped", ran.overlapped},
                        {"victim", ready},
                        {"victim_done", done},
                        {"attacker", said}};
  return ran;
}

// Again, and for longer, where a busy machine kept the victim from its work for as long as the
// attack.
Ran RunOverlapping(Setup setup) {
  Ran ran = RunPair(setup, true);
  for (int again = 0; again < kAgainMax && ran.well && !ran.overlapped; ++again) {
    setup.milliseconds += "0";
    ran = RunPair(setup, true);
  }
  return ran;
}

// An MPS daemon for this program alone, or what the stand-in takes for one.
class Daemon {
 public:
  Daemon(const std::string& folder, bool simulated) : simulated_(simulated) {
    environment_ = {"CUDA_MPS_PIPE_DIRECTORY=" + folder + "/pipe",
                    "CUDA_MPS_LOG_DIRECTORY=" + folder + "/log"};
    std::filesystem::create_directories(folder + "/pipe");
    std::filesystem::create_directories(folder + "/log");
    const std::string control = folder + "/pipe/control";
    if (simulated) {
      (void)close(open(control.c_str(), O_CREAT | O_WRONLY | O_CLOEXEC, 0600));
      return;
    }
    process_ = std::make_unique<Process>(Words{Program(), "-f"}, environment_);
    const auto end = std::chrono::steady_clock::now() + kDaemonTime;
    while (!std::filesystem::exists(control) && std::chrono::steady_clock::now() < end) {
      std::this_thread::sleep_for(milliseconds(20));
    }
  }
  ~Daemon() {
    if (simulated_) {
      return;
    }
    Process quit({Program()}, environment_, false);
    quit.Say("quit -t 5\n");
    quit.CloseInput();
    (void)quit.EndsWithin(kDaemonTime);
    if (!process_->EndsWithin(kDaemonTime)) {
      std::fprintf(stderr, "chip_probe: the MPS daemon did not stop by itself\n");
    }
    // Its server, if it outlived the daemon, is our child by now.
    for (int status = 0; waitpid(-1, &status, WNOHANG) > 0;) {
    }
  }
  Daemon(const Daemon&) = delete;
  Daemon& operator=(const Daemon&) = delete;
  const Words& environment() const { return environment_; }

 private:
  static std::string Program() {
    const char* named = std::getenv("MPS_CONTROL");
    return named == nullptr ? "nvidia-cuda-mps-control" : named;
  }
  bool simulated_;
  Words environment_;
  std::unique_ptr<Process> process_;
};

int Check(Setup setup, bool simulated) {
  (void)prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
  (void)signal(SIGPIPE, SIG_IGN);
  std::string folder = std::filesystem::temp_directory_path() / "ringfence-mps-XXXXXX";
  if (mkdtemp(folder.data()) == nullptr) {
    std::perror("mkdtemp");
    return 2;
  }
  const Words plain = setup.environment;
  // Whatever daemon the machine has: these two are not its clients.
  setup.environment.push_back("CUDA_MPS_PIPE_DIRECTORY=" + folder + "/none");
  const Ran time = RunOverlapping(setup);
  Ran mps;
  Ran after;
  {
    const Daemon daemon(folder, simulated);
    setup.environment = plain;
    setup.environment.insert(setup.environment.end(), daemon.environment().begin(),
                             daemon.environment().end());
    mps = RunOverlapping(setup);
    after = RunPair(setup, false);
  }
  std::filesystem::remove_all(folder);
  const bool right = time.well && time.overlapped && time.result == "held" && mps.well &&
                     mps.overlapped && mps.result == "leaked" && after.well &&
                     after.result == "held";
  const Json all = JsonObject{{"simulated", simulated},
                              {"right", right},
                              {"time_slicing", time.said},
                              {"mps", mps.said},
                              {"mps_after_the_victim", after.said}};
  std::printf("%s\n", CanonicalJson(all).c_str());
  return right ? 0 : 1;
}

}  // namespace
}  // namespace ringfence::gpu

int main(int argc, char** argv) {
  const bool simulate = argc > 3 && std::strcmp(argv[1], "--simulate") == 0;
  const int first = simulate ? 3 : 1;
  if (argc <= first || argc > first + 2) {
    std::fprintf(stderr,
                 "usage: chip_probe [--simulate LIB-FOLDER] PROBE-PROGRAM [MILLISECONDS]\n");
    return 2;
  }
  ringfence::gpu::Setup setup;
  setup.probe = argv[first];
  setup.milliseconds = argc > first + 1 ? argv[first + 1] : "5000";
  if (!simulate) {
    return ringfence::gpu::Check(std::move(setup), false);
  }
  return ringfence::gpu::WithSimulatedRoot(argv[2], [&](const std::string& root) {
    setup.environment = {"LD_LIBRARY_PATH=" + root + "/lib"};
    return ringfence::gpu::Check(setup, true);
  });
}
