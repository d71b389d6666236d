// ringfence-probe: one attack of `ringfence prove`, as its victim or as its attacker. Runs in a
// box.
//
//   ringfence-probe NAME victim secret=HEX
//       plants the secret, prints {"ready":true,"facts":{...}} and waits; SIGTERM: exit 0.
//       {"harmed":"..."} and exit 10 when the attacker got at it.
//       One that was busy all the time says, last, {"rounds":N,"from_ns":N,"until_ns":N,
//       "gap_ns_max":N}: how often, between which times, and the longest time without.
//   ringfence-probe NAME attack [digest=SHA256] [KEY=VALUE]...
//       prints, last, {"result":"held"|"leaked"|"cannot_try","leaked_bytes":N,"detail":"...",
//       "from_ns":N,"until_ns":N}. Times are the machine's monotonic clock.
//       Exit status: 0 held, 10 leaked, 20 could not be tried.
//       With secret=HEX another process of this box plants it first, and dies.
//   ringfence-probe --list
//
// Exit status 2: it was called wrongly.

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <ctime>

#include "hex.h"
#include "probe.h"

namespace ringfence::probe {
namespace {

constexpr int kExitLeaked = 10;
constexpr int kExitCannotTry = 20;
constexpr int kExitUsage = 2;
constexpr std::size_t kSecretBytes = 32;

std::vector<Code> AllCodes() {
  std::vector<Code> all;
  for (const auto& family :
       {CgroupAttacks(), ChipAttacks(), DeviceAttacks(), FileAttacks(), GpuAttacks(), IpcAttacks(),
        KernelAttacks(), MountAttacks(), NetworkAttacks(), ProcessAttacks(), RuntimeAttacks()}) {
    all.insert(all.end(), family.begin(), family.end());
  }
  return all;
}

std::string Quoted(std::string_view text) {
  std::string quoted = "\"";
  for (const char c : text) {
    char escaped[8];
    if (c == '"' || c == '\\') {
      quoted += '\\';
      quoted += c;
    } else if (static_cast<unsigned char>(c) < 0x20 || static_cast<unsigned char>(c) >= 0x7f) {
      (void)std::snprintf(escaped, sizeof escaped, "\\u%04x", static_cast<unsigned char>(c));
      quoted += escaped;
    } else {
      quoted += c;
    }
  }
  return quoted + '"';
}

void Say(const std::string& line) {
  const std::string whole = line + "\n";
  std::size_t done = 0;
  while (done < whole.size()) {
    const ssize_t wrote = write(1, whole.data() + done, whole.size() - done);
    if (wrote < 0 && errno != EINTR) {
      _exit(kExitUsage);
    }
    done += wrote > 0 ? static_cast<std::size_t>(wrote) : 0;
  }
}

std::int64_t Now() {
  timespec now{};
  (void)clock_gettime(CLOCK_MONOTONIC, &now);
  return std::int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec;
}

int Await(const sigset_t& signals) {
  int number = 0;
  (void)sigwait(&signals, &number);
  return number;
}

// Since `from` it is at work.
int KeepBusy(Victim& victim, const sigset_t& signals, std::int64_t from) {
  const timespec at_once{};
  std::int64_t until = from;
  std::int64_t gap_max = 0;
  std::uint64_t rounds = 0;
  int number = -1;
  // A last round after the signal: whoever sent it has seen us at work until then.
  while (number < 0 && victim.broken.empty()) {
    number = sigtimedwait(&signals, nullptr, &at_once);
    victim.busy(victim);
    const std::int64_t now = Now();
    gap_max = std::max(gap_max, now - until);
    until = now;
    ++rounds;
  }
  Say("{\"rounds\":" + std::to_string(rounds) + ",\"from_ns\":" + std::to_string(from) +
      ",\"until_ns\":" + std::to_string(until) + ",\"gap_ns_max\":" + std::to_string(gap_max) +
      (victim.broken.empty() ? "" : ",\"broken\":" + Quoted(victim.broken)) + "}");
  return number;
}

int RunVictim(const Code& code, const Input& input) {
  Victim victim;
  if (!FromHex(input.Get("secret"), victim.secret) || victim.secret.size() != kSecretBytes) {
    (void)std::fprintf(stderr, "ringfence-probe: secret= is not 32 bytes in hexadecimal\n");
    return kExitUsage;
  }
  sigset_t signals;
  (void)sigemptyset(&signals);
  (void)sigaddset(&signals, SIGTERM);
  (void)sigaddset(&signals, SIGUSR1);
  (void)sigprocmask(SIG_BLOCK, &signals, nullptr);
  victim.facts["pid"] = std::to_string(getpid());
  if (code.plant != nullptr) {
    code.plant(victim);
  }
  const std::int64_t from = Now();
  std::string facts;
  for (const auto& [key, value] : victim.facts) {
    facts += (facts.empty() ? "" : ",") + Quoted(key) + ":" + Quoted(value);
  }
  Say("{\"ready\":true,\"facts\":{" + facts + "}}");
  const int number = victim.busy == nullptr ? Await(signals) : KeepBusy(victim, signals, from);
  if (victim.end != nullptr) {
    victim.end(victim);
  }
  if (number == SIGUSR1) {
    Say("{\"harmed\":\"signal SIGUSR1 reached it\"}");
    return kExitLeaked;
  }
  return 0;
}

// With the secret itself an attacker is told to be its own neighbour first: another process of the
// same box plants it and dies, and nobody has scrubbed anything in between.
bool PlantAndDie(const Code& code, const Input& input) {
  Victim victim;
  int ready[2];
  if (code.plant == nullptr || !FromHex(input.Get("secret"), victim.secret) ||
      victim.secret.size() != kSecretBytes || pipe(ready) != 0) {
    return false;
  }
  const pid_t child = fork();
  if (child == 0) {
    code.plant(victim);
    (void)!write(ready[1], "", 1);
    for (;;) {
      (void)pause();
    }
  }
  (void)close(ready[1]);
  char byte = 0;
  const bool planted = child > 0 && read(ready[0], &byte, 1) == 1;
  (void)close(ready[0]);
  if (child > 0) {
    (void)kill(child, SIGKILL);
    (void)waitpid(child, nullptr, 0);
  }
  return planted;
}

int RunAttack(const Code& code, const Input& input) {
  if (!input.Get("secret").empty() && !PlantAndDie(code, input)) {
    (void)std::fprintf(stderr, "ringfence-probe: the secret could not be planted\n");
    return kExitUsage;
  }
  const std::int64_t from = Now();
  const Outcome outcome = code.attack(input);
  const char* word = "held";
  int status = 0;
  if (outcome.result == Outcome::Result::kLeaked) {
    word = "leaked";
    status = kExitLeaked;
  } else if (outcome.result == Outcome::Result::kCannotTry) {
    word = "cannot_try";
    status = kExitCannotTry;
  }
  Say(std::string("{\"result\":\"") + word + "\",\"leaked_bytes\":" +
      std::to_string(outcome.leaked_bytes) + ",\"detail\":" + Quoted(outcome.detail) +
      ",\"from_ns\":" + std::to_string(from) + ",\"until_ns\":" + std::to_string(Now()) + "}");
  return status;
}

int Main(int argc, char** argv) {
  const std::vector<Code> codes = AllCodes();
  if (argc == 2 && std::strcmp(argv[1], "--list") == 0) {
    for (const Code& code : codes) {
      Say(code.name);
    }
    return 0;
  }
  const std::string role = argc >= 3 ? argv[2] : "";
  Input input;
  bool right = role == "victim" || role == "attack";
  for (int i = 3; i < argc; ++i) {
    const char* equals = std::strchr(argv[i], '=');
    right = right && equals != nullptr;
    if (equals != nullptr) {
      input.facts[std::string(argv[i], static_cast<std::size_t>(equals - argv[i]))] = equals + 1;
    }
  }
  for (const Code& code : codes) {
    if (right && std::strcmp(code.name, argv[1]) == 0) {
      return role == "victim" ? RunVictim(code, input) : RunAttack(code, input);
    }
  }
  (void)std::fprintf(stderr,
                     "usage: ringfence-probe NAME victim|attack [KEY=VALUE]...\n"
                     "       ringfence-probe --list\n");
  return kExitUsage;
}

}  // namespace
}  // namespace ringfence::probe

int main(int argc, char** argv) { return ringfence::probe::Main(argc, argv); }
