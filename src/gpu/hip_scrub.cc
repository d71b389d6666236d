#include "gpu/hip_scrub.h"

#include <string>

#include "gpu/amd_sysfs.h"
#include "gpu/hip_driver.h"
#include "gpu/library.h"
#include "gpu/scenario.h"

namespace ringfence::gpu {
namespace {

Result<int> FindDevice(const hip::Api& api, const Gpu& gpu) {
  const std::string address = ProcName(gpu.pci_address);
  int device = -1;
  if (const auto code = api.hipDeviceGetByPCIBusId(&device, address.c_str());
      code != hip::kSuccess) {
    return Error{Code::kUnavailable, gpu.uuid + ": hipDeviceGetByPCIBusId: " + HipWords(api, code),
                 "AMD SMI shows this GPU and HIP does not: check /dev/kfd, its render node and "
                 "HIP_VISIBLE_DEVICES"};
  }
  return device;
}

}  // namespace

Status ScrubThroughHip(const std::string& driver_root, const std::vector<Gpu>& gpus,
                       const ScrubOne& scrub, ScrubReport& report) {
  RINGFENCE_ASSIGN(const Library library, Library::Open(driver_root, kHipName));
  const hip::Api api = LoadHip(library);
  RINGFENCE_TRY(CheckHip(api, library.path()));
  report.simulated = report.simulated || library.simulated();
  RINGFENCE_ASSIGN(report.library_digest, library.FileDigest());
  const auto must = [&](const char* function, hip::Error code) {
    return code == hip::kSuccess ? Status()
                                 : Status(Error{Code::kUnavailable, std::string(function) + ": " +
                                                                        HipWords(api, code)});
  };
  RINGFENCE_TRY(must("hipInit", api.hipInit(0)));
  int version = 0;
  RINGFENCE_TRY(must("hipRuntimeGetVersion", api.hipRuntimeGetVersion(&version)));
  report.driver_version =
      "HIP " + std::to_string(version / 10'000'000) + "." + std::to_string(version / 100'000 % 100);
  for (const Gpu& gpu : gpus) {
    RINGFENCE_ASSIGN(const AmdCard card, ReadAmdCard(driver_root, ProcName(gpu.pci_address)));
    RINGFENCE_ASSIGN(const int device, FindDevice(api, gpu));
    CardFacts facts;
    facts.runs_kernels = false;
    facts.multiprocessors = card.compute_units;
    facts.shared_bytes = card.compute_units == 0 ? 0 : card.local_bytes / card.compute_units;
    HipDriver driver(api, gpu.uuid, device, facts);
    RINGFENCE_TRY(scrub(driver, gpu));
  }
  report.not_covered.emplace_back(
      "AMD: no code of ours runs on the card, so LDS, registers, every cache and the memory of "
      "firmware and engines of every card are as they were");
  report.not_covered.emplace_back(
      "AMD: scrubbing through HIP has never been run on hardware, only on simulated cards");
  return {};
}

}  // namespace ringfence::gpu
