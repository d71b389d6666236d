// From a set of rules to the plan of a matcher.

#include <algorithm>
#include <limits>

#include "sigma/announce.h"
#include "sigma/matcher_plan.h"

namespace ringfence::sigma {
namespace {

// What a rule cannot do without: it can be true only if one of these is. And what looking for it
// is thought to cost: the share of events that would make us look at the rule.
struct Needs {
  std::vector<std::uint32_t> atoms;
  std::vector<std::uint32_t> fields;
  bool always = false;
  double cost = 0;
};

constexpr double kAlwaysCost = 1000;
constexpr double kFieldCost = 0.5;

const Pattern::Part* LongestText(const Pattern& pattern) {
  const Pattern::Part* best = nullptr;
  for (const Pattern::Part& part : pattern.parts) {
    if (part.kind == Pattern::Kind::kText &&
        (best == nullptr || part.text.size() > best->text.size())) {
      best = &part;
    }
  }
  return best;
}

// text, text*, *text, *text*; anything else is a glob.
bool IsPlain(const Pattern& pattern, GramIndex::Mode& mode) {
  const auto& parts = pattern.parts;
  const auto is = [&](std::size_t i, Pattern::Kind kind) {
    return i < parts.size() && parts[i].kind == kind;
  };
  if (parts.size() == 2 && is(0, Pattern::Kind::kText) && is(1, Pattern::Kind::kAny)) {
    mode = GramIndex::Mode::kStart;
    return true;
  }
  if (parts.size() == 2 && is(0, Pattern::Kind::kAny) && is(1, Pattern::Kind::kText)) {
    mode = GramIndex::Mode::kEnd;
    return true;
  }
  mode = GramIndex::Mode::kAnywhere;
  return parts.size() == 3 && is(0, Pattern::Kind::kAny) && is(1, Pattern::Kind::kText) &&
         is(2, Pattern::Kind::kAny);
}

}  // namespace

void ExactIndex::Add(std::string_view text, std::uint32_t atom) {
  texts_.emplace_back(text, atom);
  lengths_ |= std::uint64_t{1} << std::min<std::size_t>(text.size(), 63);
}

void ExactIndex::Freeze() {
  atoms_.reserve(texts_.size());
  for (const auto& [text, atom] : texts_) {
    atoms_.emplace(text, atom);
  }
}

std::vector<std::vector<std::string>> PathsOf(const std::string& field) {
  std::vector<std::vector<std::string>> paths{{field}};
  if (field.find('.') != std::string::npos) {
    std::vector<std::string> keys;
    std::size_t begin = 0;
    while (true) {
      const std::size_t end = field.find('.', begin);
      keys.push_back(field.substr(begin, end - begin));
      if (end == std::string::npos) {
        break;
      }
      begin = end + 1;
    }
    paths.push_back(std::move(keys));
    return paths;  // no field of a Windows event has dots
  }
  paths.push_back({"Event", "EventData", field});
  paths.push_back({"Event", "UserData", std::string(kAnyKey), field});
  paths.push_back({"Event", "System", field});
  paths.push_back({"Event", "System", field, "#text"});
  if (field == "Data") {
    paths.push_back({"Event", "EventData", "Data", "#text"});
  }
  if (const std::size_t bar = field.find('_'); bar != std::string::npos) {
    paths.push_back(
        {"Event", "System", field.substr(0, bar), "#attributes", field.substr(bar + 1)});
  }
  return paths;
}

namespace {

class Builder {
 public:
  explicit Builder(Matcher::Plan& plan) : plan_(plan) {}

  void Build(const RuleSet& set, const std::vector<std::string>& extra_fields) {
    for (const ReadyRule& rule : set.rules) {
      plan_.roots.push_back(Flatten(rule.condition, rule));
    }
    for (const std::string& field : extra_fields) {
      plan_.fields[Field(field)].needed = true;
    }
    AddGuards();
    CountUses();
    std::vector<std::vector<std::uint32_t>> triggers(plan_.atoms.size());
    for (std::uint32_t rule = 0; rule < plan_.roots.size(); ++rule) {
      const Needs needs = NeedsOf(plan_.roots[rule]);
      if (needs.always) {
        plan_.always.push_back(rule);
        continue;
      }
      for (const std::uint32_t atom : needs.atoms) {
        triggers[atom].push_back(rule);
      }
      for (const std::uint32_t field : needs.fields) {
        plan_.fields[field].triggered.push_back(rule);
      }
    }
    plan_.uses.resize(plan_.atoms.size());
    for (std::size_t i = 0; i < triggers.size(); ++i) {
      std::vector<std::uint32_t>& rules = triggers[i];
      plan_.uses[i].trigger_first = static_cast<std::uint32_t>(plan_.triggers.size());
      std::sort(rules.begin(), rules.end());
      rules.erase(std::unique(rules.begin(), rules.end()), rules.end());
      plan_.triggers.insert(plan_.triggers.end(), rules.begin(), rules.end());
      plan_.uses[i].trigger_end = static_cast<std::uint32_t>(plan_.triggers.size());
    }
    MakeGroups();
    for (const Step& step : plan_.steps) {
      SortParts(step);
    }
    BuildIndexes();
    plan_.facts.rules = set.rules.size();
    plan_.facts.fields = plan_.fields.size();
    plan_.facts.atoms = plan_.atoms.size();
    plan_.facts.always = plan_.always.size();
  }

 private:
  std::uint32_t Field(const std::string& name) {
    const auto [at, fresh] =
        plan_.field_ids.emplace(name, static_cast<std::uint32_t>(plan_.fields.size()));
    if (fresh) {
      plan_.fields.emplace_back();
      plan_.fields.back().name = name;
      for (auto& path : PathsOf(name)) {
        plan_.paths.emplace_back(std::move(path), at->second);
      }
    }
    return at->second;
  }

  std::uint32_t AtomOf(const Test& test) {
    const auto [at, fresh] =
        atom_ids_.emplace(test.Key(), static_cast<std::uint32_t>(plan_.atoms.size()));
    if (!fresh) {
      return at->second;
    }
    Atom atom;
    atom.test = test;
    atom.field = test.field.empty() ? kNone : Field(test.field);
    if (test.kind == Test::Kind::kFieldRef) {
      atom.other = Field(test.other);
      plan_.fields[atom.other].needed = true;
    }
    if (test.kind == Test::Kind::kRegex) {
      RE2::Options options(RE2::Quiet);
      options.set_never_capture(true);
      atom.regex = std::make_unique<RE2>(test.regex, options);
    }
    const bool has_text = LongestText(test.pattern) != nullptr;
    const bool whole = !test.pattern.HasWildcard();
    atom.eager = test.kind == Test::Kind::kPattern && !test.cased &&
                 (has_text || (whole && atom.field != kNone));
    if (!atom.eager) {
      if (atom.field == kNone) {
        plan_.keep_all_values = true;
      } else {
        plan_.fields[atom.field].needed = true;
      }
    }
    plan_.atoms.push_back(std::move(atom));
    return at->second;
  }

  std::uint32_t Flatten(const Expression& expression, const ReadyRule& rule) {
    if (expression.op == Expression::Op::kSelection) {
      return Flatten(rule.selections[expression.selection], rule);
    }
    Step step;
    step.op = expression.op;
    if (expression.op == Expression::Op::kTest) {
      step.first = AtomOf(expression.test);
    } else if (expression.op == Expression::Op::kNot) {
      step.first = Flatten(expression.of.front(), rule);
    } else {
      std::vector<std::uint32_t> of;
      for (const Expression& one : expression.of) {
        of.push_back(Flatten(one, rule));
      }
      step.first = static_cast<std::uint32_t>(plan_.children.size());
      step.count = static_cast<std::uint32_t>(of.size());
      plan_.children.insert(plan_.children.end(), of.begin(), of.end());
    }
    step.gate = GateOf(step);
    plan_.steps.push_back(step);
    return static_cast<std::uint32_t>(plan_.steps.size() - 1);
  }

  // A field without which the step is false; kNone when there is no such field.
  std::uint32_t GateOf(const Step& step) const {
    if (step.op == Expression::Op::kTest) {
      const Atom& atom = plan_.atoms[step.first];
      const bool absent = atom.test.kind == Test::Kind::kNull ||
                          (atom.test.kind == Test::Kind::kExists && !atom.test.exists);
      return absent ? kNone : atom.field;
    }
    std::uint32_t gate = kNone;
    if (step.op == Expression::Op::kNot) {
      return gate;
    }
    for (std::uint32_t i = 0; i < step.count; ++i) {
      const std::uint32_t one = plan_.steps[plan_.children[step.first + i]].gate;
      if (step.op == Expression::Op::kAll && one != kNone) {
        return one;
      }
      if (step.op == Expression::Op::kAny && (one == kNone || (i > 0 && one != gate))) {
        return kNone;
      }
      gate = one;
    }
    return gate;
  }

  // For each regular expression, literals that announce it.
  void AddGuards() {
    const std::size_t count = plan_.atoms.size();
    for (std::size_t i = 0; i < count; ++i) {
      if (plan_.atoms[i].test.kind != Test::Kind::kRegex) {
        continue;
      }
      plan_.atoms[i].bytes_least = LeastBytes(plan_.atoms[i].test.regex);
      for (const std::string& literal : Announcers(plan_.atoms[i].test.regex)) {
        Test guard;
        guard.field = plan_.atoms[i].test.field;
        guard.pattern = Pattern::Literal(Fold(literal));
        guard.pattern.AnyBefore();
        guard.pattern.AnyAfter();
        const std::uint32_t atom = AtomOf(guard);
        plan_.atoms[i].guards.push_back(atom);
      }
    }
  }

  void CountUses() {
    uses_.assign(plan_.atoms.size(), 0);
    for (const Step& step : plan_.steps) {
      if (step.op == Expression::Op::kTest) {
        ++uses_[step.first];
      }
    }
  }

  double CostOf(std::uint32_t index) const {
    const Atom& atom = plan_.atoms[index];
    const Pattern::Part* text = LongestText(atom.test.pattern);
    double cost = text == nullptr ? 0.1 : ShareOf(text->text);
    if (!atom.test.pattern.HasWildcard() && (text == nullptr || text->text.size() < 4)) {
      cost = 0.02;  // a whole value, such as an event's number
    }
    return cost * (1.0 + static_cast<double>(std::min(uses_[index], 400U)) / 4.0);
  }

  static Needs Always() {
    Needs needs;
    needs.always = true;
    needs.cost = kAlwaysCost;
    return needs;
  }

  Needs NeedsOfTest(std::uint32_t index) const {
    const Atom& atom = plan_.atoms[index];
    Needs needs;
    if (atom.eager) {
      needs.atoms.push_back(index);
      needs.cost = CostOf(index);
      return needs;
    }
    if (!atom.guards.empty()) {
      needs.atoms = atom.guards;
      for (const std::uint32_t guard : atom.guards) {
        needs.cost += CostOf(guard);
      }
      return needs;
    }
    const bool absent = atom.test.kind == Test::Kind::kNull ||
                        (atom.test.kind == Test::Kind::kExists && !atom.test.exists);
    if (atom.field == kNone || absent) {
      return Always();
    }
    needs.fields.push_back(atom.field);
    needs.cost = kFieldCost;
    return needs;
  }

  Needs NeedsOf(std::uint32_t index) const {
    const Step& step = plan_.steps[index];
    if (step.op == Expression::Op::kTest) {
      return NeedsOfTest(step.first);
    }
    if (step.op == Expression::Op::kNot) {
      return Always();
    }
    const bool all = step.op == Expression::Op::kAll;
    Needs best;
    best.cost = all ? std::numeric_limits<double>::max() : 0;
    for (std::uint32_t i = 0; i < step.count; ++i) {
      Needs one = NeedsOf(plan_.children[step.first + i]);
      if (all) {
        if (one.cost < best.cost) {
          best = std::move(one);
        }
        continue;
      }
      best.always = best.always || one.always;
      best.cost += one.cost;
      best.atoms.insert(best.atoms.end(), one.atoms.begin(), one.atoms.end());
      best.fields.insert(best.fields.end(), one.fields.begin(), one.fields.end());
    }
    return best;
  }

  // A list of alternatives that are all found by scanning need not be gone through: finding one of
  // them marks the list.
  void MakeGroups() {
    constexpr std::uint32_t kLeast = 3;
    std::vector<std::vector<std::uint32_t>> groups(plan_.atoms.size());
    for (Step& step : plan_.steps) {
      const auto* first = plan_.children.data() + step.first;
      const bool eager = step.op == Expression::Op::kAny && step.count >= kLeast &&
                         std::all_of(first, first + step.count, [&](std::uint32_t child) {
                           return plan_.steps[child].op == Expression::Op::kTest &&
                                  plan_.atoms[plan_.steps[child].first].eager;
                         });
      if (!eager) {
        continue;
      }
      step.group = static_cast<std::uint32_t>(plan_.group_count++);
      for (std::uint32_t i = 0; i < step.count; ++i) {
        groups[plan_.steps[first[i]].first].push_back(step.group);
      }
    }
    for (std::size_t i = 0; i < groups.size(); ++i) {
      plan_.uses[i].group_first = static_cast<std::uint32_t>(plan_.groups.size());
      plan_.groups.insert(plan_.groups.end(), groups[i].begin(), groups[i].end());
      plan_.uses[i].group_end = static_cast<std::uint32_t>(plan_.groups.size());
    }
  }

  // Parts that all must hold: first those that seldom do, last those that cost something to ask.
  void SortParts(const Step& step) {
    if (step.op != Expression::Op::kAll) {
      return;
    }
    std::stable_sort(
        plan_.children.begin() + step.first, plan_.children.begin() + step.first + step.count,
        [&](std::uint32_t a, std::uint32_t b) { return NeedsOf(a).cost < NeedsOf(b).cost; });
  }

  void BuildIndexes() {
    std::vector<std::vector<GramIndex::Literal>> literals(plan_.fields.size());
    std::vector<GramIndex::Literal> keywords;
    for (std::uint32_t i = 0; i < plan_.atoms.size(); ++i) {
      const Atom& atom = plan_.atoms[i];
      plan_.eager.push_back(atom.eager ? 1 : 0);
      if (!atom.eager) {
        continue;
      }
      ++plan_.facts.literals;
      const Pattern& pattern = atom.test.pattern;
      if (!pattern.HasWildcard()) {
        plan_.fields[atom.field].exact.Add(pattern.LiteralText(), i);
        continue;
      }
      GramIndex::Literal literal;
      literal.atom = i;
      literal.text = LongestText(pattern)->text;
      if (!IsPlain(pattern, literal.mode)) {
        literal.mode = GramIndex::Mode::kGlob;
        literal.pattern = &pattern;
      }
      (atom.field == kNone ? keywords : literals[atom.field]).push_back(std::move(literal));
    }
    plan_.keywords.Build(keywords);
    for (std::size_t f = 0; f < plan_.fields.size(); ++f) {
      plan_.fields[f].grams.Build(literals[f]);
      plan_.fields[f].exact.Freeze();
    }
  }

  Matcher::Plan& plan_;
  std::unordered_map<std::string, std::uint32_t> atom_ids_;
  std::vector<std::uint32_t> uses_;
};

}  // namespace

Matcher::Matcher(std::unique_ptr<Plan> plan) : plan_(std::move(plan)) {}
Matcher::~Matcher() = default;
const MatcherFacts& Matcher::facts() const { return plan_->facts; }

std::unique_ptr<const Matcher> Matcher::Build(const RuleSet& set,
                                              const std::vector<std::string>& extra_fields) {
  auto plan = std::make_unique<Plan>();
  Builder(*plan).Build(set, extra_fields);
  return std::unique_ptr<const Matcher>(new Matcher(std::move(plan)));
}

}  // namespace ringfence::sigma
