// ringfence-worker: the short-lived helper that loads a vendor's library, so that the jailer need
// not. Prints one JSON document and ends.
//   ringfence-worker inventory --driver-root R
//   ringfence-worker sense --driver-root R [--kernel-log 3]: a line of JSON each second and at each
//   fault, until
//     nobody reads them any more
//   ringfence-worker scrub --driver-root R --gpu UUID [--gpu UUID...]
//   ringfence-worker mig --driver-root R --gpu UUID [--target T --before B]
// Exit status: 0 done, 1 {"error":{"code","message"}} says why not, 2 wrong usage (said likewise).

#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include "base/code.h"
#include "base/json.h"
#include "gpu/inventory.h"
#include "gpu/limits.h"
#include "gpu/mig_live.h"
#include "gpu/scrub.h"
#include "gpu/sensor.h"
#include "os/failpoint.h"
#include "os/file.h"
#include "os/privileges.h"

namespace ringfence {
namespace {

struct Arguments {
  std::string command;
  std::string driver_root;
  std::vector<std::string> gpus;
  std::string target;  // of MIG; empty: it is only read
  std::string before;
  int kernel_log = -1;  // a descriptor that we were given
};

Result<Arguments> ParseArguments(const std::vector<std::string_view>& words) {
  const Error usage{
      Code::kInvalidArgument,
      "usage: ringfence-worker inventory --driver-root R | sense --driver-root R | scrub "
      "--driver-root R --gpu UUID [--gpu UUID...] | mig --driver-root R --gpu UUID [--target T "
      "--before B]"};
  Arguments arguments;
  if (words.empty()) {
    return usage;
  }
  arguments.command = words[0];
  for (std::size_t i = 1; i + 1 < words.size(); i += 2) {
    if (words[i] == "--driver-root" && arguments.driver_root.empty()) {
      arguments.driver_root = words[i + 1];
    } else if (words[i] == "--target" && arguments.target.empty()) {
      arguments.target = words[i + 1];
    } else if (words[i] == "--before" && arguments.before.empty()) {
      arguments.before = words[i + 1];
    } else if (words[i] == "--kernel-log" && words[i + 1] == "3") {
      arguments.kernel_log = 3;
    } else if (words[i] == "--gpu" && arguments.gpus.size() < gpu::kGpusMax) {
      arguments.gpus.emplace_back(words[i + 1]);
    } else {
      return usage;
    }
  }
  const bool mig = arguments.command == "mig";
  const bool on_some = mig || arguments.command == "scrub";
  if (words.size() % 2 == 0 || arguments.driver_root.empty() ||
      (!on_some && arguments.command != "inventory" && arguments.command != "sense") ||
      on_some == arguments.gpus.empty() || (mig && arguments.gpus.size() != 1) ||
      arguments.target.empty() != arguments.before.empty() || (!mig && !arguments.target.empty())) {
    return usage;
  }
  return arguments;
}

Result<std::string> Mig(const Arguments& arguments) {
  const std::string& gpu = arguments.gpus.front();
  if (arguments.target.empty()) {
    RINGFENCE_ASSIGN(const auto live, gpu::ReadMig(arguments.driver_root, gpu));
    return CanonicalJson(gpu::LiveMigToJson(live));
  }
  RINGFENCE_ASSIGN(const auto target, gpu::ParseMigTarget(arguments.target));
  RINGFENCE_ASSIGN(const auto before, gpu::ParseMigTarget(arguments.before));
  return CanonicalJson(
      gpu::MigOutcomeToJson(gpu::TryMig(arguments.driver_root, gpu, target, before)));
}

Result<std::string> Run(const Arguments& arguments) {
  if (arguments.command == "mig") {
    return Mig(arguments);
  }
  if (arguments.command == "scrub") {
    RINGFENCE_FAILPOINT("worker.begin");
    RINGFENCE_ASSIGN(const auto report, gpu::Scrub(arguments.driver_root, arguments.gpus));
    RINGFENCE_FAILPOINT("worker.scrubbed");
    return gpu::ScrubReportToJson(report);
  }
  RINGFENCE_ASSIGN(const auto inventory, gpu::ReadInventory(arguments.driver_root));
  return CanonicalJson(gpu::InventoryToJson(inventory));
}

bool Print(std::string text) {
  text += '\n';
  return std::fwrite(text.data(), 1, text.size(), stdout) == text.size() &&
         std::fflush(stdout) == 0;
}

// Ends when its reader has gone, and then without waiting for a card that hangs.
Status Sense(const Arguments& arguments) {
  gpu::SensorOptions sensor_options;
  sensor_options.driver_root = arguments.driver_root;
  sensor_options.kernel_log = arguments.kernel_log;
  RINGFENCE_ASSIGN(const auto sensor, gpu::Sensor::Open(sensor_options));
  sensor->Run([](const gpu::SensorLine& line) { return Print(gpu::SensorLineToText(line)); });
  std::quick_exit(0);
}

int Fail(const Error& error, int exit_status) {
  (void)Print(
      CanonicalJson(JsonObject{{"error", JsonObject{{"code", std::string(Facts(error.code).label)},
                                                    {"message", error.message.substr(0, 4096)}}}}));
  return exit_status;
}

int Main(const std::vector<std::string_view>& words) {
  // A core file would hold what was read from the card.
  if (const Status status = os::SetLimit(os::Limit::kCoreBytes, 0); !status.has_value()) {
    return Fail(status.error(), 1);
  }
  const Result<Arguments> arguments = ParseArguments(words);
  if (!arguments.has_value()) {
    return Fail(arguments.error(), kExitUsage);
  }
  // Held open: Landlock's rule for our own folder of /proc (isolate/worker.cc) is bound to it as it
  // is now, and the kernel must not forget it and make it anew.
  const Result<os::UniqueFd> own = os::OpenRead("/proc/self");
  if (arguments->command == "sense") {
    const Status sensed = Sense(*arguments);
    return sensed.has_value() ? 0 : Fail(sensed.error(), 1);
  }
  const Result<std::string> text = Run(*arguments);
  if (!text.has_value()) {
    return Fail(text.error(), 1);
  }
  if (text->size() >= gpu::kReportBytesMax) {
    return Fail({Code::kExhausted, "the report is over its limit"}, 1);
  }
  const bool printed = Print(*text);
  RINGFENCE_FAILPOINT("worker.printed");
  return printed ? 0 : 1;
}

}  // namespace
}  // namespace ringfence

int main(int argc, char** argv) {
  return ringfence::Main(std::vector<std::string_view>(argv + (argc > 0 ? 1 : 0), argv + argc));
}
