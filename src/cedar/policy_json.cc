#include "cedar/policy_json.h"

#include <algorithm>
#include <array>

#include "cedar/extension.h"
#include "cedar/json.h"
#include "cedar/limits.h"
#include "cedar/parser.h"
#include "cedar/policy_json_ops.h"

namespace ringfence::cedar {
namespace {

template <std::size_t N>
const NamedOp* ByName(const std::array<NamedOp, N>& table, std::string_view name) {
  const auto found = std::find_if(table.begin(), table.end(),
                                  [&](const NamedOp& entry) { return entry.name == name; });
  return found == table.end() ? nullptr : &*found;
}

Error Wrong(std::string message) { return Error{Code::kInvalidArgument, std::move(message)}; }

std::string_view View(const boost::json::string& text) { return {text.data(), text.size()}; }

Result<const Json*> Member(const Json& json, std::string_view name) {
  const JsonObject* object = json.if_object();
  const Json* found = object == nullptr ? nullptr : object->if_contains(name);
  if (found == nullptr) {
    return Wrong("the member " + Quoted(name) + " is missing");
  }
  return found;
}

Result<std::string> TextMember(const Json& json, std::string_view name) {
  RINGFENCE_ASSIGN(const Json* found, Member(json, name));
  if (!found->is_string()) {
    return Wrong("the member " + Quoted(name) + " must be text");
  }
  return std::string(View(found->get_string()));
}

class ExprReader {
 public:
  explicit ExprReader(ExprArena& arena) : arena_(arena) {}

  Result<const Expr*> Read(const Json& json) {
    const JsonObject* object = json.if_object();
    if (object == nullptr || object->size() != 1) {
      return Wrong("an expression is an object with one member");
    }
    const std::string_view name = object->begin()->key();
    const Json& body = object->begin()->value();
    if (name == "Value") {
      RINGFENCE_ASSIGN(const Value value, ValueFromJson(body, nullptr, "Value"));
      return FromValue(value);
    }
    if (name == "Var") {
      return ReadVar(body);
    }
    if (const NamedOp* op = ByName(kBinary, name)) {
      RINGFENCE_ASSIGN(const Json* left, Member(body, "left"));
      RINGFENCE_ASSIGN(const Json* right, Member(body, "right"));
      RINGFENCE_ASSIGN(const Expr* a, Read(*left));
      RINGFENCE_ASSIGN(const Expr* b, Read(*right));
      return Make(op->op, {a, b});
    }
    if (const NamedOp* op = ByName(kUnary, name)) {
      RINGFENCE_ASSIGN(const Json* arg, Member(body, "arg"));
      RINGFENCE_ASSIGN(const Expr* a, Read(*arg));
      return Make(op->op, {a});
    }
    if (name == "if-then-else") {
      return ReadIf(body);
    }
    if (name == "." || name == "has") {
      return ReadAttribute(name == "." ? Op::kGetAttribute : Op::kHasAttribute, body);
    }
    if (name == "is") {
      return ReadIs(body);
    }
    if (name == "like") {
      return ReadLike(body);
    }
    if (name == "Set") {
      RINGFENCE_ASSIGN(std::vector<const Expr*> args, ReadAll(body));
      return Make(Op::kSet, std::move(args));
    }
    if (name == "Record") {
      return ReadRecord(body);
    }
    if (name == "Slot") {
      return Wrong("slots can only stand in the scope");
    }
    if (FindExtensionFunction(name) == nullptr) {
      return Wrong(Quoted(name) + " is no operator and no extension function");
    }
    RINGFENCE_ASSIGN(std::vector<const Expr*> args, ReadAll(body));
    return Make(Op::kCall, std::move(args), std::string(name));
  }

 private:
  Result<const Expr*> Make(Op op, std::vector<const Expr*> args, std::string text = {}) {
    return Checked(arena_.Make(op, std::move(args), 0, std::move(text)));
  }

  static Result<const Expr*> Checked(const Expr* expr) {
    if (expr == nullptr) {
      return Wrong("operators nested more than " + std::to_string(kExprDepthMax) + " deep");
    }
    return expr;
  }

  Result<std::vector<const Expr*>> ReadAll(const Json& json) {
    const JsonArray* array = json.if_array();
    if (array == nullptr) {
      return Wrong("expected an array of expressions");
    }
    std::vector<const Expr*> out;
    for (const Json& one : *array) {
      RINGFENCE_ASSIGN(const Expr* expr, Read(one));
      out.push_back(expr);
    }
    return out;
  }

  Result<const Expr*> FromValue(const Value& value) {
    Expr record;
    std::vector<const Expr*> args;
    switch (value.kind()) {
      case Value::Kind::kBool:
      case Value::Kind::kLong:
      case Value::Kind::kString:
      case Value::Kind::kEntity:
        return arena_.Literal(value);
      case Value::Kind::kExtension:
        return Make(Op::kCall, {arena_.Literal(Value::String(ToText(value.extension())))},
                    std::string(ConstructorName(value.extension().type)));
      case Value::Kind::kSet:
        for (const Value& element : value.set()) {
          RINGFENCE_ASSIGN(const Expr* expr, FromValue(element));
          args.push_back(expr);
        }
        return Make(Op::kSet, std::move(args));
      case Value::Kind::kRecord:
        record.op = Op::kRecord;
        for (const auto& [name, member] : value.record()) {
          RINGFENCE_ASSIGN(const Expr* expr, FromValue(member));
          record.keys.push_back(name);
          record.args.push_back(expr);
        }
        return Checked(arena_.Add(std::move(record)));
    }
    return Wrong("no value");
  }

  Result<const Expr*> ReadVar(const Json& json) {
    for (const Var var : {Var::kPrincipal, Var::kAction, Var::kResource, Var::kContext}) {
      if (json.is_string() && View(json.get_string()) == Name(var)) {
        Expr expr;
        expr.op = Op::kVar;
        expr.var = var;
        return Checked(arena_.Add(std::move(expr)));
      }
    }
    return Wrong("Var must be principal, action, resource or context");
  }

  Result<const Expr*> ReadIf(const Json& json) {
    std::vector<const Expr*> args;
    for (const char* name : {"if", "then", "else"}) {
      RINGFENCE_ASSIGN(const Json* part, Member(json, name));
      RINGFENCE_ASSIGN(const Expr* expr, Read(*part));
      args.push_back(expr);
    }
    return Make(Op::kIf, std::move(args));
  }

  Result<const Expr*> ReadAttribute(Op op, const Json& json) {
    RINGFENCE_ASSIGN(const Json* left, Member(json, "left"));
    RINGFENCE_ASSIGN(const Expr* base, Read(*left));
    RINGFENCE_ASSIGN(const Json* attr, Member(json, "attr"));
    if (op == Op::kHasAttribute && attr->is_array()) {
      return ReadHasPath(base, attr->get_array());
    }
    RINGFENCE_ASSIGN(std::string name, TextMember(json, "attr"));
    return Make(op, {base}, std::move(name));
  }

  Result<const Expr*> ReadHasPath(const Expr* base, const JsonArray& path) {
    Expr has;
    has.op = Op::kHasPath;
    has.args = {base};
    for (const Json& name : path) {
      const bool good = name.is_string() && IsIdentifier(View(name.get_string())) &&
                        !IsReservedWord(View(name.get_string())) &&
                        View(name.get_string()) != "__cedar";
      if (!good) {
        return Wrong("a path of attributes is made of names");
      }
      has.keys.emplace_back(View(name.get_string()));
    }
    if (has.keys.size() < 2) {
      return Wrong("a path of attributes has at least two names");
    }
    return Checked(arena_.Add(std::move(has)));
  }

  Result<const Expr*> ReadIs(const Json& json) {
    RINGFENCE_ASSIGN(const Json* left, Member(json, "left"));
    RINGFENCE_ASSIGN(const Expr* base, Read(*left));
    RINGFENCE_ASSIGN(const std::string written, TextMember(json, "entity_type"));
    RINGFENCE_ASSIGN(std::string type, ParseTypeName(written));
    std::vector<const Expr*> args = {base};
    if (const Json* in = json.get_object().if_contains("in")) {
      RINGFENCE_ASSIGN(const Expr* above, Read(*in));
      args.push_back(above);
    }
    return Make(Op::kIs, std::move(args), std::move(type));
  }

  Result<const Expr*> ReadLike(const Json& json) {
    RINGFENCE_ASSIGN(const Json* left, Member(json, "left"));
    Expr like;
    like.op = Op::kLike;
    RINGFENCE_ASSIGN(const Expr* base, Read(*left));
    like.args = {base};
    RINGFENCE_ASSIGN(const Json* pattern, Member(json, "pattern"));
    std::string bad;
    if (pattern->is_string()) {
      if (!UnescapePattern(View(pattern->get_string()), like.pattern, bad)) {
        return Wrong("the pattern has " + bad);
      }
      return Checked(arena_.Add(std::move(like)));
    }
    const JsonArray* parts = pattern->if_array();
    if (parts == nullptr) {
      return Wrong("a pattern is an array of \"Wildcard\" and {\"Literal\": text}");
    }
    for (const Json& part : *parts) {
      if (part.is_string() && View(part.get_string()) == "Wildcard") {
        like.pattern.push_back({true, 0});
        continue;
      }
      RINGFENCE_ASSIGN(const std::string text, TextMember(part, "Literal"));
      const std::string quoted = Quoted(text);
      std::string escaped;
      for (const char c : quoted.substr(1, quoted.size() - 2)) {
        escaped += c == '*' ? "\\*" : std::string(1, c);
      }
      Pattern literal;
      if (!UnescapePattern(escaped, literal, bad)) {
        return Wrong("the pattern has " + bad);
      }
      like.pattern.insert(like.pattern.end(), literal.begin(), literal.end());
    }
    return Checked(arena_.Add(std::move(like)));
  }

  Result<const Expr*> ReadRecord(const Json& json) {
    const JsonObject* object = json.if_object();
    if (object == nullptr) {
      return Wrong("Record must be an object");
    }
    std::map<std::string, const Expr*> members;
    for (const auto& member : *object) {
      RINGFENCE_ASSIGN(const Expr* expr, Read(member.value()));
      members.emplace(std::string(member.key()), expr);
    }
    Expr record;
    record.op = Op::kRecord;
    for (const auto& [name, expr] : members) {
      record.keys.push_back(name);
      record.args.push_back(expr);
    }
    return Checked(arena_.Add(std::move(record)));
  }

  ExprArena& arena_;
};

Status ReadEntityOrSlot(const Json& json, Slot slot, ScopeClause& clause) {
  if (const Json* name = json.get_object().if_contains("slot")) {
    if (!name->is_string() || View(name->get_string()) != Name(slot)) {
      return Wrong("the slot must be " + std::string(Name(slot)));
    }
    clause.slot = true;
    return {};
  }
  RINGFENCE_ASSIGN(const Json* entity, Member(json, "entity"));
  RINGFENCE_ASSIGN(clause.entity, UidFromJson(*entity, "entity"));
  return {};
}

Status ReadScope(const Json& json, Slot slot, ScopeClause& clause) {
  using Kind = ScopeClause::Kind;
  RINGFENCE_ASSIGN(const std::string op, TextMember(json, "op"));
  if (op == "All") {
    return {};
  }
  if (op == "==" || op == "in") {
    clause.kind = op == "==" ? Kind::kEqual : Kind::kIn;
    return ReadEntityOrSlot(json, slot, clause);
  }
  if (op != "is") {
    return Wrong("op must be All, ==, in or is, not " + Quoted(op));
  }
  RINGFENCE_ASSIGN(const std::string written, TextMember(json, "entity_type"));
  RINGFENCE_ASSIGN(clause.type, ParseTypeName(written));
  clause.kind = Kind::kIs;
  if (const Json* in = json.get_object().if_contains("in")) {
    clause.kind = Kind::kIsIn;
    return in->is_object() ? ReadEntityOrSlot(*in, slot, clause) : Wrong("in must be an object");
  }
  return {};
}

Status ReadAction(const Json& json, ActionClause& clause) {
  using Kind = ActionClause::Kind;
  RINGFENCE_ASSIGN(const std::string op, TextMember(json, "op"));
  if (op == "All") {
    return {};
  }
  if (op != "==" && op != "in") {
    return Wrong("op must be All, == or in, not " + Quoted(op));
  }
  const Json* list = json.get_object().if_contains("entities");
  if (op == "in" && list != nullptr) {
    clause.kind = Kind::kInList;
    if (!list->is_array()) {
      return Wrong("entities must be an array");
    }
    for (const Json& one : list->get_array()) {
      RINGFENCE_ASSIGN(EntityUid uid, UidFromJson(one, "entities"));
      clause.actions.push_back(std::move(uid));
    }
  } else {
    clause.kind = op == "==" ? Kind::kEqual : Kind::kIn;
    RINGFENCE_ASSIGN(const Json* entity, Member(json, "entity"));
    RINGFENCE_ASSIGN(EntityUid uid, UidFromJson(*entity, "entity"));
    clause.actions.push_back(std::move(uid));
  }
  for (const EntityUid& uid : clause.actions) {
    if (!IsActionType(uid.type)) {
      return Wrong("an action's type must be named Action, not " + uid.type);
    }
  }
  return {};
}

Status ReadConditions(const Json& json, PolicyBody& body) {
  const JsonArray* array = json.if_array();
  if (array == nullptr) {
    return Wrong("conditions must be an array");
  }
  ExprReader reader(*body.arena);
  for (const Json& one : *array) {
    RINGFENCE_ASSIGN(const std::string kind, TextMember(one, "kind"));
    if (kind != "when" && kind != "unless") {
      return Wrong("kind must be when or unless");
    }
    RINGFENCE_ASSIGN(const Json* expr, Member(one, "body"));
    RINGFENCE_ASSIGN(const Expr* read, reader.Read(*expr));
    body.conditions.push_back({kind == "when", read});
  }
  return {};
}

Status ReadAnnotations(const Json& json, PolicyBody& body) {
  const JsonObject* object = json.if_object();
  if (object == nullptr) {
    return Wrong("annotations must be an object");
  }
  for (const auto& member : *object) {
    const std::string name(member.key());
    if (!IsIdentifier(name) || (!member.value().is_string() && !member.value().is_null())) {
      return Wrong("the annotation " + Quoted(name) + " must be a name with text");
    }
    const bool has_value = member.value().is_string();
    body.annotations.push_back(
        {name, has_value ? std::string(View(member.value().get_string())) : std::string(),
         has_value});
  }
  return {};
}

Result<std::shared_ptr<PolicyBody>> ReadPolicy(const Json& json, std::string id) {
  auto body = std::make_shared<PolicyBody>();
  body->id = std::move(id);
  body->arena = std::make_shared<ExprArena>();
  RINGFENCE_ASSIGN(const std::string effect, TextMember(json, "effect"));
  if (effect != "permit" && effect != "forbid") {
    return Wrong("effect must be permit or forbid");
  }
  body->effect = effect == "permit" ? Effect::kPermit : Effect::kForbid;
  RINGFENCE_ASSIGN(const Json* principal, Member(json, "principal"));
  RINGFENCE_TRY(ReadScope(*principal, Slot::kPrincipal, body->principal));
  RINGFENCE_ASSIGN(const Json* action, Member(json, "action"));
  RINGFENCE_TRY(ReadAction(*action, body->action));
  RINGFENCE_ASSIGN(const Json* resource, Member(json, "resource"));
  RINGFENCE_TRY(ReadScope(*resource, Slot::kResource, body->resource));
  RINGFENCE_ASSIGN(const Json* conditions, Member(json, "conditions"));
  RINGFENCE_TRY(ReadConditions(*conditions, *body));
  if (const Json* annotations = json.get_object().if_contains("annotations")) {
    RINGFENCE_TRY(ReadAnnotations(*annotations, *body));
  }
  if (!Finish(*body)) {
    return Wrong("the policy is nested too deeply");
  }
  return body;
}

Status ReadLink(const Json& json, std::string_view template_member, std::string_view id_member,
                std::string_view values_member, PolicySet& policies) {
  RINGFENCE_ASSIGN(const std::string template_id, TextMember(json, template_member));
  RINGFENCE_ASSIGN(std::string id, TextMember(json, id_member));
  RINGFENCE_ASSIGN(const Json* values, Member(json, values_member));
  if (!values->is_object()) {
    return Wrong("the slots' values must be an object");
  }
  SlotValues slots;
  for (const auto& member : values->get_object()) {
    const std::string_view name = member.key();
    if (name != Name(Slot::kPrincipal) && name != Name(Slot::kResource)) {
      return Wrong(Quoted(name) + " is no slot");
    }
    const Slot slot = name == Name(Slot::kPrincipal) ? Slot::kPrincipal : Slot::kResource;
    auto uid = member.value().is_string() ? ParseEntityUid(View(member.value().get_string()))
                                          : UidFromJson(member.value(), std::string(name));
    if (!uid.has_value()) {
      return uid.error();
    }
    slots.emplace(slot, *uid);
  }
  return policies.Link(template_id, std::move(id), std::move(slots));
}

}  // namespace

Result<PolicySet> PoliciesFromJson(std::string_view text) {
  RINGFENCE_ASSIGN(const Json json, ReadJson(text));
  const JsonObject* object = json.if_object();
  if (object == nullptr) {
    return Wrong("policies must be an object");
  }
  PolicySet out;
  if (object->contains("effect")) {
    RINGFENCE_ASSIGN(const auto body, ReadPolicy(json, "policy0"));
    RINGFENCE_TRY(body->is_template() ? out.AddTemplate(body) : out.AddPolicy(body));
    return out;
  }
  for (const auto& group : *object) {
    const std::string_view name = group.key();
    if (name == "templateLinks") {
      continue;
    }
    if ((name != "staticPolicies" && name != "templates") || !group.value().is_object()) {
      return Wrong("expected staticPolicies, templates and templateLinks, not " + Quoted(name));
    }
    for (const auto& member : group.value().get_object()) {
      const std::string id(member.key());
      const auto body = ReadPolicy(member.value(), id);
      if (!body.has_value()) {
        return Prefix("policy " + Quoted(id), body.error());
      }
      if ((*body)->is_template() != (name == "templates")) {
        return Wrong("policy " + Quoted(id) + " is in the wrong group: only templates have slots");
      }
      RINGFENCE_TRY(name == "templates" ? out.AddTemplate(*body) : out.AddPolicy(*body));
    }
  }
  if (const Json* links = object->if_contains("templateLinks")) {
    if (!links->is_array()) {
      return Wrong("templateLinks must be an array");
    }
    for (const Json& link : links->get_array()) {
      RINGFENCE_TRY(ReadLink(link, "templateId", "newId", "values", out));
    }
  }
  return out;
}

Status AddLinksFromJson(std::string_view text, PolicySet& policies) {
  RINGFENCE_ASSIGN(const Json json, ReadJson(text));
  if (!json.is_array()) {
    return Wrong("links must be an array");
  }
  for (const Json& link : json.get_array()) {
    RINGFENCE_TRY(ReadLink(link, "template_id", "link_id", "args", policies));
  }
  return {};
}

}  // namespace ringfence::cedar
