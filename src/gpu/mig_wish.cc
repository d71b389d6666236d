// Layouts as text, and the named strategies; gpu/mig_layout.h.

#include <algorithm>
#include <charconv>

#include "gpu/mig_layout.h"

namespace ringfence::gpu {
namespace {

// Walks over one layout; what is wrong is said with its column.
class Walker {
 public:
  explicit Walker(std::string_view text) : text_(text) {}

  bool done() const { return at_ == text_.size(); }
  char here() const { return done() ? '\0' : text_[at_]; }
  void Next() { ++at_; }
  void SkipBlanks() {
    while (here() == ' ' || here() == '\t') {
      Next();
    }
  }
  std::string_view Profile() {
    const std::size_t from = at_;
    while ((here() >= 'a' && here() <= 'z') || (here() >= '0' && here() <= '9') || here() == '.' ||
           here() == '+' || here() == '-') {
      Next();
    }
    return text_.substr(from, at_ - from);
  }
  Result<std::uint32_t> Number(std::string_view what, std::uint32_t least, std::uint32_t most) {
    const std::size_t from = at_;
    while (here() >= '0' && here() <= '9') {
      Next();
    }
    std::uint32_t value = 0;
    const auto [end, error] = std::from_chars(text_.data() + from, text_.data() + at_, value);
    if (from == at_ || error != std::errc{} || end != text_.data() + at_ || value < least ||
        value > most) {
      at_ = from;
      return Wrong("expected " + std::string(what) + " from " + std::to_string(least) + " to " +
                   std::to_string(most));
    }
    return value;
  }
  Error Wrong(const std::string& what) const {
    return Error{Code::kInvalidArgument, "layout: column " + std::to_string(at_ + 1) + ": " + what,
                 "write it like \"1g.18gb x3, 4g.71gb\"; \"@4\" fixes the first memory slice",
                 "layout"};
  }

 private:
  std::string_view text_;
  std::size_t at_ = 0;
};

}  // namespace

Result<std::vector<MigWish>> ParseMigLayout(std::string_view text) {
  if (text.size() > kMigLayoutBytesMax) {
    return Error{Code::kInvalidArgument,
                 "layout: longer than " + std::to_string(kMigLayoutBytesMax) + " bytes",
                 {},
                 "layout"};
  }
  std::vector<MigWish> wishes;
  Walker walker(text);
  for (;;) {
    walker.SkipBlanks();
    MigWish wish;
    wish.profile = walker.Profile();
    if (wish.profile.empty()) {
      return walker.Wrong(walker.done() ? "a profile is missing at the end"
                                        : "expected a profile such as 1g.18gb");
    }
    walker.SkipBlanks();
    if (walker.here() == 'x' || walker.here() == '*') {
      walker.Next();
      walker.SkipBlanks();
      RINGFENCE_ASSIGN(wish.count, walker.Number("how many,", 1, 64));
      walker.SkipBlanks();
    }
    if (walker.here() == '@') {
      if (wish.count != 1) {
        return walker.Wrong("only one instance can be at a fixed place");
      }
      walker.Next();
      RINGFENCE_ASSIGN(const std::uint32_t start,
                       walker.Number("a memory slice", 0, kMigSlicesMax - 1));
      wish.start = start;
      walker.SkipBlanks();
    }
    wishes.push_back(std::move(wish));
    if (walker.done()) {
      return wishes;
    }
    if (walker.here() != ',') {
      return walker.Wrong("expected a comma");
    }
    walker.Next();
  }
}

std::string FormatMigLayout(std::span<const MigWish> wishes) {
  std::string text;
  for (const MigWish& wish : wishes) {
    text += (text.empty() ? "" : ", ") + wish.profile;
    if (wish.count != 1) {
      text += " x" + std::to_string(wish.count);
    }
    if (wish.start) {
      text += "@" + std::to_string(*wish.start);
    }
  }
  return text;
}

std::string_view Name(MigStrategy strategy) {
  switch (strategy) {
    case MigStrategy::kDevelopment:
      return "development";
    case MigStrategy::kInference:
      return "inference";
    case MigStrategy::kMultiTenant:
      return "multi-tenant";
  }
  return "";
}

Result<MigStrategy> ParseMigStrategy(std::string_view text) {
  for (const MigStrategy strategy :
       {MigStrategy::kDevelopment, MigStrategy::kInference, MigStrategy::kMultiTenant}) {
    if (text == Name(strategy)) {
      return strategy;
    }
  }
  return Error{Code::kInvalidArgument, "no strategy \"" + std::string(text) + "\"",
               "there are development (many small), inference (few large) and multi-tenant "
               "(balanced)",
               "strategy"};
}

std::vector<MigWish> WishesOf(MigStrategy strategy, const MigBoard& board) {
  const auto named = [&](std::uint32_t compute, std::uint32_t count) {
    // The one with the least memory of so many compute slices, without media extension.
    const MigProfile* best = nullptr;
    for (const MigProfile& profile : board.profiles) {
      if (profile.compute_slices == compute && !profile.media &&
          (best == nullptr || profile.slices < best->slices)) {
        best = &profile;
      }
    }
    return MigWish{best->name, count, {}};
  };
  const bool seven = board.compute_slices == 7;
  switch (strategy) {
    case MigStrategy::kDevelopment:
      return {named(1, board.compute_slices)};
    case MigStrategy::kInference:
      return seven ? std::vector<MigWish>{named(4, 1), named(3, 1)}
                   : std::vector<MigWish>{named(2, 2)};
    case MigStrategy::kMultiTenant:
      return seven ? std::vector<MigWish>{named(3, 1), named(2, 1), named(1, 2)}
                   : std::vector<MigWish>{named(2, 1), named(1, 2)};
  }
  return {};
}

}  // namespace ringfence::gpu
