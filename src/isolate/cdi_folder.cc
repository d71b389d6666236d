#include "isolate/cdi_folder.h"

#include <algorithm>

#include "isolate/cdi_spec.h"
#include "isolate/names.h"
#include "os/beneath.h"

namespace ringfence::isolate {
namespace {

constexpr std::size_t kNamesMax = 10'000;
constexpr std::string_view kStart = "ringfence-";
constexpr std::string_view kEnd = ".json";
constexpr const char* kSetAside = ".refused-by-ringfence";
constexpr unsigned kMode = 0644;  // a runtime's client need not be root to read it
constexpr unsigned kOthersMayWrite = 0022;

// The lease that a file of ours is about; empty when the name is not of our making.
std::string LeaseOf(std::string_view name) {
  if (!name.starts_with(kStart) || !name.ends_with(kEnd) ||
      name.size() <= kStart.size() + kEnd.size()) {
    return {};
  }
  const std::string_view lease =
      name.substr(kStart.size(), name.size() - kStart.size() - kEnd.size());
  return IsName(lease) ? std::string(lease) : std::string();
}

bool IsRead(std::string_view name) { return name.ends_with(".json") || name.ends_with(".yaml"); }

// YAML is not read by root. Whatever names us on the line of its kind, or hides what it says there
// behind an escape, is taken for a claim.
bool YamlClaims(std::string_view text) {
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line = text.substr(0, end);
    if (line.find("kind") != std::string_view::npos &&
        (line.find("ringfence") != std::string_view::npos ||
         line.find('\\') != std::string_view::npos)) {
      return true;
    }
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return false;
}

class Syncer {
 public:
  Syncer(const CdiSync& sync, int folder) : sync_(sync), folder_(folder) {}

  Status Run() {
    RINGFENCE_ASSIGN(const auto names, os::NamesIn(folder_, kNamesMax));
    for (const std::string& name : names) {
      RINGFENCE_TRY(LookAt(name));
    }
    for (const auto& [lease, text] : sync_.wanted) {
      const std::string name = CdiFileName(lease);
      if (!std::binary_search(names.begin(), names.end(), name)) {
        Add(name, CdiFinding::kMissing, "lease " + lease + " is held");
        RINGFENCE_TRY(Write(lease, text));
      }
    }
    return {};
  }

  std::vector<CdiFile> found() {
    std::sort(found_.begin(), found_.end(),
              [](const CdiFile& a, const CdiFile& b) { return a.name < b.name; });
    return std::move(found_);
  }

 private:
  void Add(const std::string& name, CdiFinding finding, std::string detail = {}) {
    found_.push_back({name, finding, std::move(detail)});
  }

  Status Write(const std::string& lease, const std::string& text) {
    if (!sync_.repair || (sync_.still_held && !sync_.still_held(lease))) {
      return {};
    }
    const std::string name = CdiFileName(lease);
    RINGFENCE_TRY(os::ReplaceBeneath(folder_, name, text, kMode));
    return !sync_.still_held || sync_.still_held(lease) ? Status()
                                                        : os::RemoveBeneath(folder_, name);
  }

  Status Remove(const std::string& name) {
    return sync_.repair ? os::RemoveBeneath(folder_, name) : Status();
  }

  Status LookAt(const std::string& name) {
    if (os::IsStagedName(name)) {
      Add(name, CdiFinding::kLeftover);
      return Remove(name);
    }
    if (const std::string lease = LeaseOf(name); !lease.empty()) {
      return LookAtOurs(name, lease);
    }
    return IsRead(name) ? LookAtForeign(name) : Status();
  }

  Status LookAtOurs(const std::string& name, const std::string& lease) {
    const auto at = os::FactsBeneath(folder_, name);
    if (at.has_value() &&
        at->kind == os::Kind::kFolder) {  // neither replaced nor removed like a file
      Add(name, CdiFinding::kClaimed, "it is a folder");
      RINGFENCE_TRY(sync_.repair ? os::RenameBeneath(folder_, name, name + kSetAside) : Status());
      const auto held = sync_.wanted.find(lease);
      return held == sync_.wanted.end() ? Status() : Write(lease, held->second);
    }
    const auto wanted = sync_.wanted.find(lease);
    if (wanted == sync_.wanted.end()) {
      Add(name, CdiFinding::kStale, "lease " + lease + " is not held here");
      return Remove(name);
    }
    const auto facts = os::FactsBeneath(folder_, name);
    const auto text = os::ReadBeneath(folder_, name, kCdiBytesMax);
    std::string why;
    if (!facts.has_value() || !text.has_value()) {
      why = facts.has_value() && facts->kind == os::Kind::kLink ? "it is a link"
                                                                : "it is no file to read";
    } else if (*text != wanted->second) {
      why = "it does not say what was written";
    } else if (facts->uid != 0 || (facts->mode & kOthersMayWrite) != 0) {
      why = "others than root can change it";
    }
    if (why.empty()) {
      Add(name, CdiFinding::kInStep);
      return {};
    }
    Add(name, CdiFinding::kChanged, why);
    return Write(lease, wanted->second);
  }

  Status LookAtForeign(const std::string& name) {
    const auto text = os::ReadBeneath(folder_, name, kCdiBytesMax);
    if (!text.has_value()) {
      if (text.error().code != Code::kNotFound) {
        Add(name, CdiFinding::kUnclear, text.error().message);
      }
      return {};
    }
    std::string unclear;
    bool claimed = false;
    const auto json = ParseJson(*text, kCdiBytesMax);
    if (json.has_value()) {
      const JsonObject* const object = json->if_object();
      const Json* const kind = object == nullptr ? nullptr : object->if_contains("kind");
      claimed = kind != nullptr && kind->is_string() && kind->get_string() == kCdiKind;
      const auto document = ReadCdi(*json);
      unclear = document.has_value() ? "" : document.error().message;
    } else {
      claimed = YamlClaims(*text);
      unclear = name.ends_with(".json") ? json.error().message : "";
    }
    if (!claimed) {
      Add(name, unclear.empty() ? CdiFinding::kForeign : CdiFinding::kUnclear, unclear);
      return {};
    }
    Add(name, CdiFinding::kClaimed,
        "it says it is " + std::string(kCdiKind) +
            (sync_.repair ? "; it is now " : "; sync makes it ") + name + kSetAside);
    return sync_.repair ? os::RenameBeneath(folder_, name, name + kSetAside) : Status();
  }

  const CdiSync& sync_;
  const int folder_;
  std::vector<CdiFile> found_;
};

}  // namespace

std::string_view Name(CdiFinding finding) {
  switch (finding) {
    case CdiFinding::kInStep:
      return "in_step";
    case CdiFinding::kMissing:
      return "missing";
    case CdiFinding::kChanged:
      return "changed";
    case CdiFinding::kStale:
      return "stale";
    case CdiFinding::kLeftover:
      return "leftover";
    case CdiFinding::kClaimed:
      return "claimed";
    case CdiFinding::kForeign:
      return "foreign";
    case CdiFinding::kUnclear:
      return "unclear";
  }
  return "unclear";
}

bool IsDrift(CdiFinding finding) {
  return finding != CdiFinding::kInStep && finding != CdiFinding::kForeign &&
         finding != CdiFinding::kUnclear;
}

bool IsTampering(CdiFinding finding) {
  return finding == CdiFinding::kMissing || finding == CdiFinding::kChanged ||
         finding == CdiFinding::kStale || finding == CdiFinding::kClaimed;
}

Result<std::vector<CdiFile>> SyncCdiFolder(const CdiSync& sync) {
  RINGFENCE_ASSIGN(const os::UniqueFd folder, os::OpenFolderOfRoot(sync.folder));
  Syncer syncer(sync, folder.get());
  RINGFENCE_TRY(syncer.Run());
  return syncer.found();
}

std::string CdiFileName(const std::string& lease) {
  return std::string(kStart) + lease + std::string(kEnd);
}

Status WriteCdiFile(const std::string& folder, const std::string& lease, const std::string& text) {
  RINGFENCE_ASSIGN(const os::UniqueFd opened, os::OpenFolderOfRoot(folder));
  return os::ReplaceBeneath(opened.get(), CdiFileName(lease), text, kMode);
}

Status RemoveCdiFile(const std::string& folder, const std::string& lease) {
  // Whoever can write there: what is ours must not stay.
  const auto opened = os::OpenFolder(folder);
  if (!opened.has_value()) {
    return opened.error().code == Code::kNotFound ? Status() : Status(opened.error());
  }
  return os::RemoveBeneath(opened->get(), CdiFileName(lease));
}

}  // namespace ringfence::isolate
