// Finds and reads the files of a policy folder; Policy::Load of policy/policy.h.

#include <string_view>

#include "os/file.h"
#include "os/file_kind.h"
#include "policy/limits.h"
#include "policy/policy.h"
#include "policy/rulebook.h"
#include "wire/yaml.h"

namespace ringfence::policy {
namespace {

using os::FileKind;
using wire::YamlProblem;

class Walker {
 public:
  // `root` has no links in it.
  explicit Walker(std::string root) : root_(std::move(root)) {}

  // `below` is "" or "teams/": what to add to the root.
  Status Walk(const std::string& below, std::size_t depth) {
    if (depth > kPolicyFolderDepthMax) {
      Refuse(below, "folders nested deeper than " + std::to_string(kPolicyFolderDepthMax),
             "flatten them");
      return {};
    }
    RINGFENCE_ASSIGN(const auto names, os::ListDir(root_ + "/" + below));
    for (const std::string& name : names) {
      if (++entries_ > kPolicyEntriesMax) {
        return Error{Code::kExhausted,
                     "the folder has more than " + std::to_string(kPolicyEntriesMax) + " entries",
                     "keep only policy in it"};
      }
      if (!name.starts_with('.')) {
        RINGFENCE_TRY(Visit(below + name, depth));
      }
    }
    return {};
  }

  const std::map<std::string, std::string>& files() const { return files_; }
  const wire::YamlProblems& problems() const { return problems_; }

 private:
  void Refuse(const std::string& name, std::string what, std::string hint) {
    problems_.Add(YamlProblem{name, 0, {}, std::move(what), std::move(hint)});
  }

  Status Visit(const std::string& name, std::size_t depth) {
    const bool wanted = name.ends_with(".yaml") || name.ends_with(".yml") || IsCedarFile(name);
    std::string path = root_ + "/" + name;
    auto kind = os::KindOf(path);
    if (kind.has_value() && *kind == FileKind::kLink) {
      auto target = os::AbsolutePath(path);
      if (!target.has_value()) {
        if (wanted) {
          Refuse(name, "a link that leads nowhere", "remove it or mend it");
        }
        return {};
      }
      kind = os::KindOf(*target);
      if (kind.has_value() && *kind == FileKind::kFolder) {
        Refuse(name, "a link to a folder", "put the folder itself here");
        return {};
      }
      if (wanted && !target->starts_with(root_ == "/" ? root_ : root_ + "/")) {
        Refuse(name, "a link that leads out of the policy folder", "put the file itself here");
        return {};
      }
      path = *target;
    }
    if (kind.has_value() && *kind == FileKind::kFolder) {
      return Walk(name + "/", depth + 1);
    }
    if (!wanted) {
      return {};
    }
    if (!kind.has_value() || *kind != FileKind::kFile) {
      Refuse(name, "not a plain file", "put a plain file here");
      return {};
    }
    return Read(name, path);
  }

  Status Read(const std::string& name, const std::string& path) {
    auto text = os::ReadText(path, wire::kYamlBytesMax);
    if (!text.has_value()) {
      Refuse(name, text.error().message, text.error().hint);
      return {};
    }
    bytes_ += text->size();
    if (files_.size() >= kPolicyFilesMax || bytes_ > kPolicyBytesMax) {
      return Error{Code::kExhausted,
                   "the folder has more than " + std::to_string(kPolicyFilesMax) + " files or " +
                       std::to_string(kPolicyBytesMax) + " bytes",
                   "join small files; keep only policy in the folder"};
    }
    files_.emplace(name, std::move(text).value());
    return {};
  }

  std::string root_;
  std::map<std::string, std::string> files_;
  wire::YamlProblems problems_;
  std::size_t bytes_ = 0;
  std::size_t entries_ = 0;
};

}  // namespace

Result<std::unique_ptr<Policy>> Policy::Load(const std::string& folder) {
  auto root = os::AbsolutePath(folder);
  if (!root.has_value() || !os::IsDirectory(*root)) {
    return Error{root.has_value() ? Code::kInvalidArgument : root.error().code,
                 "policy folder " + folder + ": " +
                     (root.has_value() ? std::string("not a folder") : root.error().message),
                 "name a folder of policy files; content/sample-policy is one", "policy"};
  }
  Walker walker(*root);
  const Status walked = walker.Walk("", 0);
  if (!walked.has_value()) {
    return Prefix("policy folder " + folder, walked.error());
  }
  if (!walker.problems().empty()) {
    return Error{Code::kInvalidArgument, walker.problems().Text(),
                 "docs/formats/policy-folder.md describes the folder", "policy"};
  }
  return Parse(walker.files());
}

}  // namespace ringfence::policy
