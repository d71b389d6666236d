#pragma once

// What a Matcher is made of. Internal to sigma/.

#include <re2/re2.h>

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "sigma/gram_index.h"
#include "sigma/matcher.h"

namespace ringfence::sigma {

inline constexpr std::uint32_t kNone = 0xffffffffU;

// A test, once for all rules. Eager ones are found while values are scanned, lazy ones are asked
// when a rule wants to know.
struct Atom {
  Test test;
  std::uint32_t field = kNone;  // kNone: any value
  std::uint32_t other = kNone;
  bool eager = false;
  std::unique_ptr<RE2> regex;
  std::size_t bytes_least = 0;        // of a value that it matches
  std::vector<std::uint32_t> guards;  // eager atoms of which one is true when this one is; or none
};

// Literals that must equal a whole value.
class ExactIndex {
 public:
  void Add(std::string_view text, std::uint32_t atom);
  void Freeze();  // before the first Find
  // kNone when there is none.
  std::uint32_t Find(std::string_view text) const {
    if ((lengths_ >> (text.size() < 63 ? text.size() : 63U) & 1U) == 0) {
      return kNone;
    }
    const auto found = atoms_.find(text);
    return found == atoms_.end() ? kNone : found->second;
  }

 private:
  std::uint64_t lengths_ = 0;  // bit n: one of n bytes is there
  std::vector<std::pair<std::string, std::uint32_t>> texts_;
  std::unordered_map<std::string_view, std::uint32_t> atoms_;
};

struct FieldPlan {
  std::string name;
  ExactIndex exact;
  GramIndex grams;
  std::vector<std::uint32_t> triggered;  // rules to look at when the field is there
  bool needed = false;                   // some lazy atom reads its values
};

// A rule's condition, flat. kAll, kAny: `count` children from `first` in Plan::children.
struct Step {
  Expression::Op op = Expression::Op::kTest;
  std::uint32_t first = 0;  // kTest: the atom; kNot: the step
  std::uint32_t count = 0;
  std::uint32_t group = kNone;  // kAny of eager atoms only: true when one of the group's was found
  std::uint32_t gate = kNone;   // a field without which it is false
};

// What finding an atom does: into Plan::groups and Plan::triggers.
struct AtomUses {
  std::uint32_t group_first = 0;
  std::uint32_t group_end = 0;
  std::uint32_t trigger_first = 0;
  std::uint32_t trigger_end = 0;
};

struct Matcher::Plan {
  std::vector<Atom> atoms;
  std::vector<std::uint8_t> eager;  // of each atom: apart, as atoms are large and seldom needed
  std::vector<FieldPlan> fields;
  std::unordered_map<std::string, std::uint32_t> field_ids;
  GramIndex keywords;            // looked for in every value; one index, so that it stays in cache
  bool keep_all_values = false;  // a lazy atom asks any value
  std::vector<Step> steps;
  std::vector<std::uint32_t> children;
  std::vector<std::uint32_t> roots;  // of each rule
  std::vector<AtomUses> uses;        // of each atom
  std::vector<std::uint32_t> triggers;
  std::vector<std::uint32_t> always;
  std::vector<std::uint32_t> groups;
  std::size_t group_count = 0;
  // Every path that leads to a field: the keys from the top, and the field.
  std::vector<std::pair<std::vector<std::string>, std::uint32_t>> paths;
  MatcherFacts facts;
};

}  // namespace ringfence::sigma
