#include "driver.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
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

std::uint64_t WrittenMs(const std::string& path) {
  struct stat facts{};
  if (stat(path.c_str(), &facts) != 0) {
    return 0;
  }
  return static_cast<std::uint64_t>(facts.st_mtim.tv_sec) * 1000 +
         static_cast<std::uint64_t>(facts.st_mtim.tv_nsec) / 1'000'000;
}

std::size_t StepsCome(const gpu::Scenario& scenario, std::uint64_t elapsed_ms) {
  std::size_t steps = 0;
  for (const gpu::SimulatedGpu& gpu : scenario.gpus) {
    for (const gpu::TimelineStep& step : gpu.timeline) {
      steps += static_cast<std::uint64_t>(step.after.count()) <= elapsed_ms ? 1U : 0U;
    }
  }
  return steps;
}

}  // namespace

std::uint64_t NowMs() {
  return static_cast<std::uint64_t>(std::chrono::duration_cast<std::chrono::milliseconds>(
                                        std::chrono::system_clock::now().time_since_epoch())
                                        .count());
}

bool Driver::Follow() {
  constexpr std::uint64_t kLookEveryMs = 20;
  const std::uint64_t now = NowMs();
  if (now >= looked_ms_ && now - looked_ms_ < kLookEveryMs) {
    return false;
  }
  looked_ms_ = now;
  const std::string path = root + "/scenario.json";
  const std::uint64_t written = WrittenMs(path);
  bool changed = false;
  if (written != written_ms) {
    const auto text = ReadWhole(path, gpu::kScenarioBytesMax);
    auto read = text.has_value() ? gpu::ParseScenario(*text) : Result<gpu::Scenario>(text.error());
    if (!read.has_value()) {
      return false;  // half written; the next look sees it whole
    }
    as_written_ = std::move(*read);
    written_ms = written;
    changed = true;
  }
  const std::uint64_t elapsed = now > written_ms ? now - written_ms : 0;
  const std::size_t steps = StepsCome(as_written_, elapsed);
  if (!changed && steps == steps_) {
    return false;
  }
  steps_ = steps;
  auto at = gpu::ScenarioAt(as_written_, std::chrono::milliseconds(elapsed));
  if (!at.has_value()) {
    return false;
  }
  scenario = std::move(*at);
  return true;
}

int OpenNode(const std::string& path, Use use) {
  const int fd = open(path.c_str(), (use == Use::kRead ? O_RDONLY : O_RDWR) | O_CLOEXEC);
  if (fd >= 0) {
    (void)close(fd);
    return 0;
  }
  return errno == ENXIO ? 0 : errno;
}

Result<Driver> Driver::Load(const void* symbol, Vendor vendor) {
  Driver driver;
  RINGFENCE_ASSIGN(driver.root, RootOf(symbol));
  if (!driver.Follow()) {
    return Error{Code::kCorrupt, "cannot read " + driver.root + "/scenario.json"};
  }
  const std::string folder = IsFolder(driver.root + "/dev") ? driver.root + "/dev" : "/dev";
  driver.devices = folder;
  if (vendor == Vendor::kAmd) {
    driver.control_errno = OpenNode(folder + "/kfd");
    for (const gpu::SimulatedGpu& gpu : driver.scenario.gpus) {
      if (gpu.is_amd() && OpenNode(folder + "/dri/renderD" + std::to_string(gpu.minor)) == 0) {
        driver.gpus.push_back(gpu);
      }
    }
    return driver;
  }
  driver.control_errno = OpenNode(folder + "/nvidiactl");
  driver.uvm_errno = OpenNode(folder + "/nvidia-uvm");
  for (const gpu::SimulatedGpu& gpu : driver.scenario.gpus) {
    if (!gpu.is_amd() && driver.control_errno == 0 &&
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
