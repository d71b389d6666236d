#include "driver.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <climits>
#include <cstdlib>
#include <memory>

namespace ringfence::sim {
namespace {

Result<std::string> ReadWhole(const std::string& path, std::size_t bytes_max) {
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) {
    return Error{Code::kNotFound, "cannot open " + path};
  }
  std::string text;
  std::array<char, 65536> chunk{};
  ssize_t got = 0;
  while (text.size() <= bytes_max && (got = read(fd, chunk.data(), chunk.size())) > 0) {
    text.append(chunk.data(), static_cast<std::size_t>(got));
  }
  (void)close(fd);
  if (got < 0 || text.size() > bytes_max) {
    return Error{Code::kCorrupt, "cannot read " + path};
  }
  return text;
}

Result<std::string> RootOf(const void* symbol) {
  Dl_info info{};
  if (dladdr(symbol, &info) == 0 || info.dli_fname == nullptr) {
    return Error{Code::kNotFound, "the loader does not know this library"};
  }
  const std::unique_ptr<char, void (*)(void*)> real(realpath(info.dli_fname, nullptr), &free);
  std::string path = real == nullptr ? "" : real.get();
  for (int up = 0; up < 2; ++up) {  // the library, then lib/
    const std::size_t slash = path.rfind('/');
    if (slash == std::string::npos) {
      return Error{Code::kNotFound, "this library is in no driver root"};
    }
    path.resize(slash);
  }
  return path;
}

bool IsFolder(const std::string& path) {
  struct stat facts{};
  return stat(path.c_str(), &facts) == 0 && S_ISDIR(facts.st_mode);
}

}  // namespace

int OpenNode(const std::string& path, Use use) {
  const int fd = open(path.c_str(), (use == Use::kRead ? O_RDONLY : O_RDWR) | O_CLOEXEC);
  if (fd >= 0) {
    (void)close(fd);
    return 0;
  }
  return errno == ENXIO ? 0 : errno;
}

Result<Driver> Driver::Load(const void* symbol) {
  Driver driver;
  RINGFENCE_ASSIGN(driver.root, RootOf(symbol));
  RINGFENCE_ASSIGN(const std::string text,
                   ReadWhole(driver.root + "/scenario.json", gpu::kScenarioBytesMax));
  RINGFENCE_ASSIGN(driver.scenario, gpu::ParseScenario(text));
  const std::string folder = IsFolder(driver.root + "/dev") ? driver.root + "/dev" : "/dev";
  driver.devices = folder;
  driver.control_errno = OpenNode(folder + "/nvidiactl");
  driver.uvm_errno = OpenNode(folder + "/nvidia-uvm");
  for (const gpu::SimulatedGpu& gpu : driver.scenario.gpus) {
    if (driver.control_errno == 0 &&
        OpenNode(folder + "/nvidia" + std::to_string(gpu.minor)) == 0) {
      driver.gpus.push_back(gpu);
    }
  }
  return driver;
}

void FailurePlan::Restart() {
  const std::lock_guard lock(mutex_);
  calls_.clear();
}

int FailurePlan::Next(const gpu::FailureSwitches& switches, const std::string& key,
                      const std::string& function) {
  const auto found = switches.find(function);
  if (found == switches.end()) {
    return 0;
  }
  const std::lock_guard lock(mutex_);
  const gpu::FailureSwitch& failure = found->second;
  const std::uint64_t call = calls_[key + "/" + function]++;
  return call >= failure.after && call - failure.after < failure.times ? failure.result : 0;
}

}  // namespace ringfence::sim
