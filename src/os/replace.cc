#include "os/replace.h"

#include <unistd.h>

#include "os/error.h"

namespace ringfence::os {
namespace {

std::vector<char*> Pointers(const std::vector<std::string>& texts) {
  std::vector<char*> pointers;
  for (const std::string& text : texts) {
    pointers.push_back(const_cast<char*>(text.c_str()));  // execve does not write through it
  }
  pointers.push_back(nullptr);
  return pointers;
}

}  // namespace

Error ReplaceSelf(const SpawnOptions& options) {
  const std::vector<char*> arguments = Pointers(options.arguments);
  const std::vector<char*> environment = Pointers(options.environment);
  (void)execve(options.path.c_str(), arguments.data(), environment.data());
  return ErrnoError("execute " + options.path);
}

}  // namespace ringfence::os
