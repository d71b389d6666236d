// Goal: a card whose memory is not what its driver says is found out.
// Method: a driver of our own whose kernels work on this process's memory, and which gives the same
// memory out twice, drops writes, or forgets to run a kernel.

#include "gpu/card.h"

#include <gtest/gtest.h>

#include <cstring>
#include <map>
#include <memory>

#include "gpu/scrub_kernels.h"

namespace ringfence::gpu {
namespace {

constexpr std::size_t kPiece = std::size_t{64} << 10U;

struct Faults {
  bool gives_out_twice = false;  // two pieces of the card are one and the same
  bool drops_writes = false;     // says that it has written, and has not
  int forgets_launch = -1;       // this one, counted from 0
  std::size_t pieces = 4;
};

class FakeDriver final : public CardDriver {
 public:
  explicit FakeDriver(Faults faults) : faults_(faults), memory_(faults.pieces * kPiece) {
    facts_ = {2, 1024, 2048, 1024, 262144};
  }
  Status Open() override { return {}; }
  Status Close() override { return {}; }
  const CardFacts& facts() const override { return facts_; }
  Result<bool> HoldsRegisters() override { return true; }
  Result<std::size_t> FreeBytes() override { return kPiece; }
  Result<std::optional<CardPointer>> Allocate(std::size_t) override {
    if (given_ == faults_.pieces) {
      return std::optional<CardPointer>();
    }
    const std::size_t piece = faults_.gives_out_twice && given_ == 3 ? 1 : given_;
    ++given_;
    return std::optional(reinterpret_cast<CardPointer>(memory_.data() + piece * kPiece));
  }
  Status Free(CardPointer) override {
    --given_;
    return {};
  }
  Result<void*> AllocateHost(std::size_t bytes) override {
    host_ = std::make_unique<std::byte[]>(bytes);
    return static_cast<void*>(host_.get());
  }
  Status FreeHost(void*) override { return {}; }
  Status Wait() override { return {}; }
  Status Zero(CardPointer, std::size_t) override { return {}; }

  Status Start(const Launch& launch) override {
    if (launches_++ == faults_.forgets_launch) {
      return {};
    }
    const auto argument = [&]<typename Value>(std::size_t index, Value& into) {
      std::memcpy(&into, launch.arguments[index], sizeof into);
    };
    kernels::Vector* memory = nullptr;
    std::uint64_t vectors = 0;
    std::uint64_t first = 0;
    std::uint64_t seed = 0;
    std::uint32_t mask = 0;
    kernels::Tally* tally = nullptr;
    argument(0, memory);
    argument(1, vectors);
    argument(2, first);
    argument(3, seed);
    argument(4, mask);
    argument(5, tally);
    for (std::uint64_t i = 0; i < vectors; ++i) {
      kernels::Vector value = kernels::PatternAt(first + i, seed);
      for (std::size_t word = 0; word < 4; ++word) {
        value.word[word] &= mask;
        if (launch.kernel == Kernel::kFill && !faults_.drops_writes) {
          memory[i].word[word] = value.word[word];
        } else if (launch.kernel == Kernel::kCount) {
          tally->wrong_bytes += kernels::NonZeroBytes(memory[i].word[word] ^ value.word[word]);
        }
      }
    }
    tally->vectors += vectors;
    return {};
  }

 private:
  Faults faults_;
  std::vector<std::byte> memory_;
  std::unique_ptr<std::byte[]> host_;
  CardFacts facts_;
  std::size_t given_ = 0;
  int launches_ = 0;
};

Result<std::uint64_t> FillAndCount(Faults faults, Content content) {
  FakeDriver driver(faults);
  Card card(driver, "GPU-1", 42);
  RINGFENCE_TRY(card.Open());
  RINGFENCE_TRY(card.TakeAll());
  EXPECT_EQ(card.taken_bytes(), faults.pieces * kPiece);
  RINGFENCE_TRY(card.Fill(content));
  auto wrong = card.Count(content);
  RINGFENCE_TRY(card.Release());
  return wrong;
}

TEST(Card, KeepsWhatIsWritten) {
  EXPECT_EQ(*FillAndCount({}, Content::kPattern), 0U);
  EXPECT_EQ(*FillAndCount({}, Content::kZeros), 0U);
}

TEST(Card, MemoryThatIsGivenOutTwiceIsNoticed) {
  const auto wrong = FillAndCount({.gives_out_twice = true}, Content::kPattern);
  ASSERT_TRUE(wrong.has_value()) << wrong.error().message;
  EXPECT_GT(*wrong, kPiece / 2);
  EXPECT_EQ(*FillAndCount({.gives_out_twice = true}, Content::kZeros), 0U)
      << "why zeros are not enough";
}

TEST(Card, MemoryThatIsNeverWrittenIsNoticed) {
  EXPECT_GT(*FillAndCount({.drops_writes = true}, Content::kPattern), kPiece);
}

TEST(Card, ALaunchThatNeverRanIsAnError) {
  for (int launch = 0; launch < 8; ++launch) {
    const auto wrong = FillAndCount({.forgets_launch = launch}, Content::kPattern);
    ASSERT_FALSE(wrong.has_value()) << launch;
    EXPECT_EQ(wrong.error().code, Code::kCorrupt);
    EXPECT_NE(wrong.error().message.find("196608 of 262144 bytes"), std::string::npos)
        << wrong.error().message;
  }
  EXPECT_TRUE(FillAndCount({.forgets_launch = 8}, Content::kPattern).has_value());
}

}  // namespace
}  // namespace ringfence::gpu
