#include "cedar/expr_parser.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <map>

#include "cedar/extension.h"
#include "cedar/limits.h"

namespace ringfence::cedar {
namespace {

struct BuiltinMethod {
  std::string_view name;
  Op op;
  std::size_t arguments;
};
constexpr std::array<BuiltinMethod, 6> kMethods = {{{"contains", Op::kContains, 1},
                                                    {"containsAll", Op::kContainsAll, 1},
                                                    {"containsAny", Op::kContainsAny, 1},
                                                    {"isEmpty", Op::kIsEmpty, 0},
                                                    {"getTag", Op::kGetTag, 1},
                                                    {"hasTag", Op::kHasTag, 1}}};

struct Relational {
  std::string_view text;
  Op op;
};
constexpr std::array<Relational, 6> kRelations = {{{"==", Op::kEqual},
                                                   {"!=", Op::kNotEqual},
                                                   {"<", Op::kLess},
                                                   {"<=", Op::kLessEqual},
                                                   {">", Op::kGreater},
                                                   {">=", Op::kGreaterEqual}}};

bool VarOf(std::string_view word, Var& var) {
  for (const Var candidate : {Var::kPrincipal, Var::kAction, Var::kResource, Var::kContext}) {
    if (word == Name(candidate)) {
      var = candidate;
      return true;
    }
  }
  return false;
}

}  // namespace

ExprParser::Nesting::Nesting(ExprParser& parser) : parser_(parser), ok_(true) {
  if (++parser_.nesting_ > kNestingMax) {
    ok_ = parser_.Fail(parser_.Peek().offset,
                       "nested more than " + std::to_string(kNestingMax) + " deep");
  }
}

bool ExprParser::Fail(std::size_t offset, std::string message) {
  if (error_.message.empty()) {
    error_ = Error{Code::kInvalidArgument, LineColumn(text_, offset) + ": " + std::move(message)};
  }
  return false;
}

const Expr* ExprParser::FailExpr(std::size_t offset, std::string message) {
  Fail(offset, std::move(message));
  return nullptr;
}

const Expr* ExprParser::Make(Op op, std::vector<const Expr*> args, std::size_t offset,
                             std::string text) {
  const Expr* expr = arena_->Make(op, std::move(args), offset, std::move(text));
  return expr != nullptr ? expr
                         : FailExpr(offset, "operators nested more than " +
                                                std::to_string(kExprDepthMax) + " deep");
}

bool ExprParser::Accept(std::string_view punct) {
  if (!Peek().Is(punct)) {
    return false;
  }
  Next();
  return true;
}

bool ExprParser::AcceptWord(std::string_view word) {
  if (!Peek().IsWord(word)) {
    return false;
  }
  Next();
  return true;
}

bool ExprParser::Expect(std::string_view punct) {
  if (Accept(punct)) {
    return true;
  }
  const std::string seen = AtEnd() ? "the end" : "\"" + std::string(Peek().text) + "\"";
  return Fail(Peek().offset, "expected \"" + std::string(punct) + "\", not " + seen);
}

bool ExprParser::ExpectEnd() {
  return AtEnd() || Fail(Peek().offset, "expected the end of the text");
}

bool ExprParser::ParseString(std::string& out) {
  if (Peek().kind != Token::Kind::kString) {
    return Fail(Peek().offset, "expected a string");
  }
  std::string bad;
  if (!Unescape(Peek().text, out, bad)) {
    return Fail(Peek().offset, "this string has " + bad + ", which means nothing");
  }
  Next();
  return true;
}

bool ExprParser::ParsePath(std::string& path, bool& ends_in_string) {
  ends_in_string = false;
  path.clear();
  while (true) {
    const Token part = Peek();
    if (part.kind != Token::Kind::kIdent) {
      return Fail(part.offset, "expected a name");
    }
    if (IsReservedWord(part.text) || part.text == "__cedar") {
      return Fail(part.offset,
                  "\"" + std::string(part.text) + "\" is reserved and cannot be a name");
    }
    path += part.text;
    Next();
    if (!Peek().Is("::")) {
      return true;
    }
    Next();
    if (Peek().kind == Token::Kind::kString) {
      ends_in_string = true;
      return true;
    }
    path += "::";
  }
}

bool ExprParser::ParseUid(EntityUid& uid) {
  bool ends_in_string = false;
  if (!ParsePath(uid.type, ends_in_string)) {
    return false;
  }
  if (!ends_in_string) {
    return Fail(Peek().offset, "expected an entity such as " + uid.type + "::\"id\"");
  }
  return ParseString(uid.id);
}

bool ExprParser::ParseTypePath(std::string& path) {
  bool ends_in_string = false;
  return ParsePath(path, ends_in_string) &&
         (!ends_in_string || Fail(Peek().offset, "expected a type, not an entity"));
}

const Expr* ExprParser::Expression() {
  Nesting nesting(*this);
  if (!nesting.ok()) {
    return nullptr;
  }
  const std::size_t offset = Peek().offset;
  if (!AcceptWord("if")) {
    return Or();
  }
  const Expr* test = Expression();
  if (test == nullptr) {
    return nullptr;
  }
  if (!AcceptWord("then")) {
    return FailExpr(Peek().offset, "expected then");
  }
  const Expr* yes = Expression();
  if (yes == nullptr) {
    return nullptr;
  }
  if (!AcceptWord("else")) {
    return FailExpr(Peek().offset, "expected else");
  }
  const Expr* no = Expression();
  return no == nullptr ? nullptr : Make(Op::kIf, {test, yes, no}, offset);
}

const Expr* ExprParser::Or() {
  const Expr* left = And();
  while (left != nullptr && Peek().Is("||")) {
    const std::size_t offset = Peek().offset;
    Next();
    const Expr* right = And();
    left = right == nullptr ? nullptr : Make(Op::kOr, {left, right}, offset);
  }
  return left;
}

const Expr* ExprParser::And() {
  const Expr* left = Relation();
  while (left != nullptr && Peek().Is("&&")) {
    const std::size_t offset = Peek().offset;
    Next();
    const Expr* right = Relation();
    left = right == nullptr ? nullptr : Make(Op::kAnd, {left, right}, offset);
  }
  return left;
}

const Expr* ExprParser::Relation() {
  const Expr* left = Sum();
  if (left == nullptr) {
    return nullptr;
  }
  const std::size_t offset = Peek().offset;
  const Expr* out = nullptr;
  if (AcceptWord("has")) {
    out = Has(left, offset);
  } else if (AcceptWord("like")) {
    out = Like(left, offset);
  } else if (AcceptWord("is")) {
    out = Is(left, offset);
  } else if (AcceptWord("in")) {
    const Expr* right = Sum();
    out = right == nullptr ? nullptr : Make(Op::kIn, {left, right}, offset);
  } else {
    const auto relation =
        std::find_if(kRelations.begin(), kRelations.end(),
                     [&](const Relational& candidate) { return Peek().Is(candidate.text); });
    if (relation == kRelations.end()) {
      return Peek().Is("=") ? FailExpr(offset, "= is no operator; for equality write ==") : left;
    }
    Next();
    const Expr* right = Sum();
    out = right == nullptr ? nullptr : Make(relation->op, {left, right}, offset);
  }
  if (out == nullptr) {
    return nullptr;
  }
  const bool another =
      std::any_of(kRelations.begin(), kRelations.end(),
                  [&](const Relational& candidate) { return Peek().Is(candidate.text); }) ||
      Peek().IsWord("in") || Peek().IsWord("has") || Peek().IsWord("like") || Peek().IsWord("is");
  return another ? FailExpr(Peek().offset, "comparisons do not chain: use parentheses") : out;
}

// `e has a.b.c` means `e has a && e.a has b && e.a.b has c`. It stays one operator: written out, a
// chain inside a chain inside a chain would double at each step.
const Expr* ExprParser::Has(const Expr* left, std::size_t offset) {
  if (Peek().kind == Token::Kind::kString) {
    std::string name;
    return ParseString(name) ? Make(Op::kHasAttribute, {left}, offset, name) : nullptr;
  }
  Expr has;
  has.op = Op::kHasPath;
  has.args = {left};
  has.offset = offset;
  do {
    const Token name = Peek();
    if (name.kind != Token::Kind::kIdent || IsReservedWord(name.text) || name.text == "__cedar") {
      return FailExpr(name.offset, "expected the name of an attribute, or a string");
    }
    Next();
    has.keys.emplace_back(name.text);
  } while (Accept("."));
  if (has.keys.size() == 1) {
    return Make(Op::kHasAttribute, {left}, offset, std::move(has.keys.front()));
  }
  const Expr* out = arena_->Add(std::move(has));
  return out != nullptr ? out : FailExpr(offset, "operators nested too deeply");
}

const Expr* ExprParser::Like(const Expr* left, std::size_t offset) {
  if (Peek().kind != Token::Kind::kString) {
    return FailExpr(Peek().offset, "like needs a string literal on its right");
  }
  Expr like;
  like.op = Op::kLike;
  like.args = {left};
  like.offset = offset;
  std::string bad;
  if (!UnescapePattern(Peek().text, like.pattern, bad)) {
    return FailExpr(Peek().offset, "this pattern has " + bad + ", which means nothing");
  }
  Next();
  const Expr* out = arena_->Add(std::move(like));
  return out != nullptr ? out : FailExpr(offset, "operators nested too deeply");
}

const Expr* ExprParser::Is(const Expr* left, std::size_t offset) {
  std::string type;
  if (!ParseTypePath(type)) {
    return nullptr;
  }
  std::vector<const Expr*> args = {left};
  if (AcceptWord("in")) {
    args.push_back(Sum());
    if (args.back() == nullptr) {
      return nullptr;
    }
  }
  return Make(Op::kIs, std::move(args), offset, std::move(type));
}

const Expr* ExprParser::Sum() {
  const Expr* left = Product();
  while (left != nullptr && (Peek().Is("+") || Peek().Is("-"))) {
    const Op op = Peek().Is("+") ? Op::kAdd : Op::kSubtract;
    const std::size_t offset = Peek().offset;
    Next();
    const Expr* right = Product();
    left = right == nullptr ? nullptr : Make(op, {left, right}, offset);
  }
  return left;
}

const Expr* ExprParser::Product() {
  const Expr* left = Unary();
  while (left != nullptr && (Peek().Is("*") || Peek().Is("/") || Peek().Is("%"))) {
    const Token op = Peek();
    if (!op.Is("*")) {
      return FailExpr(op.offset, "Cedar has no " + std::string(op.text) + " operator");
    }
    Next();
    const Expr* right = Unary();
    left = right == nullptr ? nullptr : Make(Op::kMultiply, {left, right}, op.offset);
  }
  return left;
}

const Expr* ExprParser::Unary() {
  const Token first = Peek();
  if (!first.Is("!") && !first.Is("-")) {
    return Member();
  }
  std::size_t count = 0;
  while (Accept(first.text)) {
    ++count;
  }
  if (count > 4) {
    return FailExpr(first.offset, "more than four of " + std::string(first.text) + " in a row");
  }
  if (first.Is("-")) {
    return Negated(count, first.offset);
  }
  const Expr* out = Member();
  for (std::size_t i = 0; i < count && out != nullptr; ++i) {
    out = Make(Op::kNot, {out}, first.offset);
  }
  return out;
}

// The last dash before a bare number belongs to the number, so that the least one can be written.
const Expr* ExprParser::Negated(std::size_t dashes, std::size_t offset) {
  const Expr* out = nullptr;
  const bool bare = Peek().kind == Token::Kind::kNumber && !Peek(1).Is(".") && !Peek(1).Is("[") &&
                    !Peek(1).Is("(");
  if (bare) {
    out = Number(true);
    --dashes;
  } else {
    out = Member();
  }
  for (std::size_t i = 0; i < dashes && out != nullptr; ++i) {
    out = Make(Op::kNegate, {out}, offset);
  }
  return out;
}

const Expr* ExprParser::Number(bool negative) {
  const Token token = Peek();
  std::uint64_t size = 0;
  const auto [end, bad] =
      std::from_chars(token.text.data(), token.text.data() + token.text.size(), size);
  const std::uint64_t most = static_cast<std::uint64_t>(INT64_MAX) + (negative ? 1 : 0);
  if (bad != std::errc() || size > most) {
    return FailExpr(token.offset, "this number does not fit 64 bits");
  }
  Next();
  return arena_->Literal(Value::Long(static_cast<std::int64_t>(negative ? 0 - size : size)),
                         token.offset);
}

bool ExprParser::Arguments(std::string_view close, std::vector<const Expr*>& out) {
  while (!Accept(close)) {
    const Expr* one = Expression();
    if (one == nullptr) {
      return false;
    }
    out.push_back(one);
    if (!Peek().Is(close) && !Expect(",")) {
      return false;
    }
  }
  return true;
}

const Expr* ExprParser::Member() {
  const Expr* left = Primary();
  while (left != nullptr) {
    const std::size_t offset = Peek().offset;
    if (Accept(".")) {
      const Token name = Peek();
      if (name.kind != Token::Kind::kIdent || IsReservedWord(name.text)) {
        return FailExpr(name.offset, "expected the name of an attribute or method");
      }
      Next();
      left = Peek().Is("(") ? Method(left, name)
                            : Make(Op::kGetAttribute, {left}, offset, std::string(name.text));
    } else if (Accept("[")) {
      const Expr* index = Expression();
      if (index == nullptr || !Expect("]")) {
        return nullptr;
      }
      if (index->op != Op::kLiteral || !index->value.is(Value::Kind::kString)) {
        return FailExpr(offset, "between [ and ] stands a string literal");
      }
      left = Make(Op::kGetAttribute, {left}, offset, index->value.string());
    } else if (Peek().Is("(")) {
      return FailExpr(offset, "this cannot be called");
    } else {
      return left;
    }
  }
  return nullptr;
}

const Expr* ExprParser::Method(const Expr* left, const Token& name) {
  Next();  // (
  std::vector<const Expr*> args = {left};
  if (!Arguments(")", args)) {
    return nullptr;
  }
  for (const BuiltinMethod& method : kMethods) {
    if (method.name == name.text) {
      return args.size() == method.arguments + 1
                 ? Make(method.op, std::move(args), name.offset)
                 : FailExpr(name.offset, std::string(name.text) + " takes " +
                                             std::to_string(method.arguments) + " argument(s)");
    }
  }
  const ExtensionFunction* function = FindExtensionFunction(name.text);
  if (function == nullptr) {
    return FailExpr(name.offset, "there is no method " + std::string(name.text));
  }
  if (!function->method) {
    return FailExpr(name.offset, std::string(name.text) + " is a function: write " +
                                     std::string(name.text) + "(...)");
  }
  return Make(Op::kCall, std::move(args), name.offset, std::string(name.text));
}

const Expr* ExprParser::NameOrCall() {
  const Token first = Peek();
  Var var = Var::kPrincipal;
  if (VarOf(first.text, var) && !Peek(1).Is("::") && !Peek(1).Is("(")) {
    Next();
    Expr expr;
    expr.op = Op::kVar;
    expr.var = var;
    expr.offset = first.offset;
    return arena_->Add(std::move(expr));
  }
  std::string path;
  bool ends_in_string = false;
  if (!ParsePath(path, ends_in_string)) {
    return nullptr;
  }
  if (ends_in_string) {
    EntityUid uid{path, ""};
    return ParseString(uid.id) ? arena_->Literal(Value::Entity(std::move(uid)), first.offset)
                               : nullptr;
  }
  if (!Accept("(")) {
    return FailExpr(first.offset, "\"" + path +
                                      "\" means nothing here: expected principal, action, "
                                      "resource, context, an entity or a function");
  }
  const ExtensionFunction* function = FindExtensionFunction(path);
  if (function == nullptr || function->method) {
    return FailExpr(first.offset,
                    path + (function == nullptr ? " is not a function"
                                                : " is a method: write x." + path + "(...)"));
  }
  std::vector<const Expr*> args;
  return Arguments(")", args) ? Make(Op::kCall, std::move(args), first.offset, path) : nullptr;
}

const Expr* ExprParser::Record() {
  const std::size_t offset = Peek().offset;
  Next();  // {
  std::map<std::string, const Expr*> members;
  while (!Accept("}")) {
    const Token key = Peek();
    std::string name(key.text);
    if (key.kind == Token::Kind::kString) {
      if (!ParseString(name)) {
        return nullptr;
      }
    } else if (key.kind == Token::Kind::kIdent && !IsReservedWord(key.text)) {
      Next();
    } else {
      return FailExpr(key.offset, "expected the name of an attribute, or a string");
    }
    if (!Expect(":")) {
      return nullptr;
    }
    const Expr* member = Expression();
    if (member == nullptr) {
      return nullptr;
    }
    if (!members.emplace(std::move(name), member).second) {
      return FailExpr(key.offset, "the record has this attribute twice");
    }
    if (!Peek().Is("}") && !Expect(",")) {
      return nullptr;
    }
  }
  Expr record;
  record.op = Op::kRecord;
  record.offset = offset;
  for (auto& [name, member] : members) {
    record.keys.push_back(name);
    record.args.push_back(member);
  }
  const Expr* out = arena_->Add(std::move(record));
  return out != nullptr ? out : FailExpr(offset, "operators nested too deeply");
}

const Expr* ExprParser::Primary() {
  const Token token = Peek();
  switch (token.kind) {
    case Token::Kind::kNumber:
      return Number(false);
    case Token::Kind::kString: {
      std::string text;
      return ParseString(text) ? arena_->Literal(Value::String(std::move(text)), token.offset)
                               : nullptr;
    }
    case Token::Kind::kSlot:
      return FailExpr(token.offset, "slots can only stand in the scope");
    case Token::Kind::kIdent:
      if (token.text == "true" || token.text == "false") {
        Next();
        return arena_->Literal(Value::Bool(token.text == "true"), token.offset);
      }
      return NameOrCall();
    case Token::Kind::kPunct:
      if (Accept("(")) {
        const Expr* inner = Expression();
        return inner != nullptr && Expect(")") ? inner : nullptr;
      }
      if (Accept("[")) {
        std::vector<const Expr*> elements;
        return Arguments("]", elements) ? Make(Op::kSet, std::move(elements), token.offset)
                                        : nullptr;
      }
      if (token.Is("{")) {
        return Record();
      }
      break;
    case Token::Kind::kEnd:
      break;
  }
  return FailExpr(token.offset,
                  token.kind == Token::Kind::kEnd
                      ? std::string("expected an expression, not the end")
                      : "expected an expression, not \"" + std::string(token.text) + "\"");
}

}  // namespace ringfence::cedar
