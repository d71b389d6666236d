// Attacks on GPUs: cards of other leases that the driver's own libraries show, and what an earlier
// lease left in a card's memory.

#include <algorithm>
#include <chrono>
#include <cstring>
#include <vector>

#include "cuda.h"
#include "util.h"

namespace ringfence::probe {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::size_t kSecretBytes = 32;
constexpr std::size_t kPieceBytes = std::size_t{16} << 20U;
constexpr std::size_t kBlockBytesMost = std::size_t{256} << 20U;
constexpr std::size_t kBlockBytesLeast = std::size_t{1} << 20U;
constexpr std::size_t kBlocksMax = 4096;
constexpr std::size_t kHashesMax = 1U << 16U;  // of chunks that are not zero
constexpr auto kReadTimeMax = std::chrono::seconds(60);

// The lease has one card.
Outcome Judge(const Input& input, const std::vector<std::string>& seen) {
  const std::string wanted = input.Get("victim_gpu");
  if (std::find(seen.begin(), seen.end(), wanted) != seen.end()) {
    return Leaked(0, "the neighbour's " + wanted + " is shown");
  }
  return seen.size() > 1
             ? Leaked(0, std::to_string(seen.size()) + " cards are shown to a lease of one")
             : Held("the lease's own card is shown, and no other");
}

Outcome AttackCudaView(const Input& input) {
  cuda::Api api;
  std::string error;
  if (!LoadCuda(api, error)) {
    return CannotTry(error);
  }
  int count = 0;
  (void)api.cuDeviceGetCount(&count);
  std::vector<std::string> seen;
  for (int i = 0; i < count; ++i) {
    cuda::Device device = 0;
    cuda::Uuid uuid{};
    if (api.cuDeviceGet(&device, i) == cuda::kSuccess &&
        api.cuDeviceGetUuid_v2(&uuid, device) == cuda::kSuccess) {
      seen.push_back(UuidText(uuid));
    }
  }
  return Judge(input, seen);
}

Outcome AttackNvmlView(const Input& input) {
  nvml::Api api;
  std::string error;
  if (!LoadNvml(api, error)) {
    return CannotTry(error);
  }
  unsigned int count = 0;
  (void)api.nvmlDeviceGetCount_v2(&count);
  std::vector<std::string> seen;
  for (unsigned int i = 0; i < count; ++i) {
    nvml::Device device = nullptr;
    char uuid[nvml::kUuidBytes] = {};
    if (api.nvmlDeviceGetHandleByIndex_v2(i, &device) == nvml::kSuccess &&
        api.nvmlDeviceGetUUID(device, uuid, sizeof uuid) == nvml::kSuccess) {
      seen.emplace_back(uuid);
    }
  }
  return Judge(input, seen);
}

struct Block {
  cuda::DevicePointer pointer = 0;
  std::size_t bytes = 0;
};

// All that the driver gives out, in ever smaller blocks.
std::vector<Block> TakeAll(const Card& card) {
  std::vector<Block> blocks;
  std::size_t bytes = kBlockBytesMost;
  while (bytes >= kBlockBytesLeast && blocks.size() < kBlocksMax) {
    Block block{0, bytes};
    if (card.api().cuMemAlloc_v2(&block.pointer, bytes) == cuda::kSuccess) {
      blocks.push_back(block);
    } else {
      bytes /= 2;
    }
  }
  return blocks;
}

// The secret again and again, in all of the memory; doubled on the card.
void PlantInCard(Victim& victim) {
  auto* const card = new Card;  // for as long as we live
  if (!card->Open()) {
    victim.facts["not_planted"] = card->error();
    return;
  }
  std::uint64_t planted = 0;
  for (const Block& block : TakeAll(*card)) {
    std::string first;
    while (first.size() < kBlockBytesLeast) {
      first += victim.secret;
    }
    std::size_t done = first.size();
    bool well = card->Try("cuMemcpyHtoD_v2",
                          card->api().cuMemcpyHtoD_v2(block.pointer, first.data(), done));
    while (well && done < block.bytes) {
      const std::size_t more = std::min(done, block.bytes - done);
      well = card->Try("cuMemcpyDtoD_v2",
                       card->api().cuMemcpyDtoD_v2(block.pointer + done, block.pointer, more));
      done += more;
    }
    planted += well ? block.bytes : 0;
  }
  (void)card->Try("cuCtxSynchronize", card->api().cuCtxSynchronize());
  victim.facts["planted_bytes"] = std::to_string(planted);
}

// Counts chunks that are the secret, once one has been found whose digest is its.
class Finder {
 public:
  explicit Finder(const Input& input) : input_(&input) {}
  void Look(const char* bytes, std::size_t size) {
    static const char kZeros[4096] = {};
    for (std::size_t at = 0; at + kSecretBytes <= size; at += kSecretBytes) {
      if (at % sizeof kZeros == 0 && at + sizeof kZeros <= size &&
          std::memcmp(bytes + at, kZeros, sizeof kZeros) == 0) {
        at += sizeof kZeros - kSecretBytes;
        continue;
      }
      Chunk({bytes + at, kSecretBytes});
    }
  }
  std::uint64_t found() const { return found_; }
  std::uint64_t not_zero() const { return not_zero_; }
  // There was too much else to look at all of it.
  bool gave_up() const { return found_ == 0 && hashes_ == kHashesMax; }

 private:
  void Chunk(std::string_view chunk) {
    if (chunk ==
        std::string_view("\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0",
                         kSecretBytes)) {
      return;
    }
    not_zero_ += kSecretBytes;
    if (secret_.empty() && chunk != last_ && hashes_ < kHashesMax) {
      ++hashes_;
      last_ = chunk;
      secret_ = input_->IsSecret(chunk) ? std::string(chunk) : "";
    }
    found_ += chunk == secret_ ? kSecretBytes : 0;
  }

  const Input* input_;
  std::string last_;
  std::string secret_;
  std::size_t hashes_ = 0;
  std::uint64_t found_ = 0;
  std::uint64_t not_zero_ = 0;
};

Outcome AttackLeftoverMemory(const Input& input) {
  Card card;
  if (!card.Open()) {
    return CannotTry(card.error());
  }
  Finder finder(input);
  std::uint64_t read = 0;
  std::vector<char> piece(kPieceBytes);
  const Clock::time_point start = Clock::now();
  for (const Block& block : TakeAll(card)) {
    for (std::size_t at = 0; at < block.bytes && Clock::now() - start < kReadTimeMax;
         at += kPieceBytes) {
      const std::size_t size = std::min(kPieceBytes, block.bytes - at);
      if (!card.Try("cuMemcpyDtoH_v2",
                    card.api().cuMemcpyDtoH_v2(piece.data(), block.pointer + at, size))) {
        return CannotTry(card.error());
      }
      finder.Look(piece.data(), size);
      read += size;
    }
  }
  const std::string words = std::to_string(read) + " bytes of the card were read, " +
                            std::to_string(finder.not_zero()) + " were not zero";
  if (finder.gave_up()) {
    return CannotTry(words + ", too many different ones to look at them all");
  }
  return finder.found() > 0 ? Leaked(finder.found(), words + ", and the secret is among them")
                            : Held(words + ", and the secret is not among them");
}

constexpr Code kCodes[] = {
    {"cuda-view", AttackCudaView},
    {"nvml-view", AttackNvmlView},
    {"leftover-memory", AttackLeftoverMemory, PlantInCard},
};

}  // namespace

std::span<const Code> GpuAttacks() { return kCodes; }

}  // namespace ringfence::probe
