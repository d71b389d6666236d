// One thread's matching: parse, walk, scan, decide.

// Debian's library is built with it, and it decides the layout of the parser.
#define SIMDJSON_THREADS_ENABLED 1
#include <simdjson.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <set>

#include "base/check.h"
#include "sigma/arena.h"
#include "sigma/key_tree.h"
#include "sigma/matcher_plan.h"
#include "sigma/value_memo.h"
#include "sigma/yaml_value.h"

namespace ringfence::sigma {
namespace {

Error Refuse(std::string why) { return {Code::kInvalidArgument, std::move(why), {}, {}}; }

struct Value {
  std::string_view text;
  std::string_view folded;
  std::uint32_t next = kNone;   // of the same field
  std::uint32_t known = kNone;  // the memo's number of it
};

struct Added {
  std::string_view text;
  std::uint64_t hash = 0;
  std::uint32_t place = kNone;
};

struct FieldState {
  std::uint32_t epoch = 0;  // of the event it was last seen in
  std::uint32_t head = kNone;
  bool has_value = false;  // something other than null
};

}  // namespace

class Matcher::Session::Impl {
 public:
  explicit Impl(const Plan& plan)
      : plan_(plan),
        keys_(plan),
        field_states_(plan.fields.size()),
        true_in_(plan.atoms.size(), 0),
        asked_in_(plan.atoms.size(), 0),
        tried_in_(plan.atoms.size(), 0),
        group_in_(plan.group_count, 0),
        looked_in_(plan.roots.size(), 0) {
    RINGFENCE_CHECK(parser_.allocate(kEventBytesMax, kEventDepthMax) == simdjson::SUCCESS);
  }

  Result<const std::vector<std::uint32_t>*> Match(std::string_view json, bool padded) {
    Begin();
    if (json.size() > kEventBytesMax) {
      return Refuse("longer than " + std::to_string(kEventBytesMax) + " bytes");
    }
    simdjson::dom::element document;
    const auto error =
        parser_.parse(reinterpret_cast<const std::uint8_t*>(json.data()), json.size(), !padded)
            .get(document);
    if (error != simdjson::SUCCESS) {
      return Refuse(error == simdjson::DEPTH_ERROR || error == simdjson::CAPACITY
                        ? "nested deeper than " + std::to_string(kEventDepthMax)
                        : simdjson::error_message(error));
    }
    simdjson::dom::object top;
    if (document.get(top) != simdjson::SUCCESS) {
      return Refuse("not a JSON object");
    }
    if (!Walk(top, KeyTree::kTop)) {
      return Refuse("a member is there twice: " + duplicate_);
    }
    TakeAll();
    Decide();
    return &matched_;
  }

  std::vector<std::string> Values(std::string_view name) const {
    std::vector<std::string> texts;
    const auto found = plan_.field_ids.find(std::string(name));
    if (found != plan_.field_ids.end() && field_states_[found->second].epoch == epoch_) {
      for (std::uint32_t i = field_states_[found->second].head; i != kNone; i = values_[i].next) {
        texts.emplace_back(values_[i].text);
      }
      std::reverse(texts.begin(), texts.end());
    }
    return texts;
  }

 private:
  void Begin() {
    if (++epoch_ == 0) {  // after four billion events: forget all that was stamped
      std::fill(field_states_.begin(), field_states_.end(), FieldState{});
      std::fill(true_in_.begin(), true_in_.end(), 0);
      std::fill(asked_in_.begin(), asked_in_.end(), 0);
      std::fill(group_in_.begin(), group_in_.end(), 0);
      std::fill(looked_in_.begin(), looked_in_.end(), 0);
      epoch_ = 1;
    }
    added_.clear();
    values_.clear();
    all_values_.clear();
    candidates_.clear();
    matched_.clear();
    arena_.Clear();
    memo_.BeginEvent();
  }

  // False: a member twice.
  bool Walk(simdjson::dom::object object, std::uint32_t parent) {
    const std::uint64_t serial = ++objects_;
    std::uint32_t before = kNone;
    std::set<std::string_view> odd;  // keys that the tree does not hold
    for (const auto member : object) {
      const std::string_view key = member.key;
      std::uint32_t child = before == kNone ? keys_.node(parent).first : keys_.node(before).next;
      if (child == kNone || !keys_.Is(child, parent, key)) [[unlikely]] {
        child = keys_.Child(parent, key);
        if (child == kNone) {
          if (!odd.insert(key).second) {
            duplicate_ = key;
            return false;
          }
          // Its value counts for keywords, and where any name will do for fields.
          if (!WalkValue(member.value, keys_.node(parent).any)) {
            return false;
          }
          continue;
        }
        (before == kNone ? keys_.node(parent).first : keys_.node(before).next) = child;
      }
      KeyTree::Node& node = keys_.node(child);
      if (node.seen_in == serial) {
        duplicate_ = key;
        return false;
      }
      node.seen_in = serial;
      before = child;
      if (!WalkValue(member.value, child)) {
        return false;
      }
    }
    return true;
  }

  // `at` may be kNone: no field is here or below.
  bool WalkValue(simdjson::dom::element value, std::uint32_t at) {
    switch (value.type()) {
      case simdjson::dom::element_type::OBJECT: {
        Present(at);
        simdjson::dom::object object;
        (void)(value.get(object) == simdjson::SUCCESS);  // the type says so
        return at == kNone ? WalkUnknown(object) : Walk(object, at);
      }
      case simdjson::dom::element_type::ARRAY: {
        Present(at);
        simdjson::dom::array array;
        (void)(value.get(array) == simdjson::SUCCESS);
        for (const simdjson::dom::element one : array) {
          if (!WalkValue(one, at)) {
            return false;
          }
        }
        return true;
      }
      case simdjson::dom::element_type::STRING:
        Add(value.get_string().value_unsafe(), at);
        return true;
      case simdjson::dom::element_type::NULL_VALUE:
        Present(at);
        return true;
      case simdjson::dom::element_type::BOOL:
        Add(value.get_bool().value_unsafe() ? "true" : "false", at);
        return true;
      case simdjson::dom::element_type::INT64:
        AddNumber(value.get_int64().value_unsafe(), at);
        return true;
      case simdjson::dom::element_type::UINT64:
        AddNumber(value.get_uint64().value_unsafe(), at);
        return true;
      case simdjson::dom::element_type::DOUBLE:
        AddDouble(value.get_double().value_unsafe(), at);
        return true;
    }
    return true;
  }

  // An object outside the tree, because the tree is full: nothing is learnt here.
  bool WalkUnknown(simdjson::dom::object object) {
    std::set<std::string_view> seen;
    for (const auto member : object) {
      const std::string_view key = member.key;
      if (!seen.insert(key).second) {
        duplicate_ = key;
        return false;
      }
      if (!WalkValue(member.value, kNone)) {
        return false;
      }
    }
    return true;
  }

  template <typename Number>
  void AddNumber(Number number, std::uint32_t at) {
    char* out = arena_.Take(24);
    const char* end = std::to_chars(out, out + 24, number).ptr;
    Add({out, static_cast<std::size_t>(end - out)}, at);
  }

  void AddDouble(double number, std::uint32_t at) {
    const std::string text = NumberText(number);
    char* out = arena_.Take(text.size());
    std::copy(text.begin(), text.end(), out);
    Add({out, text.size()}, at);
  }

  void Present(std::uint32_t at) {
    if (at == kNone) {
      return;
    }
    const KeyTree::Node& node = keys_.node(at);
    for (std::uint32_t i = 0; i < node.fields_count; ++i) {
      Touch(keys_.fields(node)[i]);
    }
  }

  FieldState& Touch(std::uint32_t field) {
    FieldState& state = field_states_[field];
    if (state.epoch != epoch_) {
      state = {epoch_, kNone, false};
      for (const std::uint32_t rule : plan_.fields[field].triggered) {
        Look(rule);
      }
    }
    return state;
  }

  std::string_view Folded(std::string_view text) {
    const std::size_t room = text.size() + text.size() / 2 + 4;
    char* out = arena_.Take(room);
    const auto size = static_cast<std::size_t>(FoldInto(text, out) - out);
    arena_.Return(room - size);
    return {out, size};
  }

  void Add(std::string_view text, std::uint32_t at) {
    const std::uint32_t count = at == kNone ? 0 : keys_.node(at).fields_count;
    if (count == 0 && plan_.keywords.empty() && !plan_.keep_all_values) {
      return;
    }
    const std::uint32_t place = count == 0 ? kNone : at;
    const std::uint64_t hash = ValueMemo::Hash(place, text);
    memo_.Warm(hash);
    added_.push_back({text, hash, place});
  }

  void TakeAll() {
    for (const Added& one : added_) {
      memo_.WarmEntry(one.hash);
    }
    for (const Added& one : added_) {
      Take(one.text, one.hash, one.place);
    }
  }

  // `place`: kNone, or where there are fields.
  void Take(std::string_view text, std::uint64_t hash, std::uint32_t place) {
    const std::uint32_t count = place == kNone ? 0 : keys_.node(place).fields_count;
    const std::uint32_t* fields = count == 0 ? nullptr : keys_.fields(keys_.node(place));
    std::string_view folded;
    std::span<const std::uint32_t> hits;
    std::uint32_t number = kNone;
    if (const ValueMemo::Entry* known = memo_.Find(hash, place, text)) {
      folded = known->folded();
      hits = known->hits();
      number = known->number;
    } else {
      folded = Folded(text);
      hits_.clear();
      Scan(plan_.keywords, folded);
      for (std::uint32_t i = 0; i < count; ++i) {
        const FieldPlan& plan = plan_.fields[fields[i]];
        if (const std::uint32_t atom = plan.exact.Find(folded); atom != kNone) {
          hits_.push_back(atom);
        }
        Scan(plan.grams, folded);
      }
      if (memo_.Recurs(hash)) {
        memo_.Keep(hash, place, text, folded, hits_);
      }
      hits = hits_;
    }
    if (plan_.keep_all_values) {
      all_values_.push_back({text, folded, kNone, number});
    }
    for (std::uint32_t i = 0; i < count; ++i) {
      FieldState& state = Touch(fields[i]);
      state.has_value = true;
      if (plan_.fields[fields[i]].needed) {
        values_.push_back({text, folded, state.head, number});
        state.head = static_cast<std::uint32_t>(values_.size() - 1);
      }
    }
    for (const std::uint32_t atom : hits) {
      Found(atom);
    }
  }

  // The index's literals that are in the text, into hits_. Depends on nothing else of the event.
  void Scan(const GramIndex& index, std::string_view folded) {
    if (index.empty()) {
      return;
    }
    const std::uint64_t serial = ++scans_;
    index.Scan(
        folded,
        [&](std::uint32_t atom) {
          if (tried_in_[atom] != serial) {
            tried_in_[atom] = serial;
            hits_.push_back(atom);
          }
        },
        [&](std::uint32_t atom, const Pattern& pattern) {
          if (tried_in_[atom] != serial) {
            tried_in_[atom] = serial;
            if (Matches(pattern, folded)) {
              hits_.push_back(atom);
            }
          }
        });
  }

  void Found(std::uint32_t atom) {
    if (true_in_[atom] == epoch_) {
      return;
    }
    true_in_[atom] = epoch_;
    const AtomUses& uses = plan_.uses[atom];
    for (std::uint32_t i = uses.group_first; i < uses.group_end; ++i) {
      group_in_[plan_.groups[i]] = epoch_;
    }
    for (std::uint32_t i = uses.trigger_first; i < uses.trigger_end; ++i) {
      Look(plan_.triggers[i]);
    }
  }

  void Look(std::uint32_t rule) {
    if (looked_in_[rule] != epoch_) {
      looked_in_[rule] = epoch_;
      candidates_.push_back(rule);
      const Step* root = &plan_.steps[plan_.roots[rule]];  // its parts stand before it
      __builtin_prefetch(root);
      if (plan_.roots[rule] >= 8) {
        __builtin_prefetch(root - 4);
        __builtin_prefetch(root - 8);
      }
    }
  }

  void Decide() {
    for (const std::uint32_t rule : candidates_) {
      if (Holds(plan_.roots[rule])) {
        matched_.push_back(rule);
      }
    }
    for (const std::uint32_t rule : plan_.always) {
      if (Holds(plan_.roots[rule])) {
        matched_.push_back(rule);
      }
    }
    std::sort(matched_.begin(), matched_.end());
  }

  bool Holds(std::uint32_t index) {
    const Step& step = plan_.steps[index];
    switch (step.op) {
      case Expression::Op::kTest:
        return True(step.first);
      case Expression::Op::kNot:
        return !Holds(step.first);
      case Expression::Op::kAll:
        for (std::uint32_t i = 0; i < step.count; ++i) {
          if (!Holds(plan_.children[step.first + i])) {
            return false;
          }
        }
        return true;
      case Expression::Op::kAny:
      case Expression::Op::kSelection:
        break;
    }
    if (step.group != kNone) {
      return group_in_[step.group] == epoch_;
    }
    if (step.gate != kNone && field_states_[step.gate].epoch != epoch_) {
      return false;
    }
    for (std::uint32_t i = 0; i < step.count; ++i) {
      if (Holds(plan_.children[step.first + i])) {
        return true;
      }
    }
    return false;
  }

  bool True(std::uint32_t index) {
    if (true_in_[index] == epoch_) {
      return true;
    }
    if (plan_.eager[index] != 0 || asked_in_[index] == epoch_) {
      return false;
    }
    asked_in_[index] = epoch_;
    if (!Ask(index)) {
      return false;
    }
    true_in_[index] = epoch_;
    return true;
  }

  bool Ask(std::uint32_t index) {
    const Atom& atom = plan_.atoms[index];
    if (!atom.guards.empty() &&
        std::none_of(atom.guards.begin(), atom.guards.end(),
                     [&](std::uint32_t guard) { return true_in_[guard] == epoch_; })) {
      return false;
    }
    if (atom.field == kNone) {
      return std::any_of(all_values_.begin(), all_values_.end(),
                         [&](const Value& value) { return AskValue(index, atom, value); });
    }
    const FieldState& state = field_states_[atom.field];
    const bool present = state.epoch == epoch_;
    if (atom.test.kind == Test::Kind::kExists) {
      return present == atom.test.exists;
    }
    if (atom.test.kind == Test::Kind::kNull) {
      return !present || !state.has_value;
    }
    if (!present) {
      return false;
    }
    for (std::uint32_t i = state.head; i != kNone; i = values_[i].next) {
      if (AskValue(index, atom, values_[i])) {
        return true;
      }
    }
    return false;
  }

  // An answer about a value that the memo holds is kept as well.
  bool AskValue(std::uint32_t index, const Atom& atom, const Value& value) {
    if (value.known == kNone || atom.test.kind == Test::Kind::kFieldRef) {
      return AskAnew(atom, value);
    }
    bool holds = false;
    if (!memo_.FindAnswer(value.known, index, holds)) {
      holds = AskAnew(atom, value);
      memo_.KeepAnswer(value.known, index, holds);
    }
    return holds;
  }

  bool AskAnew(const Atom& atom, const Value& value) {
    const Test& test = atom.test;
    switch (test.kind) {
      case Test::Kind::kPattern:
        return Matches(test.pattern, test.cased ? value.text : value.folded);
      case Test::Kind::kRegex:
        return value.text.size() >= atom.bytes_least &&
               atom.regex->Match({value.text.data(), value.text.size()}, 0, value.text.size(),
                                 RE2::UNANCHORED, nullptr, 0);
      case Test::Kind::kCidr:
        return test.cidr.Has(value.text);
      case Test::Kind::kCompare: {
        double number = 0;
        const bool read = test.part == TimePart::kNone ? NumberOf(value.text, number)
                                                       : PartOfTime(value.text, test.part, number);
        return read && test.bound.Holds(number);
      }
      case Test::Kind::kFieldRef:
        return AskOther(atom, value);
      case Test::Kind::kExists:
      case Test::Kind::kNull:
        break;
    }
    return false;
  }

  bool AskOther(const Atom& atom, const Value& value) const {
    const FieldState& other = field_states_[atom.other];
    if (other.epoch != epoch_) {
      return false;
    }
    const std::string_view mine = atom.test.cased ? value.text : value.folded;
    for (std::uint32_t i = other.head; i != kNone; i = values_[i].next) {
      const std::string_view theirs = atom.test.cased ? values_[i].text : values_[i].folded;
      const bool holds = atom.test.place == Test::Place::kWhole   ? mine == theirs
                         : atom.test.place == Test::Place::kStart ? mine.starts_with(theirs)
                         : atom.test.place == Test::Place::kEnd
                             ? mine.ends_with(theirs)
                             : mine.find(theirs) != std::string_view::npos;
      if (holds) {
        return true;
      }
    }
    return false;
  }

  const Plan& plan_;
  KeyTree keys_;
  simdjson::dom::parser parser_{kEventBytesMax};
  Arena arena_;
  ValueMemo memo_;
  std::vector<std::uint32_t> hits_;  // of the value at hand
  std::uint32_t epoch_ = 0;
  std::uint64_t objects_ = 0;
  std::uint64_t scans_ = 0;
  std::string duplicate_;
  std::vector<Added> added_;  // the values of the event in their order
  std::vector<Value> values_;
  std::vector<Value> all_values_;
  std::vector<FieldState> field_states_;
  std::vector<std::uint32_t> true_in_;    // of each atom: the event in which it was true
  std::vector<std::uint32_t> asked_in_;   // of each lazy atom: the event it was asked for
  std::vector<std::uint64_t> tried_in_;   // of each literal: the scan in which it was tried
  std::vector<std::uint32_t> group_in_;   // of each list of alternatives
  std::vector<std::uint32_t> looked_in_;  // of each rule
  std::vector<std::uint32_t> candidates_;
  std::vector<std::uint32_t> matched_;
};

Matcher::Session::Session(const Matcher& matcher) : impl_(std::make_unique<Impl>(*matcher.plan_)) {}
Matcher::Session::~Session() = default;

Result<const std::vector<std::uint32_t>*> Matcher::Session::Match(std::string_view json,
                                                                  bool padded) {
  return impl_->Match(json, padded);
}

std::vector<std::string> Matcher::Session::Values(std::string_view field) const {
  return impl_->Values(field);
}

}  // namespace ringfence::sigma
