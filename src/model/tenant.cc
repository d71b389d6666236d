#include "model/tenant.h"

#include <algorithm>

#include "base/check.h"

namespace ringfence::model {
namespace {

constexpr std::size_t kNameBytesMax = 40;
constexpr std::size_t kLevelsMax = 3;

bool IsLower(char c) { return c >= 'a' && c <= 'z'; }
bool IsNameByte(char c) { return IsLower(c) || (c >= '0' && c <= '9') || c == '-'; }

// What the caller wrote, made safe to show: an error must not carry control bytes to a terminal.
std::string Shown(std::string_view text) {
  constexpr std::size_t kShownMax = 140;
  std::string shown(text.substr(0, kShownMax));
  std::replace_if(shown.begin(), shown.end(), [](char c) { return c < ' ' || c > '~'; }, '?');
  return text.size() > kShownMax ? shown + "..." : shown;
}

Error Wrong(std::string_view text, const std::string& what) {
  return Error{Code::kInvalidArgument, "\"" + Shown(text) + "\" is no tenant: " + what,
               "write department/team/project, such as acme/research/vision: up to three names of "
               "a-z, 0-9 and '-', each beginning with a letter",
               "tenant"};
}

}  // namespace

std::string_view Name(TenantKind kind) {
  switch (kind) {
    case TenantKind::kDepartment:
      return "department";
    case TenantKind::kTeam:
      return "team";
    case TenantKind::kProject:
      return "project";
  }
  return "unknown";
}

Result<TenantPath> TenantPath::Create(std::string_view text) {
  if (text.empty()) {
    return Wrong(text, "it is empty");
  }
  if (text == "/") {
    return Wrong(text, "it stands for the whole cluster");
  }
  std::size_t levels = 0;
  for (std::string_view rest = text;;) {
    const std::size_t slash = rest.find('/');
    const std::string_view name = rest.substr(0, slash);
    if (++levels > kLevelsMax) {
      return Wrong(text, "it has more than three levels");
    }
    if (name.empty()) {
      return Wrong(text, "a name between slashes is empty");
    }
    if (name.size() > kNameBytesMax) {
      return Wrong(text, "a name is longer than 40 bytes");
    }
    if (!std::all_of(name.begin(), name.end(), IsNameByte)) {
      return Wrong(text, "names are of a-z, 0-9 and '-' only");
    }
    if (!IsLower(name.front())) {
      return Wrong(text, "each name begins with a letter");
    }
    if (slash == std::string_view::npos) {
      return TenantPath(std::string(text));
    }
    rest.remove_prefix(slash + 1);
  }
}

TenantPath TenantPath::Root() { return TenantPath("/"); }

TenantKind TenantPath::kind() const {
  RINGFENCE_CHECK(!is_root());
  switch (std::count(text_.begin(), text_.end(), '/')) {
    case 0:
      return TenantKind::kDepartment;
    case 1:
      return TenantKind::kTeam;
    default:
      return TenantKind::kProject;
  }
}

TenantPath TenantPath::parent() const {
  const std::size_t slash = text_.find_last_of('/');
  return is_root() || slash == std::string::npos ? Root() : TenantPath(text_.substr(0, slash));
}

bool TenantPath::Contains(const TenantPath& other) const {
  if (is_root() || text_ == other.text_) {
    return true;
  }
  return other.text_.size() > text_.size() && other.text_.starts_with(text_) &&
         other.text_[text_.size()] == '/';
}

}  // namespace ringfence::model
