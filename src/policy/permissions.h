#pragma once

// What each action is, for people: docs/permissions.md is made from this.

#include <string>
#include <string_view>

#include "policy/authorizer.h"

namespace ringfence::policy {

enum class ActionKind { kRead, kChange, kSecret };  // kSecret: it shows what is kept from auditors

struct Permission {
  Action action;
  ActionKind kind;
  std::string_view what;
  bool asked = true;  // some door asks for it; else roles may name it, and nothing does yet
};
// Without words where nothing was written down; then what is not called *.read is a change.
Permission PermissionOf(Action action);

std::string PermissionsMarkdown();

}  // namespace ringfence::policy
