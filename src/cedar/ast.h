#pragma once

// Policies as parsed. Expressions live in the arena of their policy set and are never changed.

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "cedar/lexer.h"
#include "cedar/value.h"

namespace ringfence::cedar {

enum class Op : std::uint8_t {
  kLiteral,  // value
  kVar,      // var
  kSlot,     // slot
  kAnd,
  kOr,
  kNot,
  kNegate,
  kIf,
  kEqual,
  kNotEqual,
  kLess,
  kLessEqual,
  kGreater,
  kGreaterEqual,
  kAdd,
  kSubtract,
  kMultiply,
  kIn,
  kContains,
  kContainsAll,
  kContainsAny,
  kIsEmpty,
  kGetTag,
  kHasTag,
  kGetAttribute,  // text
  kHasAttribute,  // text
  kHasPath,       // keys: `e has a.b.c`, each name of the path
  kLike,          // pattern
  kIs,            // text: the type; a second argument for `is T in e`
  kSet,
  kRecord,  // keys
  kCall,    // text: the extension function's name
};

enum class Var : std::uint8_t { kPrincipal, kAction, kResource, kContext };
std::string_view Name(Var var);
enum class Slot : std::uint8_t { kPrincipal, kResource };
std::string_view Name(Slot slot);  // "?principal"

struct Expr {
  Op op = Op::kLiteral;
  Var var = Var::kPrincipal;
  Slot slot = Slot::kPrincipal;
  int depth = 1;
  std::size_t offset = 0;  // where it stands in the text it came from
  Value value = {};
  std::string text = {};
  Pattern pattern = {};
  std::vector<std::string> keys =
      {};  // of a record, one for each argument, each once, sorted; of kHasPath the path
  std::vector<const Expr*> args = {};
};

// Same tree, wherever it stands.
bool SameExpr(const Expr& a, const Expr& b);

class ExprArena {
 public:
  // Null when the expression would be deeper than kExprDepthMax.
  const Expr* Add(Expr expr);
  const Expr* Literal(Value value, std::size_t offset = 0);
  const Expr* Make(Op op, std::vector<const Expr*> args, std::size_t offset = 0,
                   std::string text = {});

 private:
  std::deque<Expr> exprs_;
};

enum class Effect : std::uint8_t { kPermit, kForbid };

struct ScopeClause {  // of principal or resource
  enum class Kind : std::uint8_t { kAny, kEqual, kIn, kIs, kIsIn };
  Kind kind = Kind::kAny;
  bool slot = false;  // the entity is the variable's slot
  EntityUid entity = {};
  std::string type = {};
};

struct ActionClause {
  enum class Kind : std::uint8_t { kAny, kEqual, kIn, kInList };
  Kind kind = Kind::kAny;
  std::vector<EntityUid> actions = {};
};

struct Annotation {
  std::string name;
  std::string value;
  bool has_value = true;  // `@name` alone means the empty text
};

struct Condition {
  bool when = true;  // else unless
  const Expr* body = nullptr;
};

// A static policy, or a template.
struct PolicyBody {
  std::string id;
  Effect effect = Effect::kPermit;
  std::vector<Annotation> annotations = {};
  ScopeClause principal = {};
  ActionClause action = {};
  ScopeClause resource = {};
  std::vector<Condition> conditions = {};
  const Expr* condition = nullptr;  // all of it, scope included
  std::size_t begin = 0;            // in the text
  std::size_t end = 0;
  std::shared_ptr<ExprArena> arena = {};  // shared by all policies of one text

  bool is_template() const { return principal.slot || resource.slot; }
  const std::string* annotation(std::string_view name) const;
};

using SlotValues = std::map<Slot, EntityUid>;

// What is evaluated: a static policy (no slots) or a link of a template.
struct Policy {
  std::string id;
  std::shared_ptr<const PolicyBody> body;
  SlotValues slots = {};
};

class PolicySet {
 public:
  // kConflict when the id is taken, by a policy or a template.
  Status AddPolicy(std::shared_ptr<const PolicyBody> body);
  Status AddTemplate(std::shared_ptr<const PolicyBody> body);
  // The values must be for exactly the template's slots.
  Status Link(std::string_view template_id, std::string id, SlotValues slots);

  const std::vector<Policy>& policies() const { return policies_; }
  const std::vector<std::shared_ptr<const PolicyBody>>& templates() const { return templates_; }
  const Policy* Find(std::string_view id) const;
  const PolicyBody* FindTemplate(std::string_view id) const;

 private:
  Status Claim(const std::string& id);

  std::vector<Policy> policies_;
  std::vector<std::shared_ptr<const PolicyBody>> templates_;
  std::map<std::string, std::size_t, std::less<>> ids_;  // where in policies_ or templates_
};

// Builds `condition` from scope and conditions. False when that is too deep.
bool Finish(PolicyBody& body);

}  // namespace ringfence::cedar
