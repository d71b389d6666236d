#include "cedar/parser.h"

#include <algorithm>
#include <charconv>

#include "cedar/expr_parser.h"
#include "cedar/limits.h"

namespace ringfence::cedar {
namespace {

class PolicyParser : public ExprParser {
 public:
  using ExprParser::ExprParser;

  bool ParsePolicy(PolicyBody& body) {
    body.begin = Peek().offset;
    body.arena = arena();
    if (!ParseAnnotations(body) || !ParseEffect(body) || !Expect("(") ||
        !ParseScopeVar("principal") || !ParseClause(Slot::kPrincipal, body.principal) ||
        !Expect(",") || !ParseScopeVar("action") || !ParseActionClause(body.action) ||
        !Expect(",") || !ParseScopeVar("resource") ||
        !ParseClause(Slot::kResource, body.resource)) {
      return false;
    }
    (void)Accept(",");
    if (!Expect(")") || !ParseConditions(body)) {
      return false;
    }
    body.end = Peek().offset + 1;
    if (!Expect(";")) {
      return false;
    }
    return Finish(body) || Fail(body.begin, "the policy is nested too deeply");
  }

 private:
  bool ParseAnnotations(PolicyBody& body) {
    while (Accept("@")) {
      const Token name = Peek();
      if (name.kind != Token::Kind::kIdent) {
        return Fail(name.offset, "expected the annotation's name");
      }
      Next();
      Annotation annotation{std::string(name.text), "", false};
      if (Accept("(")) {
        annotation.has_value = true;
        if (!ParseString(annotation.value) || !Expect(")")) {
          return false;
        }
      }
      if (body.annotation(annotation.name) != nullptr) {
        return Fail(name.offset, "the annotation @" + annotation.name + " is there twice");
      }
      body.annotations.push_back(std::move(annotation));
    }
    return true;
  }

  bool ParseEffect(PolicyBody& body) {
    if (!Peek().IsWord("permit") && !Peek().IsWord("forbid")) {
      return Fail(Peek().offset, "expected permit or forbid");
    }
    body.effect = Peek().IsWord("permit") ? Effect::kPermit : Effect::kForbid;
    Next();
    return true;
  }

  bool ParseScopeVar(std::string_view name) {
    if (!Peek().IsWord(name)) {
      return Fail(Peek().offset,
                  "the scope must be (principal, action, resource): expected " + std::string(name));
    }
    Next();
    return true;
  }

  bool ParseReference(Slot slot, ScopeClause& clause) {
    if (Peek().kind == Token::Kind::kSlot) {
      if (Peek().text != Name(slot)) {
        return Fail(Peek().offset, std::string(Peek().text) + " cannot stand here, only " +
                                       std::string(Name(slot)));
      }
      Next();
      clause.slot = true;
      return true;
    }
    return ParseScopeEntity(clause.entity);
  }

  bool ParseScopeEntity(EntityUid& uid) {
    if (Accept("(")) {
      Nesting nesting(*this);
      return nesting.ok() && ParseScopeEntity(uid) && Expect(")");
    }
    return ParseUid(uid);
  }

  bool ParseClause(Slot slot, ScopeClause& clause) {
    using Kind = ScopeClause::Kind;
    if (Accept("==")) {
      clause.kind = Kind::kEqual;
      return ParseReference(slot, clause);
    }
    if (AcceptWord("in")) {
      clause.kind = Kind::kIn;
      return ParseReference(slot, clause);
    }
    if (AcceptWord("is")) {
      clause.kind = Kind::kIs;
      if (!ParseTypePath(clause.type)) {
        return false;
      }
      if (AcceptWord("in")) {
        clause.kind = Kind::kIsIn;
        return ParseReference(slot, clause);
      }
    }
    return true;
  }

  bool ParseAction(ActionClause& clause) {
    EntityUid uid;
    const std::size_t offset = Peek().offset;
    if (!ParseScopeEntity(uid)) {
      return false;
    }
    if (!IsActionType(uid.type)) {
      return Fail(offset,
                  "the scope of an action needs entities of a type named Action, not " + uid.type);
    }
    clause.actions.push_back(std::move(uid));
    return true;
  }

  bool ParseActionClause(ActionClause& clause) {
    using Kind = ActionClause::Kind;
    if (Accept("==")) {
      clause.kind = Kind::kEqual;
      return ParseAction(clause);
    }
    if (!AcceptWord("in")) {
      return !Peek().IsWord("is") ||
             Fail(Peek().offset, "an action's scope takes == or in, not is");
    }
    if (!Accept("[")) {
      clause.kind = Kind::kIn;
      return ParseAction(clause);
    }
    clause.kind = Kind::kInList;
    while (!Accept("]")) {
      if (!ParseAction(clause) || (!Peek().Is("]") && !Expect(","))) {
        return false;
      }
    }
    return true;
  }

  bool ParseConditions(PolicyBody& body) {
    while (Peek().IsWord("when") || Peek().IsWord("unless")) {
      Condition condition{Peek().IsWord("when"), nullptr};
      Next();
      if (!Expect("{")) {
        return false;
      }
      condition.body = Expression();
      if (condition.body == nullptr || !Expect("}")) {
        return false;
      }
      body.conditions.push_back(condition);
    }
    return true;
  }
};

}  // namespace

Result<PolicySet> ParsePolicies(std::string_view text, const ParseOptions& options) {
  RINGFENCE_ASSIGN(const Tokens tokens, Tokenize(text));
  PolicyParser parser(text, tokens.tokens);
  PolicySet set;
  std::size_t count = 0;
  while (!parser.AtEnd()) {
    auto body = std::make_shared<PolicyBody>();
    body->id = "policy" + std::to_string(count++);
    if (!parser.ParsePolicy(*body)) {
      return parser.error();
    }
    if (const std::string* id = body->annotation("id"); options.id_annotations && id != nullptr) {
      body->id = *id;
    }
    const std::size_t begin = body->begin;
    const Status added = body->is_template() ? set.AddTemplate(body) : set.AddPolicy(body);
    if (!added.has_value()) {
      return Prefix(LineColumn(text, begin), added.error());
    }
  }
  return set;
}

Result<ParsedExpr> ParseExpr(std::string_view text) {
  RINGFENCE_ASSIGN(const Tokens tokens, Tokenize(text));
  ExprParser parser(text, tokens.tokens);
  const Expr* expr = parser.Expression();
  if (expr == nullptr || !parser.ExpectEnd()) {
    return parser.error();
  }
  return ParsedExpr{parser.arena(), expr};
}

Result<EntityUid> ParseEntityUid(std::string_view text) {
  RINGFENCE_ASSIGN(const Tokens tokens, Tokenize(text));
  ExprParser parser(text, tokens.tokens);
  EntityUid uid;
  if (!parser.ParseUid(uid) || !parser.ExpectEnd()) {
    return parser.error();
  }
  return uid;
}

Result<std::string> ParseTypeName(std::string_view text) {
  RINGFENCE_ASSIGN(const Tokens tokens, Tokenize(text));
  ExprParser parser(text, tokens.tokens);
  std::string type;
  if (!parser.ParseTypePath(type) || !parser.ExpectEnd()) {
    return parser.error();
  }
  return type;
}

}  // namespace ringfence::cedar
