// The readable syntax of schemas.

#include <algorithm>
#include <set>

#include "cedar/lexer.h"
#include "cedar/limits.h"
#include "cedar/raw_schema.h"

namespace ringfence::cedar {
namespace {

class SchemaParser {
 public:
  SchemaParser(std::string_view text, const std::vector<Token>& tokens)
      : text_(text), tokens_(tokens) {}

  bool Parse(RawSchema& out) {
    while (Peek().kind != Token::Kind::kEnd) {
      if (!Annotations()) {
        return false;
      }
      if (Peek().IsWord("namespace") && !Peek(1).Is("=")) {
        if (!Namespace(out)) {
          return false;
        }
      } else if (!Declaration(out[""])) {
        return false;
      }
    }
    return true;
  }

  const Error& error() const { return error_; }

 private:
  const Token& Peek(std::size_t ahead = 0) const {
    return tokens_[std::min(at_ + ahead, tokens_.size() - 1)];
  }
  void Next() { at_ += at_ + 1 < tokens_.size() ? 1 : 0; }
  std::string Where() const { return LineColumn(text_, Peek().offset); }

  bool Fail(const std::string& where, std::string message) {
    if (error_.message.empty()) {
      error_ = Error{Code::kInvalidArgument, where + ": " + std::move(message)};
    }
    return false;
  }
  bool Accept(std::string_view punct) {
    if (!Peek().Is(punct)) {
      return false;
    }
    Next();
    return true;
  }
  bool AcceptWord(std::string_view word) {
    if (!Peek().IsWord(word)) {
      return false;
    }
    Next();
    return true;
  }
  bool Expect(std::string_view punct) {
    return Accept(punct) || Fail(Where(), "expected \"" + std::string(punct) + "\", not \"" +
                                              std::string(Peek().text) + "\"");
  }

  bool Identifier(std::string& out) {
    if (Peek().kind != Token::Kind::kIdent) {
      return Fail(Where(), "expected a name");
    }
    out = Peek().text;
    Next();
    return true;
  }

  bool String(std::string& out) {
    std::string bad;
    if (Peek().kind != Token::Kind::kString) {
      return Fail(Where(), "expected a string");
    }
    if (!Unescape(Peek().text, out, bad)) {
      return Fail(Where(), "this string has " + bad + ", which means nothing");
    }
    Next();
    return true;
  }

  bool NameOrString(std::string& out) {
    return Peek().kind == Token::Kind::kString ? String(out) : Identifier(out);
  }

  // Ident {:: Ident}; stops before `::"id"`.
  bool Path(std::string& out) {
    if (!Identifier(out)) {
      return false;
    }
    while (Peek().Is("::") && Peek(1).kind == Token::Kind::kIdent) {
      Next();
      out += "::" + std::string(Peek().text);
      Next();
    }
    return true;
  }

  bool Annotations() {
    std::set<std::string> seen;
    while (Accept("@")) {
      std::string name;
      std::string value;
      const std::string where = Where();
      if (!Identifier(name) || (Accept("(") && !(String(value) && Expect(")")))) {
        return false;
      }
      if (!seen.insert(name).second) {
        return Fail(where, "the annotation @" + name + " is there twice");
      }
    }
    return true;
  }

  bool Namespace(RawSchema& out) {
    const std::string where = Where();
    Next();
    std::string name;
    if (!Path(name) || !Expect("{")) {
      return false;
    }
    const auto [space, fresh] = out.try_emplace(name);
    if (!fresh) {
      return Fail(where, "namespace " + name + " is there twice");
    }
    while (!Accept("}")) {
      if (!Annotations() || !Declaration(space->second)) {
        return false;
      }
    }
    return true;
  }

  bool Declaration(RawNamespace& space) {
    if (AcceptWord("entity")) {
      return EntityType(space);
    }
    if (AcceptWord("action")) {
      return Action(space);
    }
    if (AcceptWord("type")) {
      return CommonType(space);
    }
    return Fail(Where(), "expected entity, action, type or namespace");
  }

  bool CommonType(RawNamespace& space) {
    const std::string where = Where();
    std::string name;
    RawType type;
    if (!Identifier(name) || !Expect("=") || !AnyType(type) || !Expect(";")) {
      return false;
    }
    return space.common.emplace(name, std::move(type)).second ||
           Fail(where, "type " + name + " is there twice");
  }

  // One path, or a list of them in brackets.
  bool Paths(std::vector<std::string>& out) {
    std::string path;
    if (!Accept("[")) {
      return Path(path) && (out.push_back(std::move(path)), true);
    }
    while (!Accept("]")) {
      if (!Path(path) || (!Peek().Is("]") && !Expect(","))) {
        return false;
      }
      out.push_back(path);
    }
    return true;
  }

  bool EntityType(RawNamespace& space) {
    RawEntityType entity;
    entity.where = Where();
    std::vector<std::string> names(1);
    if (!Identifier(names[0])) {
      return false;
    }
    while (Accept(",")) {
      if (!Identifier(names.emplace_back())) {
        return false;
      }
    }
    if (AcceptWord("enum")) {
      if (!Expect("[")) {
        return false;
      }
      while (!Accept("]")) {
        if (!String(entity.enum_ids.emplace_back()) || (!Peek().Is("]") && !Expect(","))) {
          return false;
        }
      }
      if (entity.enum_ids.empty()) {
        return Fail(entity.where, "an enumeration needs at least one id");
      }
    } else {
      if (AcceptWord("in") && !Paths(entity.member_of)) {
        return false;
      }
      if ((Accept("=") || Peek().Is("{")) && !AnyType(entity.shape)) {
        return false;
      }
      if (AcceptWord("tags") && !AnyType(entity.tags.emplace())) {
        return false;
      }
    }
    if (!Expect(";")) {
      return false;
    }
    for (const std::string& name : names) {
      if (!space.entities.emplace(name, entity).second) {
        return Fail(entity.where, "entity type " + name + " is there twice");
      }
    }
    return true;
  }

  bool Parent(RawActionParent& out) {
    if (Peek().kind == Token::Kind::kString) {
      return String(out.id);
    }
    std::string path;
    if (!Path(path)) {
      return false;
    }
    if (Accept("::")) {
      out.type = std::move(path);
      return String(out.id);
    }
    out.id = std::move(path);
    return out.id.find(':') == std::string::npos ||
           Fail(Where(), "an action of another namespace is written " + out.id + "::\"id\"");
  }

  bool Action(RawNamespace& space) {
    RawAction action;
    action.where = Where();
    std::vector<std::string> names(1);
    if (!NameOrString(names[0])) {
      return false;
    }
    while (Accept(",")) {
      if (!NameOrString(names.emplace_back())) {
        return false;
      }
    }
    if (AcceptWord("in")) {
      if (!Accept("[")) {
        if (!Parent(action.parents.emplace_back())) {
          return false;
        }
      } else {
        while (!Accept("]")) {
          if (!Parent(action.parents.emplace_back()) || (!Peek().Is("]") && !Expect(","))) {
            return false;
          }
        }
      }
    }
    if (AcceptWord("appliesTo") && !AppliesTo(action)) {
      return false;
    }
    if (AcceptWord("attributes") && !(Expect("{") && Expect("}"))) {
      return false;
    }
    if (!Expect(";")) {
      return false;
    }
    for (const std::string& name : names) {
      if (!space.actions.emplace(name, action).second) {
        return Fail(action.where, "action \"" + name + "\" is there twice");
      }
    }
    return true;
  }

  bool AppliesTo(RawAction& action) {
    if (!Expect("{")) {
      return false;
    }
    std::set<std::string> seen;
    while (!Accept("}")) {
      const std::string where = Where();
      std::string name;
      if (!Identifier(name) || !Expect(":")) {
        return false;
      }
      if (!seen.insert(name).second) {
        return Fail(where, name + " is there twice");
      }
      const bool parsed = name == "principal"  ? Paths(action.principals)
                          : name == "resource" ? Paths(action.resources)
                          : name == "context"
                              ? AnyType(action.context)
                              : Fail(where, "expected principal, resource or context");
      if (!parsed || (!Peek().Is("}") && !Expect(","))) {
        return false;
      }
    }
    if (!seen.contains("principal") || !seen.contains("resource")) {
      return Fail(action.where, "appliesTo must say principal and resource");
    }
    return true;
  }

  bool AnyType(RawType& type) {
    type.where = Where();
    if (++depth_ > kNestingMax) {
      return Fail(type.where, "types nested too deeply");
    }
    const bool ok = AnyTypeInner(type);
    --depth_;
    return ok;
  }

  bool AnyTypeInner(RawType& type) {
    if (Peek().IsWord("Set") && Peek(1).Is("<")) {
      Next();
      Next();
      type.kind = RawType::Kind::kSet;
      return AnyType(type.element.emplace_back()) && Expect(">");
    }
    if (!Peek().Is("{")) {
      type.kind = RawType::Kind::kName;
      return Path(type.name);
    }
    Next();
    type.kind = RawType::Kind::kRecord;
    std::set<std::string> seen;
    while (!Accept("}")) {
      if (!Annotations()) {
        return false;
      }
      const std::string where = Where();
      RawAttribute& attribute = type.attributes.emplace_back();
      if (!NameOrString(attribute.name)) {
        return false;
      }
      attribute.required = !Accept("?");
      if (!Expect(":") || !AnyType(attribute.type) || (!Peek().Is("}") && !Expect(","))) {
        return false;
      }
      if (!seen.insert(attribute.name).second) {
        return Fail(where, "the attribute \"" + attribute.name + "\" is there twice");
      }
    }
    return true;
  }

  std::string_view text_;
  const std::vector<Token>& tokens_;
  std::size_t at_ = 0;
  int depth_ = 0;
  Error error_;
};

}  // namespace

Result<RawSchema> ParseCedarSchema(std::string_view text) {
  RINGFENCE_ASSIGN(const Tokens tokens, Tokenize(text));
  SchemaParser parser(text, tokens.tokens);
  RawSchema out;
  if (!parser.Parse(out)) {
    return parser.error();
  }
  return out;
}

}  // namespace ringfence::cedar
