#include "sigma/ruleset.h"

#include <algorithm>
#include <map>
#include <set>

namespace ringfence::sigma {
namespace {

Result<Expression> CompileBlock(const Block& block, const Placeholders& placeholders) {
  if (block.kind == Block::Kind::kItem) {
    return Compile(block.item, placeholders);
  }
  Expression joined;
  joined.op = block.kind == Block::Kind::kAll ? Expression::Op::kAll : Expression::Op::kAny;
  for (const Block& inner : block.blocks) {
    RINGFENCE_ASSIGN(Expression one, CompileBlock(inner, placeholders));
    joined.of.push_back(std::move(one));
  }
  if (joined.of.size() == 1) {
    Expression only = std::move(joined.of.front());
    return only;
  }
  return joined;
}

struct Compiled {
  std::vector<std::string> names;
  std::vector<Expression> selections;
  Expression condition;
};

Result<Compiled> CompileDetection(const Detection& detection, const Placeholders& placeholders) {
  Compiled out;
  for (const Selection& selection : detection.selections) {
    RINGFENCE_ASSIGN(Expression one, CompileBlock(selection.block, placeholders));
    out.names.push_back(selection.name);
    out.selections.push_back(std::move(one));
  }
  out.condition.op = Expression::Op::kAny;
  for (const std::string& text : detection.conditions) {
    RINGFENCE_ASSIGN(Expression one, ParseCondition(text, out.names));
    out.condition.of.push_back(std::move(one));
  }
  if (out.condition.of.size() == 1) {
    Expression only = std::move(out.condition.of.front());
    out.condition = std::move(only);
  }
  return out;
}

void Shift(Expression& expression, std::size_t by) {
  expression.selection += by;
  for (Expression& inner : expression.of) {
    Shift(inner, by);
  }
}

// A filter takes matches away. Both ways of writing one are in use: the specification's, where the
// condition says what is taken away, and pySigma's, where it says (with `not`) what is kept.
void AddFilter(const Compiled& filter, const std::string& title, ReadyRule& rule) {
  Expression kept = filter.condition;
  Shift(kept, rule.selections.size());
  if (kept.op != Expression::Op::kNot) {
    kept = Expression::Not(std::move(kept));
  }
  for (std::size_t i = 0; i < filter.names.size(); ++i) {
    rule.names.push_back("filter \"" + title + "\" " + filter.names[i]);
    rule.selections.push_back(filter.selections[i]);
  }
  Expression both;
  both.op = Expression::Op::kAll;
  both.of.push_back(std::move(rule.condition));
  both.of.push_back(std::move(kept));
  rule.condition = std::move(both);
}

class Maker {
 public:
  Maker(const std::vector<Pipeline>& pipelines, std::vector<Problem>& problems)
      : pipelines_(pipelines), problems_(problems) {}

  RuleSet Make(std::vector<Rule> rules) {
    for (Rule& rule : rules) {
      if (rule.kind != RuleKind::kFilter && !Enter(rule)) {
        continue;
      }
      if (rule.kind == RuleKind::kCorrelation) {
        correlations_.push_back(std::move(rule));
      } else if (rule.kind == RuleKind::kFilter) {
        filters_.push_back(std::move(rule));
      } else {
        AddDetection(std::move(rule));
      }
    }
    for (Rule& filter : filters_) {
      ApplyFilter(filter);
    }
    state_.resize(correlations_.size(), State::kNew);
    placed_.resize(correlations_.size(), 0);
    for (std::size_t i = 0; i < correlations_.size(); ++i) {
      (void)Resolve(i, 0);
    }
    MarkReported();
    return std::move(set_);
  }

 private:
  enum class State : std::uint8_t { kNew, kOpen, kDone, kBad };
  struct Target {
    RuleKind kind = RuleKind::kDetection;
    std::size_t index = 0;
    bool left_out = false;
  };

  void Bad(const Rule& rule, std::string field, std::string what, std::string hint = {}) {
    problems_.push_back({rule.place, std::move(field), std::move(what), std::move(hint)});
  }

  void LeaveOut(const Rule& rule, const Error& error) {
    set_.left_out.push_back({rule.place, rule.Key(), rule.title, error.message, error.hint});
  }

  // Its id and name; false when another has one of them.
  bool Enter(const Rule& rule) {
    for (const auto& [field, text] : {std::pair("id", &rule.id), std::pair("name", &rule.name)}) {
      if (text->empty()) {
        continue;
      }
      const auto [at, fresh] = places_.emplace(*text, rule.place);
      if (!fresh) {
        Bad(rule, field,
            "\"" + *text + "\" is taken: " + at->second.file + ":" +
                std::to_string(at->second.line) + " has it too");
        return false;
      }
    }
    return true;
  }

  void Register(const Rule& rule, Target target) {
    for (const std::string* text : {&rule.id, &rule.name}) {
      if (!text->empty()) {
        targets_[*text] = target;
      }
    }
  }

  void AddDetection(Rule rule) {
    Placeholders placeholders;
    const Status applied = Apply(pipelines_, rule, placeholders);
    Result<Compiled> compiled =
        applied.has_value() ? CompileDetection(rule.detection, placeholders) : applied.error();
    if (!compiled.has_value()) {
      Register(rule, {RuleKind::kDetection, 0, true});
      if (compiled.error().code == Code::kFailedPrecondition) {
        LeaveOut(rule, compiled.error());
      } else {
        Bad(rule, "detection", compiled.error().message, compiled.error().hint);
      }
      return;
    }
    Register(rule, {RuleKind::kDetection, set_.rules.size(), false});
    set_.rules.push_back({std::move(rule), std::move(compiled->names),
                          std::move(compiled->selections), std::move(compiled->condition)});
  }

  void ApplyFilter(Rule& filter) {
    filter.detection = std::move(filter.filter.detection);
    Placeholders placeholders;
    const LogSource logsource = filter.logsource;  // as written: that is how rules name theirs
    const Status applied = Apply(pipelines_, filter, placeholders);
    Result<Compiled> compiled =
        applied.has_value() ? CompileDetection(filter.detection, placeholders) : applied.error();
    if (!compiled.has_value()) {
      // Without it rules would say more than they should: that is an error, not something to skip.
      Bad(filter, "filter", compiled.error().message, compiled.error().hint);
      return;
    }
    ++set_.filters;
    const auto& wanted = filter.filter.rules;
    for (const std::string& key : wanted) {
      if (!places_.contains(key)) {
        Bad(filter, "filter.rules", "there is no rule \"" + key + "\"");
      }
    }
    for (ReadyRule& rule : set_.rules) {
      const bool named =
          wanted.empty() || std::any_of(wanted.begin(), wanted.end(), [&](const std::string& key) {
            return key == rule.rule.id || key == rule.rule.name;
          });
      if (named && rule.rule.logsource.Has(logsource)) {
        AddFilter(*compiled, filter.title, rule);
      }
    }
  }

  // Places correlation `index` after what it refers to; false when it cannot be.
  bool Resolve(std::size_t index, std::size_t depth) {
    if (state_[index] == State::kDone || state_[index] == State::kBad) {
      return state_[index] == State::kDone;
    }
    const Rule& rule = correlations_[index];
    if (state_[index] == State::kOpen || depth > kCorrelationDepthMax) {
      Bad(rule, "correlation.rules",
          state_[index] == State::kOpen
              ? "correlations refer to each other in a circle, through \"" + rule.Key() + "\""
              : "more than " + std::to_string(kCorrelationDepthMax) +
                    " correlations stand on each other");
      state_[index] = State::kBad;
      return false;
    }
    state_[index] = State::kOpen;
    ReadyCorrelation ready;
    bool good = true;
    for (const std::string& written : rule.correlation.rules) {
      good = AddPart(rule, written, depth, ready) && good && state_[index] == State::kOpen;
    }
    if (!good) {
      state_[index] = State::kBad;
      return false;
    }
    state_[index] = State::kDone;
    placed_[index] = set_.correlations.size();
    ready.rule = rule;
    set_.correlations.push_back(std::move(ready));
    return true;
  }

  bool AddPart(const Rule& rule, const std::string& written, std::size_t depth,
               ReadyCorrelation& ready) {
    for (std::size_t i = 0; i < correlations_.size(); ++i) {
      if (written == correlations_[i].id || written == correlations_[i].name) {
        const bool known_bad = state_[i] == State::kBad;
        if (!Resolve(i, depth + 1)) {
          if (known_bad) {
            LeaveOut(rule, {Code::kFailedPrecondition,
                            "it refers to \"" + written + "\", which has a problem",
                            {},
                            {}});
          }
          return false;
        }
        ready.parts.push_back({true, placed_[i], written});
        return true;
      }
    }
    const auto target = targets_.find(written);
    if (target == targets_.end()) {
      Bad(rule, "correlation.rules", "there is no rule \"" + written + "\"",
          "rules are named by id or name, and must be loaded together with this one");
      return false;
    }
    if (target->second.left_out) {
      LeaveOut(rule, {Code::kFailedPrecondition,
                      "it refers to \"" + written + "\", which is left out",
                      {},
                      {}});
      return false;
    }
    ready.parts.push_back({false, target->second.index, written});
    return true;
  }

  void MarkReported() {
    std::set<std::pair<bool, std::size_t>> kept;
    for (const ReadyCorrelation& one : set_.correlations) {
      for (const auto& part : one.parts) {
        if (one.rule.correlation.generate) {
          kept.emplace(part.correlation, part.index);
        }
      }
    }
    for (const ReadyCorrelation& one : set_.correlations) {
      for (const auto& part : one.parts) {
        if (!kept.contains({part.correlation, part.index})) {
          (part.correlation ? set_.correlations[part.index].reported
                            : set_.rules[part.index].reported) = false;
        }
      }
    }
  }

  const std::vector<Pipeline>& pipelines_;
  std::vector<Problem>& problems_;
  RuleSet set_;
  std::vector<Rule> correlations_;
  std::vector<Rule> filters_;
  std::vector<State> state_;
  std::vector<std::size_t> placed_;
  std::map<std::string, Place> places_;
  std::map<std::string, Target> targets_;
};

}  // namespace

RuleSet MakeReady(std::vector<Rule> rules, const std::vector<Pipeline>& pipelines,
                  std::vector<Problem>& problems) {
  return Maker(pipelines, problems).Make(std::move(rules));
}

}  // namespace ringfence::sigma
