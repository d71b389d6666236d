#pragma once

#include <functional>
#include <memory>

#include "base/result.h"

namespace ringfence::os {

// While it lives, SIGINT, SIGTERM and SIGHUP call `pressed` on a thread of its own, with how often
// it has happened (from 1), instead of ending the process. After `handled_max` the next one ends
// the process as it always would, so that nobody is ever stuck. Make it before other threads.
class Interrupts {
 public:
  static Result<std::unique_ptr<Interrupts>> Catch(int handled_max,
                                                   std::function<void(int count)> pressed);
  Interrupts(const Interrupts&) = delete;
  Interrupts& operator=(const Interrupts&) = delete;
  ~Interrupts();

 private:
  struct State;
  explicit Interrupts(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace ringfence::os
