#pragma once

// Opening a vendor's library beneath a driver root, and saying which file that was.

#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "gpu/cuda_abi.h"
#include "gpu/nvml_abi.h"

namespace ringfence::gpu {

inline constexpr const char* kNvmlName = "libnvidia-ml.so.1";
inline constexpr const char* kCudaName = "libcuda.so.1";
inline constexpr const char* kAmdSmiName = "libamd_smi.so";
inline constexpr const char* kHipName = "libamdhip64.so";
// A library that exports this is a stand-in of sim/.
inline constexpr const char* kSimulatedSymbol = "ringfence_simulated_driver";

// One opened library; closed with the object, so every pointer from it dies with it too.
class Library {
 public:
  // For "/": by its bare name, as any program finds it, then in the usual folders. For any other
  // root: only beneath it. A name without a version stands for the file with the highest one too.
  // kNotFound: no such library there.
  static Result<Library> Open(const std::string& driver_root, const std::string& name);

  void* Find(const char* symbol) const;
  const std::string& path() const { return path_; }  // links resolved
  bool simulated() const { return Find(kSimulatedSymbol) != nullptr; }
  // "sha256:..." of the file that was opened.
  Result<std::string> FileDigest() const;

 private:
  struct Close {
    void operator()(void* handle) const;
  };
  Library(void* handle, std::string path) : handle_(handle), path_(std::move(path)) {}

  std::unique_ptr<void, Close> handle_;
  std::string path_;
};

nvml::Api LoadNvml(const Library& library);
cuda::Api LoadCuda(const Library& library);

// Where a driver's libraries may lie, beneath its root, in order of trial.
std::vector<std::string> LibraryFolders(const std::string& driver_root);
// The file of a library in one of them; empty: there is none.
std::string LibraryFile(const std::string& folder, const std::string& name);

// Whether one of the folders has it; it is not opened.
bool HasLibrary(const std::string& driver_root, const std::string& name);
bool HasNvidiaDriver(const std::string& driver_root);
// First line of <driver_root>/proc/driver/nvidia/version.
Result<std::string> KernelDriver(const std::string& driver_root);

// 13000 as NVML and CUDA write it, "13.0" as people do.
std::string CudaVersionText(int version);

// `root` and `path` with exactly one slash between.
std::string Beneath(const std::string& root, const std::string& path);

}  // namespace ringfence::gpu
