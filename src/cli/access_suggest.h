#pragma once

// Narrower roles from what was used: which bindings to take away or to change, and the change of
// the policy's files as a patch. Plain functions; cli/access.cc asks the server and prints.

#include <map>
#include <set>
#include <string>
#include <vector>

#include "base/result.h"

namespace ringfence::cli {

struct Held {  // one binding
  std::string principal;
  std::string role;
  std::string tenant;
  std::string file;
  int line = 0;
  std::set<std::string> used;  // actions, in the time that counts
};

enum class Narrowing { kRemove, kOtherRole, kNewRole };

struct Suggestion {
  Held held;
  Narrowing what = Narrowing::kRemove;
  std::string role;                   // instead; of kOtherRole and kNewRole
  std::vector<std::string> unneeded;  // actions that it takes away
};

using Roles = std::map<std::string, std::set<std::string>>;  // what each allows
using Files = std::map<std::string, std::string>;

// The last binding of admin at "/" is left as it is, and so is a binding whose actions were all
// used. A role that allows exactly what was used is taken where there is one, else a new one.
std::vector<Suggestion> Suggest(const std::vector<Held>& bindings, const Roles& roles);

// The files as they would be. kInternal when a binding is not where its source says.
Result<Files> Apply(const Files& files, const std::vector<Suggestion>& suggestions);

// A unified diff that `patch -p1` takes; empty when nothing differs.
std::string Diff(const Files& before, const Files& after);

}  // namespace ringfence::cli
