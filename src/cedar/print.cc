#include "cedar/print.h"

#include "cedar/extension.h"

namespace ringfence::cedar {
namespace {

// How tightly an operator binds: what stands inside one that binds tighter needs parentheses.
enum Level { kLoose, kOrLevel, kAndLevel, kRelation, kSum, kProduct, kUnary, kMember };

struct OpFacts {
  Op op;
  Level level;
  std::string_view text;
};
constexpr OpFacts kInfix[] = {
    {Op::kOr, kOrLevel, "||"},      {Op::kAnd, kAndLevel, "&&"},
    {Op::kEqual, kRelation, "=="},  {Op::kNotEqual, kRelation, "!="},
    {Op::kLess, kRelation, "<"},    {Op::kLessEqual, kRelation, "<="},
    {Op::kGreater, kRelation, ">"}, {Op::kGreaterEqual, kRelation, ">="},
    {Op::kIn, kRelation, "in"},     {Op::kAdd, kSum, "+"},
    {Op::kSubtract, kSum, "-"},     {Op::kMultiply, kProduct, "*"},
};
struct MethodFacts {
  Op op;
  std::string_view text;
};
constexpr MethodFacts kMethods[] = {
    {Op::kContains, "contains"},       {Op::kContainsAll, "containsAll"},
    {Op::kContainsAny, "containsAny"}, {Op::kIsEmpty, "isEmpty"},
    {Op::kGetTag, "getTag"},           {Op::kHasTag, "hasTag"},
};

const OpFacts* Infix(Op op) {
  for (const OpFacts& facts : kInfix) {
    if (facts.op == op) {
      return &facts;
    }
  }
  return nullptr;
}

const MethodFacts* MethodOf(Op op) {
  for (const MethodFacts& facts : kMethods) {
    if (facts.op == op) {
      return &facts;
    }
  }
  return nullptr;
}

std::string AttributeText(const std::string& name) {
  return IsIdentifier(name) && !IsReservedWord(name) ? name : Quoted(name);
}

std::string Print(const Expr& expr, Level within);

std::string List(const Expr& expr, std::size_t from) {
  std::string out;
  for (std::size_t i = from; i < expr.args.size(); ++i) {
    out += (i == from ? "" : ", ") + Print(*expr.args[i], kLoose);
  }
  return out;
}

std::string Parenthesised(std::string text, Level own, Level within) {
  return own < within ? "(" + std::move(text) + ")" : text;
}

std::string PrintCall(const Expr& expr) {
  const ExtensionFunction* function = FindExtensionFunction(expr.text);
  if (function != nullptr && function->method && !expr.args.empty()) {
    return Print(*expr.args[0], kMember) + "." + expr.text + "(" + List(expr, 1) + ")";
  }
  return expr.text + "(" + List(expr, 0) + ")";
}

std::string PrintRecord(const Expr& expr) {
  std::string out = "{";
  for (std::size_t i = 0; i < expr.args.size(); ++i) {
    out += (i == 0 ? "" : ", ") + AttributeText(expr.keys[i]) + ": " + Print(*expr.args[i], kLoose);
  }
  return out + "}";
}

std::string PrintLiteral(const Value& value, Level within) {
  const bool negative = value.is(Value::Kind::kLong) && value.number() < 0;
  return negative && within > kUnary ? "(" + ToText(value) + ")" : ToText(value);
}

std::string PrintPostfix(const Expr& expr, Level within) {
  if (expr.op == Op::kIf) {
    return Parenthesised("if " + Print(*expr.args[0], kLoose) + " then " +
                             Print(*expr.args[1], kLoose) + " else " + Print(*expr.args[2], kLoose),
                         kLoose, within);
  }
  if (expr.op == Op::kGetAttribute) {
    const std::string base = Print(*expr.args[0], kMember);
    return IsIdentifier(expr.text) && !IsReservedWord(expr.text)
               ? base + "." + expr.text
               : base + "[" + Quoted(expr.text) + "]";
  }
  std::string out = Print(*expr.args[0], kSum);
  if (expr.op == Op::kHasAttribute) {
    out += " has " + (expr.text == "__cedar" ? Quoted(expr.text) : AttributeText(expr.text));
  } else if (expr.op == Op::kHasPath) {
    out += " has ";
    for (std::size_t i = 0; i < expr.keys.size(); ++i) {
      out += (i == 0 ? "" : ".") + expr.keys[i];
    }
  } else if (expr.op == Op::kLike) {
    out += " like " + ToText(expr.pattern);
  } else {
    out += " is " + expr.text +
           (expr.args.size() > 1 ? " in " + Print(*expr.args[1], kSum) : std::string());
  }
  return Parenthesised(std::move(out), kRelation, within);
}

std::string PrintUnary(const Expr& expr, Level within) {
  // No two in a row: more than four would not parse, and -(1) is not the literal -1.
  const Expr& inner = *expr.args[0];
  const bool bare_number = inner.op == Op::kLiteral && inner.value.is(Value::Kind::kLong);
  std::string text = Print(inner, kMember);
  if (bare_number && text.front() != '(') {
    text = "(" + text + ")";
  }
  return Parenthesised((expr.op == Op::kNot ? "!" : "-") + text, kUnary, within);
}

std::string Print(const Expr& expr, Level within) {
  if (const OpFacts* facts = Infix(expr.op)) {
    const auto tighter = static_cast<Level>(facts->level + 1);
    const Level left = facts->level == kRelation ? tighter : facts->level;
    return Parenthesised(Print(*expr.args[0], left) + " " + std::string(facts->text) + " " +
                             Print(*expr.args[1], tighter),
                         facts->level, within);
  }
  if (const MethodFacts* method = MethodOf(expr.op)) {
    return Print(*expr.args[0], kMember) + "." + std::string(method->text) + "(" + List(expr, 1) +
           ")";
  }
  if (expr.op == Op::kLiteral) {
    return PrintLiteral(expr.value, within);
  }
  if (expr.op == Op::kVar) {
    return std::string(Name(expr.var));
  }
  if (expr.op == Op::kSlot) {
    return std::string(Name(expr.slot));
  }
  if (expr.op == Op::kNot || expr.op == Op::kNegate) {
    return PrintUnary(expr, within);
  }
  if (expr.op == Op::kSet) {
    return "[" + List(expr, 0) + "]";
  }
  if (expr.op == Op::kRecord) {
    return PrintRecord(expr);
  }
  return expr.op == Op::kCall ? PrintCall(expr) : PrintPostfix(expr, within);
}

std::string ScopeText(Slot slot, const ScopeClause& clause) {
  using Kind = ScopeClause::Kind;
  const std::string name(Name(slot).substr(1));
  const std::string object = clause.slot ? std::string(Name(slot)) : ToText(clause.entity);
  switch (clause.kind) {
    case Kind::kAny:
      return name;
    case Kind::kEqual:
      return name + " == " + object;
    case Kind::kIn:
      return name + " in " + object;
    case Kind::kIs:
      return name + " is " + clause.type;
    case Kind::kIsIn:
      return name + " is " + clause.type + " in " + object;
  }
  return name;
}

std::string ActionText(const ActionClause& clause) {
  using Kind = ActionClause::Kind;
  switch (clause.kind) {
    case Kind::kAny:
      return "action";
    case Kind::kEqual:
      return "action == " + ToText(clause.actions.front());
    case Kind::kIn:
      return "action in " + ToText(clause.actions.front());
    case Kind::kInList: {
      std::string out = "action in [";
      for (const EntityUid& uid : clause.actions) {
        out += (out.back() == '[' ? "" : ", ") + ToText(uid);
      }
      return out + "]";
    }
  }
  return "action";
}

}  // namespace

std::string ToText(const Expr& expr) { return Print(expr, kLoose); }

std::string ToText(const PolicyBody& body) {
  std::string out;
  for (const Annotation& annotation : body.annotations) {
    out += "@" + annotation.name;
    out += annotation.has_value ? "(" + Quoted(annotation.value) + ")\n" : "\n";
  }
  out += body.effect == Effect::kPermit ? "permit(" : "forbid(";
  out += ScopeText(Slot::kPrincipal, body.principal) + ", " + ActionText(body.action) + ", " +
         ScopeText(Slot::kResource, body.resource) + ")";
  for (const Condition& condition : body.conditions) {
    out += (condition.when ? " when { " : " unless { ") + ToText(*condition.body) + " }";
  }
  out += ";\n";
  const auto formatted = Format(out);
  return formatted.has_value() ? *formatted : out;
}

}  // namespace ringfence::cedar
