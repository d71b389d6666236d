// Attacks on files of others: shared memory by name, what an earlier lease left, the bundles of
// other leases and the host's own.

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <sstream>

#include "util.h"

namespace ringfence::probe {
namespace {

constexpr std::size_t kFileBytesMax = std::size_t{256} << 10U;

std::string OwnName() {
  const char* lease = getenv("RINGFENCE_LEASE");
  return std::string("ringfence-probe-") + (lease == nullptr ? "none" : lease);
}

void PlantShm(Victim& victim) {
  if (!WriteFile("/dev/shm/" + OwnName(), victim.secret)) {
    victim.CouldNotPlant("shm_open", errno);
  }
  victim.end = [](Victim&) { (void)unlink(("/dev/shm/" + OwnName()).c_str()); };
}

void PlantLeftovers(Victim& victim) {
  for (const char* folder : {"/tmp/", "/dev/shm/", "/home/job/", "/var/tmp/"}) {
    (void)WriteFile(folder + OwnName(), victim.secret);
  }
}

// Every plain file in these folders; not deeper.
Outcome Search(const Input& input, std::initializer_list<const char*> folders) {
  int files = 0;
  for (const std::string folder : folders) {
    for (const std::string& name : ListFolder(folder)) {
      std::string bytes;
      ++files;
      if (ReadFile(folder + "/" + name, kFileBytesMax, bytes) && input.FindSecret(bytes) > 0) {
        return Leaked(input.FindSecret(bytes), "the secret was in " + folder + "/" + name);
      }
    }
  }
  return Held(std::to_string(files) + " files are here, and the secret is in none of them");
}

Outcome AttackShm(const Input& input) { return Search(input, {"/dev/shm"}); }
Outcome AttackLeftovers(const Input& input) {
  return Search(input, {"/tmp", "/dev/shm", "/home/job", "/var/tmp"});
}

// `path` as it would be beneath any mount that the box has.
std::vector<std::string> BeneathMounts(const std::string& path) {
  std::vector<std::string> paths = {path};
  std::string text;
  (void)ReadFile("/proc/self/mounts", std::size_t{1} << 20U, text);
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    std::string source;
    std::string at;
    if (words >> source >> at && at != "/" && !at.starts_with("/proc") && !at.starts_with("/sys")) {
      paths.push_back(at + path);
    }
  }
  return paths;
}

// A bundle holds the command and the environment of its lease.
Outcome AttackOtherLease(const Input& input) {
  const std::string lease = input.Get("victim_lease");
  if (lease.empty()) {
    return CannotTry("the victim's lease was not told");
  }
  std::string refused = "no mount leads to the bundles of other leases";
  for (const std::string& path :
       BeneathMounts("/run/ringfence/bundles/" + lease + "/config.json")) {
    std::string bytes;
    if (ReadFile(path, kFileBytesMax, bytes)) {
      if (const std::uint64_t found = input.FindSecret(bytes); found > 0) {
        return Leaked(found, "the secret was in " + path);
      }
    } else if (errno != ENOENT && errno != ENOTDIR) {
      refused = path + ": " + Words(errno);
    }
  }
  return Held(refused);
}

Outcome AttackHostFiles(const Input& /*input*/) {
  std::string refused = "no mount leads to the host's files";
  for (const char* wanted : {"/etc/shadow", "/etc/gshadow"}) {
    for (const std::string& path : BeneathMounts(wanted)) {
      std::string bytes;
      if (ReadFile(path, kFileBytesMax, bytes) && !bytes.empty()) {
        return Leaked(bytes.size(), path + " was read");
      }
      if (errno != ENOENT && errno != ENOTDIR) {
        refused = path + ": " + Words(errno);
      }
    }
  }
  return Held(refused);
}

constexpr Code kCodes[] = {
    {"posix-shm", AttackShm, PlantShm},
    {"leftover-files", AttackLeftovers, PlantLeftovers},
    {"other-lease-files", AttackOtherLease},
    {"host-files", AttackHostFiles},
};

}  // namespace

std::span<const Code> FileAttacks() { return kCodes; }

}  // namespace ringfence::probe
