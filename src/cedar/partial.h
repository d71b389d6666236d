#pragma once

// Answers that hold for every context: yes, no, or "if" with the condition that remains. Principal,
// action, resource and entities are known, and of the context only some members; whatever else a
// policy asks of it stays in the condition.

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "cedar/ast.h"
#include "cedar/engine.h"
#include "cedar/entities.h"
#include "cedar/evaluator.h"

namespace ringfence::cedar {

bool Mentions(const Expr& expr, Var var);

// What an expression comes to.
struct Residual {
  enum class Kind : std::uint8_t { kValue, kOpen, kError };
  Kind kind = Kind::kError;    // kError: it fails whatever the context is
  Value value = {};            // of kValue
  const Expr* expr = nullptr;  // of kOpen: gives what the whole would, in any context that has what
                               // was known
};

// `request.context` has the members that are known. Expressions go into `arena`, and share parts
// with `expr`.
Residual EvaluatePartially(const Expr& expr, const Request& request, const Entities& entities,
                           ExprArena& arena);

struct OpenRule {
  std::uint32_t policy = 0;         // place in Engine::policies()
  const Expr* condition = nullptr;  // null: none remains, it holds
};

struct Outlook {
  enum class Answer : std::uint8_t { kNo, kYes, kIf };
  Answer answer = Answer::kNo;
  // Of kIf: allowed exactly when some permit's condition is true and no forbid's is; one that fails
  // to evaluate is not true. Of kYes: the permits that hold whatever comes.
  std::vector<OpenRule> permits = {};
  std::vector<OpenRule> forbids = {};
};

// Asks one engine, which must outlive it, many questions with the same known members of the
// context. What it returns is valid as long as it is. One thread.
class Outlooks {
 public:
  Outlooks(const Engine& engine, ValueRecord known);
  Outlook At(const EntityUid& principal, const EntityUid& action, const EntityUid& resource);

 private:
  struct Kept {
    bool fixed = false;  // the condition is about the context only: the residual is always the same
    std::optional<Residual> residual;
  };
  Residual ResidualOf(std::uint32_t policy);

  const Engine& engine_;
  Engine::Scratch scratch_;
  Request request_;
  ExprArena arena_;
  std::vector<bool> asks_context_;  // by policy
  std::vector<Kept> kept_;          // by policy
};

}  // namespace ringfence::cedar
