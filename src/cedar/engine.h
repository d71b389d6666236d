#pragma once

// The fast way to decide. Policies are compiled once: entities become numbers, literals are worked
// out, and an index by scope finds the few policies that can apply to a request. Deciding allocates
// nothing once a Scratch has grown to what the policies need.
//
// It answers exactly as IsAuthorized in cedar/evaluator.h does; tests hold both to that.

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "cedar/ast.h"
#include "cedar/entities.h"
#include "cedar/evaluator.h"

namespace ringfence::cedar {

// Entities in the form that the engine reads. Immutable, so many engines and threads may share it
// (hence `shared_ptr`): policies are reloaded without touching it.
class EntityStore {
 public:
  static std::shared_ptr<const EntityStore> Make(Entities entities);
  ~EntityStore();
  const Entities& entities() const;
  std::size_t bytes() const;  // of the compiled form, without entities()

  struct Data;
  const Data& data() const { return *data_; }

 private:
  explicit EntityStore(std::unique_ptr<Data> data);
  std::unique_ptr<Data> data_;
};

class Engine {
 public:
  // What one thread needs while it decides. Reuse it; never share it between threads at once.
  class Scratch {
   public:
    Scratch();
    ~Scratch();
    Scratch(Scratch&&) noexcept;
    Scratch& operator=(Scratch&&) noexcept;

    struct Data;
    Data& data() { return *data_; }

   private:
    std::unique_ptr<Data> data_;
  };

  struct Outcome {
    Decision decision = Decision::kDeny;
    // Places in policies(), ascending; valid until the scratch is used again.
    std::span<const std::uint32_t> reasons;
    std::span<const std::uint32_t> errors;
  };

  static std::shared_ptr<const Engine> Make(PolicySet policies,
                                            std::shared_ptr<const EntityStore> store);
  ~Engine();

  // Any number of threads at once, each with its scratch.
  Outcome Decide(const Request& request, Scratch& scratch) const;
  // The same with the policies' names and what went wrong in words; allocates.
  Response Answer(const Request& request, Scratch& scratch) const;

  // What can be said before the context is known: which policies hold and which depend on it.
  // Places in policies(), in no order; valid until the scratch is used again.
  struct Prospect {
    std::span<const std::uint32_t> permits;  // they hold
    std::span<const std::uint32_t> forbids;
    std::span<const std::uint32_t> open;  // their scope holds, and their condition is to be asked
  };
  // `open`: by policy, whether its condition is left open.
  Prospect Foresee(const Request& request, const std::vector<bool>& open, Scratch& scratch) const;

  const std::vector<Policy>& policies() const;
  const EntityStore& store() const;
  std::size_t bytes() const;  // of the compiled policies

  struct Data;

 private:
  void Begin(Scratch::Data& work) const;
  explicit Engine(std::unique_ptr<Data> data);
  std::unique_ptr<Data> data_;
};

}  // namespace ringfence::cedar
