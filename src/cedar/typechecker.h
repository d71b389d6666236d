#pragma once

// Types of a policy's condition in one request environment. For the validator only.

#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "cedar/ast.h"
#include "cedar/schema.h"
#include "cedar/validator.h"

namespace ringfence::cedar {

// What one kind of request has: the types of its parts.
struct RequestEnv {
  std::string principal;
  const ActionInfo* action = nullptr;
  std::string resource;
  std::optional<std::string> principal_slot = {};
  std::optional<std::string> resource_slot = {};
};

class Typechecker {
 public:
  Typechecker(const Schema& schema, const RequestEnv& env, ValidationMode mode,
              const std::string& policy, std::vector<Finding>& errors)
      : schema_(schema), env_(env), mode_(mode), policy_(policy), errors_(errors) {}

  // Whether the condition always comes out false here. Errors are appended.
  bool AlwaysFalse(const Expr& condition);

 private:
  // What is known to be there when the expression is true: attributes and tags, each as the text
  // of the expression and the name.
  using Capabilities = std::set<std::string>;
  struct Answer {
    TypePtr type;  // null: no type could be given
    bool ok = false;
    Capabilities capabilities = {};
  };

  static Answer Success(TypePtr type, Capabilities capabilities = {});
  static Answer Failure(TypePtr type);

  Answer Check(const Expr& expr, const Capabilities& prior);
  Answer Expect(const Expr& expr, const Capabilities& prior, const std::vector<TypePtr>& expected);
  Answer ExpectBool(const Expr& expr, const Capabilities& prior);
  Answer CheckVar(Var var) const;
  Answer CheckSlot(Slot slot) const;
  Answer CheckLiteral(const Value& value) const;
  Answer CheckIf(const Expr& expr, const Capabilities& prior);
  Answer CheckAnd(const Expr& left, const Expr& right, const Capabilities& prior);
  Answer CheckAndTypes(const Answer& left, const Answer& right) const;
  Answer CheckOr(const Expr& expr, const Capabilities& prior);
  Answer CheckNot(Answer inner) const;
  Answer CheckEqual(const Expr& expr, const Capabilities& prior);
  Answer CheckCompare(const Expr& expr, const Capabilities& prior);
  Answer CheckArithmetic(const Expr& expr, const Capabilities& prior);
  Answer CheckIn(const Expr& expr, const Capabilities& prior);
  Answer CheckIs(const Expr& expr, const Capabilities& prior);
  Answer CheckInTypes(const Expr& expr, const Answer& left, const Answer& right);
  Answer CheckContains(const Expr& expr, const Capabilities& prior);
  Answer CheckTag(const Expr& expr, const Capabilities& prior);
  Answer CheckGetAttribute(const Expr& expr, const Capabilities& prior);
  Answer CheckHasAttribute(const Expr& expr, const Capabilities& prior);
  Answer CheckHasPath(const Expr& expr, const Capabilities& prior);
  Answer CheckSet(const Expr& expr, const Capabilities& prior);
  Answer CheckRecord(const Expr& expr, const Capabilities& prior);
  Answer CheckCall(const Expr& expr, const Capabilities& prior);

  std::optional<AttributeType> Attribute(const Type& type, const std::string& name) const;
  bool MayHaveAttribute(const Type& type, const std::string& name) const;
  std::vector<TypePtr> TagTypes(const Type& type) const;
  std::optional<EntityUid> Uid(const Expr& expr) const;  // a literal, or the action
  std::optional<std::vector<EntityUid>> Uids(const Expr& expr) const;
  bool MayDescend(const Type& left, const Type& right) const;
  // Both types must go together where strict mode compares them.
  Answer Strict(const Expr& expr, TypePtr result, const TypePtr& left, const TypePtr& right);
  void Wrong(const Expr& expr, std::string message);

  const Schema& schema_;
  const RequestEnv& env_;
  ValidationMode mode_;
  const std::string& policy_;
  std::vector<Finding>& errors_;
};

// One text for each tree.
std::string ExprKey(const Expr& expr);

}  // namespace ringfence::cedar
