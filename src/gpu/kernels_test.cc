// Goal: the PTX that is built in is what nvcc made of the source beside it, for drivers from R450
// on; its patterns can be told apart and its counting counts. Method: the digests in the PTX's head
// against the files; patterns and counts by plain arithmetic. `scripts/kernels.sh check` compiles
// again, where there is an nvcc.

#include <gtest/gtest.h>

#include <regex>
#include <set>

#include "base/encoding.h"
#include "crypto/sha256.h"
#include "gpu/kernel_image.h"
#include "gpu/scrub_kernels.h"
#include "os/file.h"

namespace ringfence::gpu {
namespace {

constexpr std::size_t kFileBytesMax = std::size_t{4} << 20U;

std::string File(const std::string& name) {
  return *os::ReadText(RINGFENCE_SOURCE_DIR "/src/gpu/" + name, kFileBytesMax);
}

std::string DigestOf(std::string_view text) { return Hex(crypto::Sha256(AsBytes(text))); }

// The head is comments; the body begins with the version.
std::string_view Body(std::string_view ptx) { return ptx.substr(ptx.find("\n.version") + 1); }

std::vector<std::string> Lines(const std::string& text, const std::string& start) {
  std::vector<std::string> found;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with(start)) {
      found.push_back(line);
    }
  }
  return found;
}

std::set<std::string> Matches(const std::string& text, const std::string& expression) {
  const std::regex pattern(expression);
  std::set<std::string> found;
  for (auto at = std::sregex_iterator(text.begin(), text.end(), pattern);
       at != std::sregex_iterator(); ++at) {
    found.insert((*at)[1]);
  }
  return found;
}

TEST(Kernels, AreWhatIsBuiltIn) {
  EXPECT_TRUE(File("kernels/scrub.ptx") == KernelImage()) << "built before scrub.ptx was changed";
  EXPECT_EQ(KernelDigest(), "sha256:" + DigestOf(File("kernels/scrub.ptx")));
}

TEST(Kernels, AreForEveryDriverFromR450On) {
  const std::string ptx = File("kernels/scrub.ptx");
  EXPECT_EQ(Lines(ptx, ".version"), std::vector<std::string>{".version 7.0"});
  EXPECT_EQ(Lines(ptx, ".target"), std::vector<std::string>{".target sm_80"});
  EXPECT_EQ(Lines(ptx, ".address_size"), std::vector<std::string>{".address_size 64"});
}

TEST(Kernels, BelongToTheirSource) {
  const std::string ptx = File("kernels/scrub.ptx");
  const std::string hint = "the source changed: run `make kernels` where there is an nvcc";
  for (const std::string source : {"kernels/scrub.cu", "scrub_kernels.h"}) {
    const std::string line = "// gpu/" + source + " sha256:" + DigestOf(File(source));
    EXPECT_EQ(Lines(ptx, "// gpu/" + source), std::vector<std::string>{line}) << hint;
  }
  EXPECT_EQ(Lines(ptx, "// body "),
            std::vector<std::string>{"// body sha256:" + DigestOf(Body(ptx))})
      << "scrub.ptx was changed by hand";
  const std::set<std::string> wanted = {kernels::kFillName, kernels::kCountName, kernels::kReadName,
                                        kernels::kOnChipName};
  EXPECT_EQ(Matches(ptx, R"(\.visible \.entry (\w+)\()"), wanted);
  EXPECT_EQ(Matches(File("kernels/scrub.cu"), R"((ringfence_\w+)\()"), wanted);
}

TEST(Kernels, NoTwoPlacesHaveTheSamePattern) {
  constexpr std::uint64_t kSeed = 0x0123456789abcdefULL;
  const auto key = [](const kernels::Vector& vector) {
    return (std::uint64_t{vector.word[0]} << 32U) | vector.word[1];
  };
  std::set<std::uint64_t> seen;
  std::size_t places = 0;
  // Neighbours, and places that share their lower 32 bits.
  for (const std::uint64_t base : {0ULL, 1ULL << 32U, 2ULL << 32U, 0xffffff00ULL, 1ULL << 40U}) {
    for (std::uint64_t i = 0; i < 2000; ++i) {
      seen.insert(key(kernels::PatternAt(base + 512 * (base % 7) + i, kSeed)));
      ++places;
    }
  }
  EXPECT_EQ(seen.size(), places);
  EXPECT_NE(key(kernels::PatternAt(1, kSeed)), key(kernels::PatternAt(1, kSeed + 1)));
  const kernels::Vector vector = kernels::PatternAt(5, kSeed);
  EXPECT_EQ(vector.word[0] ^ vector.word[2], 0xffffffffU);
  EXPECT_EQ(vector.word[1] ^ vector.word[3], 0xffffffffU);
}

TEST(Kernels, CountBytes) {
  for (std::uint32_t bits = 0; bits < 16; ++bits) {
    for (const std::uint32_t byte : {0x01U, 0x80U, 0x10U, 0xffU, 0x0cU}) {
      std::uint32_t word = 0;
      std::uint32_t count = 0;
      for (std::uint32_t i = 0; i < 4; ++i) {
        if (((bits >> i) & 1U) != 0) {
          word |= byte << (8 * i);
          ++count;
        }
      }
      EXPECT_EQ(kernels::NonZeroBytes(word), count) << std::hex << word;
    }
  }
}

}  // namespace
}  // namespace ringfence::gpu
