// The attack on on-chip shared memory while the neighbour is alive: its kernels leave what they had
// in the multiprocessors, and ours read what they find before they write anything. Separate
// contexts are kept apart by the driver; clients of one MPS daemon share a context, and are not.

#include <algorithm>
#include <chrono>
#include <cstring>
#include <vector>

#include "cuda.h"
#include "gpu/probe_kernels.h"
#include "util.h"

namespace ringfence::probe {
namespace {

using Clock = std::chrono::steady_clock;
namespace kernels = gpu::kernels;

// Written by hand. Stores and loads are volatile, so that the compiler leaves none of them out.
constexpr const char* kImage = R"(.version 7.0
.target sm_80
.address_size 64

.extern .shared .align 16 .b8 cells[];

.visible .entry ringfence_probe_plant(
	.param .u64 plant_secret,
	.param .u32 plant_words
)
.maxntid 256, 1, 1
{
	.reg .pred 	%p<2>;
	.reg .b32 	%r<10>;
	.reg .b64 	%rd<5>;

	ld.param.u64 	%rd1, [plant_secret];
	ld.param.u32 	%r1, [plant_words];
	cvta.to.global.u64 	%rd2, %rd1;
	mov.u32 	%r2, %tid.x;
	mov.u32 	%r3, %ntid.x;
	and.b32 	%r4, %r2, 7;
	mul.wide.u32 	%rd3, %r4, 4;
	add.s64 	%rd4, %rd2, %rd3;
	ld.global.u32 	%r5, [%rd4];
	mov.u32 	%r6, cells;
$L_plant_next:
	setp.ge.u32 	%p1, %r2, %r1;
	@%p1 bra 	$L_plant_done;
	shl.b32 	%r7, %r2, 2;
	add.s32 	%r8, %r6, %r7;
	st.volatile.shared.u32 	[%r8], %r5;
	add.s32 	%r2, %r2, %r3;
	bra.uni 	$L_plant_next;
$L_plant_done:
	ret;
}

.visible .entry ringfence_probe_spy(
	.param .u64 spy_out,
	.param .u32 spy_words
)
.maxntid 256, 1, 1
{
	.reg .pred 	%p<2>;
	.reg .b32 	%r<10>;
	.reg .b64 	%rd<8>;

	ld.param.u64 	%rd1, [spy_out];
	ld.param.u32 	%r1, [spy_words];
	cvta.to.global.u64 	%rd2, %rd1;
	mov.u32 	%r2, %tid.x;
	mov.u32 	%r3, %ntid.x;
	mov.u32 	%r4, %ctaid.x;
	mul.wide.u32 	%rd3, %r4, %r1;
	shl.b64 	%rd4, %rd3, 2;
	add.s64 	%rd5, %rd2, %rd4;
	mov.u32 	%r5, cells;
$L_spy_next:
	setp.ge.u32 	%p1, %r2, %r1;
	@%p1 bra 	$L_spy_done;
	shl.b32 	%r6, %r2, 2;
	add.s32 	%r7, %r5, %r6;
	ld.volatile.shared.u32 	%r8, [%r7];
	mul.wide.u32 	%rd6, %r2, 4;
	add.s64 	%rd7, %rd5, %rd6;
	st.global.u32 	[%rd7], %r8;
	add.s32 	%r2, %r2, %r3;
	bra.uni 	$L_spy_next;
$L_spy_done:
	ret;
}
)";

constexpr std::uint32_t kFewWords = 1024;  // of a block, in most launches; every 16th reads all
constexpr unsigned kAllEvery = 16;
constexpr std::int64_t kMillisecondsDefault = 3000;
constexpr std::size_t kSecretBytes = kernels::kSecretWords * sizeof(std::uint32_t);
constexpr std::size_t kHashesMax = 4096;  // of different chunks, in all

// A card with one of the two kernels loaded, one block of it for each multiprocessor.
struct Chip {
  Card card;
  cuda::Function function = nullptr;
  unsigned blocks = 0;
  unsigned shared_bytes = 0;
  cuda::DevicePointer memory = 0;

  bool Open(const char* kernel) {
    cuda::Module module = nullptr;
    int count = 0;
    int bytes = 0;
    if (!card.Open()) {
      return false;
    }
    const cuda::Api& api = card.api();
    if (!card.Try("cuDeviceGetAttribute",
                  api.cuDeviceGetAttribute(&count, cuda::kMultiprocessors, card.device())) ||
        !card.Try(
            "cuDeviceGetAttribute",
            api.cuDeviceGetAttribute(&bytes, cuda::kSharedBytesPerBlockOptIn, card.device())) ||
        !card.Try("cuModuleLoadData", api.cuModuleLoadData(&module, kImage)) ||
        !card.Try("cuModuleGetFunction", api.cuModuleGetFunction(&function, module, kernel)) ||
        !card.Try("cuFuncSetAttribute",
                  api.cuFuncSetAttribute(function, cuda::kDynamicSharedBytesMax, bytes))) {
      return false;
    }
    blocks = static_cast<unsigned>(count);
    shared_bytes =
        static_cast<unsigned>(static_cast<unsigned>(bytes) / kSecretBytes * kSecretBytes);
    return true;
  }

  bool Launch(std::uint32_t words) {
    void* arguments[] = {&memory, &words};
    return card.Try("cuLaunchKernel",
                    card.api().cuLaunchKernel(function, blocks, 1, 1, kernels::kProbeThreads, 1, 1,
                                              shared_bytes, nullptr, arguments, nullptr)) &&
           card.Try("cuCtxSynchronize", card.api().cuCtxSynchronize());
  }
};

void PlantOnChip(Victim& victim) {
  auto* const chip = new Chip;  // for as long as we live
  const cuda::Api& api = chip->card.api();
  if (!chip->Open(kernels::kPlantName) ||
      !chip->card.Try("cuMemAlloc_v2", api.cuMemAlloc_v2(&chip->memory, kSecretBytes)) ||
      !chip->card.Try("cuMemcpyHtoD_v2",
                      api.cuMemcpyHtoD_v2(chip->memory, victim.secret.data(), kSecretBytes)) ||
      !chip->Launch(chip->shared_bytes / 4)) {
    victim.facts["not_planted"] = chip->card.error();
    return;
  }
  victim.facts["multiprocessors"] = std::to_string(chip->blocks);
  victim.facts["shared_bytes"] = std::to_string(chip->shared_bytes);
  victim.state = chip;
  victim.busy = [](Victim& self) {
    auto* const own = static_cast<Chip*>(self.state);
    if (!own->Launch(own->shared_bytes / 4)) {
      self.broken = own->card.error();
    }
  };
}

// What was read: how many words in all, and how many of them were the secret's.
struct Tally {
  std::uint64_t launches = 0;
  std::uint64_t words = 0;
  std::uint64_t not_zero_words = 0;
  std::uint64_t secret_words = 0;
};

struct Search {
  const Input* input;
  std::string secret;
  std::string last;
  std::size_t hashes = 0;

  void Look(const std::vector<char>& bytes, Tally& tally) {
    tally.words += bytes.size() / 4;
    for (std::size_t at = 0; at + kSecretBytes <= bytes.size(); at += kSecretBytes) {
      const std::string_view chunk(bytes.data() + at, kSecretBytes);
      if (std::all_of(chunk.begin(), chunk.end(), [](char c) { return c == 0; })) {
        continue;
      }
      tally.not_zero_words += kernels::kSecretWords;
      if (secret.empty() && chunk != last && hashes < kHashesMax) {
        ++hashes;
        last = chunk;
        secret = input->IsSecret(chunk) ? last : "";
      }
      tally.secret_words += chunk == secret ? kernels::kSecretWords : 0;
    }
  }
};

Outcome AttackChip(const Input& input) {
  Chip chip;
  if (input.Get("digest").empty()) {
    return CannotTry("the digest of the victim's secret was not told");
  }
  if (!input.Get("not_planted").empty()) {
    return CannotTry("the victim could not plant: " + input.Get("not_planted"));
  }
  if (!chip.Open(kernels::kSpyName)) {
    return CannotTry(chip.card.error());
  }
  const cuda::Api& api = chip.card.api();
  const std::size_t all_bytes = std::size_t{chip.shared_bytes} * chip.blocks;
  if (!chip.card.Try("cuMemAlloc_v2", api.cuMemAlloc_v2(&chip.memory, all_bytes))) {
    return CannotTry(chip.card.error());
  }
  const std::int64_t told = input.Number("milliseconds");
  const auto time = std::chrono::milliseconds(told > 0 ? told : kMillisecondsDefault);
  Tally tally;
  Search search{&input, {}, {}};
  const Clock::time_point start = Clock::now();
  while (Clock::now() - start < time) {
    const std::uint32_t words = tally.launches % kAllEvery == 0
                                    ? chip.shared_bytes / 4
                                    : std::min(kFewWords, chip.shared_bytes / 4);
    std::vector<char> bytes(std::size_t{words} * 4 * chip.blocks);
    if (!chip.Launch(words) ||
        !chip.card.Try("cuMemcpyDtoH_v2",
                       api.cuMemcpyDtoH_v2(bytes.data(), chip.memory, bytes.size()))) {
      return CannotTry(chip.card.error());
    }
    search.Look(bytes, tally);
    ++tally.launches;
  }
  const std::string words = std::to_string(tally.launches) + " launches read " +
                            std::to_string(tally.words) + " words, " +
                            std::to_string(tally.not_zero_words) + " were not zero, " +
                            std::to_string(tally.secret_words) + " were the neighbour's";
  if (tally.secret_words == 0 && search.hashes == kHashesMax) {
    return CannotTry(words + "; too many different ones to look at them all");
  }
  return tally.secret_words > 0 ? Leaked(tally.secret_words * 4, words) : Held(words);
}

constexpr Code kCodes[] = {{"shared-memory", AttackChip, PlantOnChip}};

}  // namespace

std::span<const Code> ChipAttacks() { return kCodes; }

}  // namespace ringfence::probe
