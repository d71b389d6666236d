#pragma once

// Tenants form a tree of at most three levels: department, team, project.

#include <string>
#include <string_view>

#include "base/result.h"

namespace ringfence::model {

enum class TenantKind { kDepartment, kTeam, kProject };
std::string_view Name(TenantKind kind);

// "acme/research/vision": one to three names of [a-z0-9-], each at most 40 bytes, beginning with a
// letter. The kind follows from the depth. "/" (Root()) is above all of them and is no tenant; it
// is where a binding of an administrator lies.
class TenantPath {
 public:
  static Result<TenantPath> Create(std::string_view text);  // errors have field "tenant"
  static TenantPath Root();

  const std::string& text() const { return text_; }  // "/" for the root
  bool is_root() const { return text_ == "/"; }
  TenantKind kind() const;                       // not for the root
  TenantPath parent() const;                     // of a department: the root
  bool Contains(const TenantPath& other) const;  // itself, or below it
  auto operator<=>(const TenantPath&) const = default;

 private:
  explicit TenantPath(std::string text) : text_(std::move(text)) {}
  std::string text_;
};

}  // namespace ringfence::model
