#include "gpu/amd_inventory.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <set>
#include <span>
#include <utility>

#include "gpu/amd_sysfs.h"
#include "gpu/amdsmi_abi.h"
#include "gpu/limits.h"

namespace ringfence::gpu {
namespace {

using amdsmi::Return;

constexpr const char* kHint = "use AMD SMI of ROCm 6.0 or later";

amdsmi::Api LoadAmdSmi(const Library& library) {
  amdsmi::Api api;
#define RINGFENCE_LOAD(name, arguments) \
  api.name = reinterpret_cast<decltype(api.name)>(library.Find(#name));
  RINGFENCE_AMDSMI_FUNCTIONS(RINGFENCE_LOAD)
#undef RINGFENCE_LOAD
  return api;
}

Status RequireFunctions(const amdsmi::Api& api, const std::string& path) {
  const std::pair<const void*, const char*> needed[] = {
#define RINGFENCE_NEED(name, arguments) {reinterpret_cast<const void*>(api.name), #name},
      RINGFENCE_AMDSMI_FUNCTIONS(RINGFENCE_NEED)
#undef RINGFENCE_NEED
  };
  for (const auto& [function, name] : needed) {
    if (function == nullptr) {
      return Error{Code::kFailedPrecondition, path + " has no function " + name, kHint};
    }
  }
  return {};
}

bool Unsupported(Return code) {
  return code == amdsmi::kNotSupported || code == amdsmi::kNotYetImplemented;
}

Status Must(const amdsmi::Api& api, const std::string& who, const char* function, Return code) {
  if (code == amdsmi::kSuccess) {
    return {};
  }
  const char* words = nullptr;
  if (api.amdsmi_status_code_to_string(code, &words) != amdsmi::kSuccess) {
    words = nullptr;
  }
  const Code ours = code == amdsmi::kNoPermission      ? Code::kPermissionDenied
                    : code == amdsmi::kDriverNotLoaded ? Code::kNotFound
                                                       : Code::kUnavailable;
  return Error{ours, who + function + ": " + (words == nullptr ? "no words" : words) + " (" +
                         std::to_string(static_cast<std::uint32_t>(code)) + ")"};
}

// AMD SMI between its start and its end.
class Session {
 public:
  static Result<Session> Start(const amdsmi::Api& api) {
    RINGFENCE_TRY(Must(api, "", "amdsmi_init", api.amdsmi_init(amdsmi::kInitGpus)));
    return Session(api);
  }
  Session(Session&& other) noexcept : api_(std::exchange(other.api_, nullptr)) {}
  Session& operator=(Session&&) = delete;
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;
  ~Session() {
    if (api_ != nullptr) {
      (void)api_->amdsmi_shut_down();
    }
  }

 private:
  explicit Session(const amdsmi::Api& api) : api_(&api) {}
  const amdsmi::Api* api_;
};

// Each socket is a card, each processor of it a partition.
Result<std::vector<amdsmi::Processor>> ListGpus(const amdsmi::Api& api) {
  std::array<amdsmi::Socket, kGpusMax> sockets{};
  std::uint32_t socket_count = 0;
  const auto list_sockets = [&](amdsmi::Socket* into) {
    return Must(api, "", "amdsmi_get_socket_handles",
                api.amdsmi_get_socket_handles(&socket_count, into));
  };
  const auto too_many = [](std::uint32_t count) {
    return Error{Code::kExhausted, "AMD SMI counts " + std::to_string(count) +
                                       " sockets or partitions, over the " +
                                       std::to_string(kGpusMax) + " that one node may have"};
  };
  RINGFENCE_TRY(list_sockets(nullptr));
  if (socket_count > sockets.size()) {
    return too_many(socket_count);
  }
  RINGFENCE_TRY(list_sockets(sockets.data()));
  std::vector<amdsmi::Processor> found;
  for (const amdsmi::Socket socket : std::span(sockets).first(socket_count)) {
    std::array<amdsmi::Processor, kGpusMax> processors{};
    std::uint32_t count = 0;
    const auto list = [&](amdsmi::Processor* into) {
      return Must(api, "", "amdsmi_get_processor_handles",
                  api.amdsmi_get_processor_handles(socket, &count, into));
    };
    RINGFENCE_TRY(list(nullptr));
    if (count > processors.size()) {
      return too_many(count);
    }
    RINGFENCE_TRY(list(processors.data()));
    for (const amdsmi::Processor processor : std::span(processors).first(count)) {
      std::uint32_t type = 0;
      RINGFENCE_TRY(Must(api, "", "amdsmi_get_processor_type",
                         api.amdsmi_get_processor_type(processor, &type)));
      if (type == amdsmi::kTypeGpu) {
        found.push_back(processor);
      }
    }
  }
  return found;
}

bool IsUuid(std::string_view text) {
  constexpr std::string_view kShape = "xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx";
  return text.size() == kShape.size() &&
         std::equal(text.begin(), text.end(), kShape.begin(), [](char c, char shape) {
           return shape == 'x' ? (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f') : c == shape;
         });
}

// Reads one card. Each step is one call; the first that fails names the card and the call.
class AmdReader {
 public:
  AmdReader(const amdsmi::Api& api, amdsmi::Processor processor, amdsmi::Bdf address)
      : api_(api), processor_(processor), address_(address) {
    who_ = "GPU " + AmdFolderName(address);
  }

  Result<Gpu> Read(AmdCard card) {
    gpu_.vendor = kAmd;
    RINGFENCE_TRY(ReadUuid());
    gpu_.minor = card.render_minor;
    gpu_.model = std::move(card.model);
    gpu_.serial = std::move(card.serial);
    gpu_.vbios = std::move(card.vbios);
    gpu_.pci_device_id = std::move(card.pci_device_id);
    gpu_.pci_address = AddressText();
    gpu_.processes = std::move(card.processes);
    gpu_.confidential_computing = "unknown";
    RINGFENCE_ASSIGN(gpu_.memory_bytes,
                     Bytes("amdsmi_get_gpu_memory_total", api_.amdsmi_get_gpu_memory_total));
    RINGFENCE_ASSIGN(gpu_.memory_used_bytes,
                     Bytes("amdsmi_get_gpu_memory_usage", api_.amdsmi_get_gpu_memory_usage));
    RINGFENCE_TRY(ReadEcc());
    RINGFENCE_ASSIGN(gpu_.compute_partition, Partition("amdsmi_get_gpu_compute_partition",
                                                       api_.amdsmi_get_gpu_compute_partition));
    RINGFENCE_ASSIGN(gpu_.memory_partition, Partition("amdsmi_get_gpu_memory_partition",
                                                      api_.amdsmi_get_gpu_memory_partition));
    return std::move(gpu_);
  }

 private:
  Status Check(const char* function, Return code) const {
    return Must(api_, who_ + ": ", function, code);
  }

  Status ReadUuid() {
    std::array<char, amdsmi::kUuidBytes + 1> text{};
    unsigned int bytes = amdsmi::kUuidBytes;
    RINGFENCE_TRY(Check("amdsmi_get_gpu_device_uuid",
                        api_.amdsmi_get_gpu_device_uuid(processor_, &bytes, text.data())));
    if (!IsUuid(text.data())) {
      return Error{Code::kCorrupt, who_ + ": amdsmi_get_gpu_device_uuid answered with no UUID"};
    }
    gpu_.uuid = std::string("GPU-") + text.data();
    who_ += " (" + gpu_.uuid + ")";
    return {};
  }

  std::string AddressText() const {
    std::array<char, 32> text{};
    (void)std::snprintf(
        text.data(), text.size(), "%08X:%02X:%02X.%X", static_cast<unsigned>(address_ >> 16U),
        static_cast<unsigned>(address_ >> 8U) & 0xffU,
        static_cast<unsigned>(address_ >> 3U) & 0x1fU, static_cast<unsigned>(address_) & 7U);
    return text.data();
  }

  Result<std::uint64_t> Bytes(const char* function, Return (*call)(amdsmi::Processor, std::uint32_t,
                                                                   std::uint64_t*)) const {
    std::uint64_t bytes = 0;
    RINGFENCE_TRY(Check(function, call(processor_, amdsmi::kMemoryVram, &bytes)));
    return bytes;
  }

  Status ReadEcc() {
    std::uint64_t blocks = 0;
    const Return code = api_.amdsmi_get_gpu_ecc_enabled(processor_, &blocks);
    if (Unsupported(code)) {
      return {};
    }
    RINGFENCE_TRY(Check("amdsmi_get_gpu_ecc_enabled", code));
    gpu_.ecc_enabled = (blocks & amdsmi::kBlockMemory) != 0;
    return {};
  }

  // Empty where the card cannot be partitioned.
  Result<std::string> Partition(const char* function,
                                Return (*call)(amdsmi::Processor, char*, std::uint32_t)) const {
    std::array<char, amdsmi::kPartitionBytes + 1> text{};
    const Return code = call(processor_, text.data(), amdsmi::kPartitionBytes);
    if (Unsupported(code)) {
      return std::string();
    }
    RINGFENCE_TRY(Check(function, code));
    const std::string_view view(text.data());
    if (!std::all_of(view.begin(), view.end(), [](char c) { return c > 0x20 && c < 0x7f; })) {
      return Error{Code::kCorrupt, who_ + ": " + function + " answered with unprintable text"};
    }
    return std::string(view);
  }

  const amdsmi::Api& api_;
  amdsmi::Processor processor_;
  amdsmi::Bdf address_;
  std::string who_;
  Gpu gpu_;
};

}  // namespace

Result<AmdPart> ReadAmd(const std::string& driver_root, const Library& library) {
  const amdsmi::Api api = LoadAmdSmi(library);
  RINGFENCE_TRY(RequireFunctions(api, library.path()));
  AmdPart part;
  part.simulated = library.simulated();
  part.driver.library_path = library.path();
  RINGFENCE_ASSIGN(part.driver.library_digest, library.FileDigest());
  RINGFENCE_ASSIGN(part.driver.version, AmdDriverVersion(driver_root));
  RINGFENCE_ASSIGN(const Session session, Session::Start(api));
  RINGFENCE_ASSIGN(const std::vector<amdsmi::Processor> processors, ListGpus(api));
  constexpr amdsmi::Bdf kFunction = 7;
  std::set<amdsmi::Bdf> seen;
  for (const amdsmi::Processor processor : processors) {
    amdsmi::Bdf address = 0;
    RINGFENCE_TRY(Must(api, "", "amdsmi_get_gpu_device_bdf",
                       api.amdsmi_get_gpu_device_bdf(processor, &address)));
    // A card's partitions have its address, with a function of their own: it is listed once.
    address &= ~kFunction;
    if (!seen.insert(address).second) {
      continue;
    }
    Result<AmdCard> card = ReadAmdCard(driver_root, AmdFolderName(address));
    if (!card.has_value() && card.error().code == Code::kNotFound) {
      continue;
    }
    if (!card.has_value()) {
      return Prefix("GPU " + AmdFolderName(address), card.error());
    }
    RINGFENCE_ASSIGN(Gpu gpu, AmdReader(api, processor, address).Read(std::move(*card)));
    gpu.index = static_cast<std::uint32_t>(part.gpus.size());
    part.gpus.push_back(std::move(gpu));
  }
  return part;
}

}  // namespace ringfence::gpu
