#include "gpu/library.h"

#include <dlfcn.h>
#include <link.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <utility>
#include <vector>

#include "base/encoding.h"
#include "crypto/sha256.h"
#include "os/file.h"

namespace ringfence::gpu {
namespace {

constexpr std::size_t kLibraryBytesMax = std::size_t{512} << 20U;
constexpr std::size_t kVersionFileBytesMax = 4096;

std::string LoaderWords() {
  const char* words = dlerror();
  return words == nullptr ? "the loader gave no reason" : words;
}

}  // namespace

std::string Beneath(const std::string& root, const std::string& path) {
  const std::size_t last = root.find_last_not_of('/');
  const std::string trimmed = last == std::string::npos ? "" : root.substr(0, last + 1);
  return trimmed + "/" +
         path.substr(path.find_first_not_of('/') == std::string::npos
                         ? path.size()
                         : path.find_first_not_of('/'));
}

std::vector<std::string> LibraryFolders(const std::string& driver_root) {
  constexpr std::array kFolders = {"usr/lib/x86_64-linux-gnu",
                                   "usr/lib64",
                                   "usr/lib",
                                   "lib",
                                   "lib64",
                                   "usr/local/nvidia/lib64",
                                   "usr/local/nvidia/lib",
                                   "run/opengl-driver/lib",
                                   "opt/rocm/lib",
                                   "opt/rocm/lib64"};
  std::vector<std::string> folders;
  for (const char* folder : kFolders) {
    folders.push_back(Beneath(driver_root, folder));
  }
  return folders;
}

std::string LibraryFile(const std::string& folder, const std::string& name) {
  if (os::Exists(folder + "/" + name)) {
    return folder + "/" + name;
  }
  const auto names = os::ListDir(folder);
  if (!names.has_value() || !name.ends_with(".so")) {
    return {};
  }
  std::string best;
  int best_version = -1;
  const std::string start = name + ".";
  for (const std::string& one : *names) {
    int version = 0;
    const char* const end = one.data() + one.size();
    const auto parsed = one.starts_with(start)
                            ? std::from_chars(one.data() + start.size(), end, version)
                            : std::from_chars_result{end, std::errc::invalid_argument};
    if (parsed.ec == std::errc() && parsed.ptr == end && version > best_version) {
      best = one;
      best_version = version;
    }
  }
  return best.empty() ? "" : folder + "/" + best;
}

void Library::Close::operator()(void* handle) const { (void)dlclose(handle); }

Result<Library> Library::Open(const std::string& driver_root, const std::string& name) {
  std::vector<std::string> candidates;
  if (Beneath(driver_root, "") == "/") {
    candidates.push_back(name);
  }
  for (const std::string& folder : LibraryFolders(driver_root)) {
    if (std::string file = LibraryFile(folder, name); !file.empty()) {
      candidates.push_back(std::move(file));
    }
  }
  std::string why = "there is none in the usual folders";
  for (const std::string& candidate : candidates) {
    void* handle = dlopen(candidate.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (handle == nullptr) {
      why = LoaderWords();
      continue;
    }
    Library library(handle, {});
    link_map* map = nullptr;
    if (dlinfo(handle, RTLD_DI_LINKMAP, static_cast<void*>(&map)) != 0 || map == nullptr) {
      return Error{Code::kInternal, "cannot tell which file " + name + " is: " + LoaderWords()};
    }
    RINGFENCE_ASSIGN(library.path_, os::AbsolutePath(map->l_name));
    return library;
  }
  return Error{Code::kNotFound,
               "no usable " + name + " beneath driver root " + driver_root + ": " + why,
               "install the driver, or set driver_root to where it is"};
}

void* Library::Find(const char* symbol) const { return dlsym(handle_.get(), symbol); }

Result<std::string> Library::FileDigest() const {
  RINGFENCE_ASSIGN(const Bytes bytes, os::ReadFile(path_, kLibraryBytesMax));
  return "sha256:" + Hex(crypto::Sha256(bytes));
}

nvml::Api LoadNvml(const Library& library) {
  nvml::Api api;
#define RINGFENCE_LOAD(name, arguments) \
  api.name = reinterpret_cast<decltype(api.name)>(library.Find(#name));
  RINGFENCE_NVML_FUNCTIONS(RINGFENCE_LOAD)
  api.nvmlErrorString =
      reinterpret_cast<decltype(api.nvmlErrorString)>(library.Find("nvmlErrorString"));
  return api;
}

cuda::Api LoadCuda(const Library& library) {
  cuda::Api api;
  RINGFENCE_CUDA_FUNCTIONS(RINGFENCE_LOAD)
#undef RINGFENCE_LOAD
  return api;
}

bool HasLibrary(const std::string& driver_root, const std::string& name) {
  const auto folders = LibraryFolders(driver_root);
  return std::any_of(folders.begin(), folders.end(),
                     [&](const std::string& folder) { return !LibraryFile(folder, name).empty(); });
}

bool HasNvidiaDriver(const std::string& driver_root) {
  return os::Exists(Beneath(driver_root, "proc/driver/nvidia/version"));
}

Result<std::string> KernelDriver(const std::string& driver_root) {
  const std::string path = Beneath(driver_root, "proc/driver/nvidia/version");
  const Result<std::string> text = os::ReadText(path, kVersionFileBytesMax);
  if (!text.has_value()) {
    return Prefix("cannot read the kernel driver's version", text.error());
  }
  std::string line = text->substr(0, text->find('\n'));
  line.erase(line.find_last_not_of(" \t\r") + 1);
  if (line.empty() || !IsUtf8(line)) {
    return Error{Code::kCorrupt, path + " does not open with a line of text"};
  }
  return line;
}

std::string CudaVersionText(int version) {
  return std::to_string(version / 1000) + "." + std::to_string((version % 1000) / 10);
}

}  // namespace ringfence::gpu
