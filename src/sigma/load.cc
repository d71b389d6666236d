#include <algorithm>

#include "os/file.h"
#include "sigma/ruleset.h"
#include "wire/yaml.h"

namespace ringfence::sigma {
namespace {

constexpr std::size_t kFilesMax = 200'000;
constexpr int kFolderDepthMax = 32;

Status Find(const std::string& folder, const std::vector<std::string_view>& endings, int depth,
            std::vector<std::string>& files) {
  if (depth > kFolderDepthMax || files.size() > kFilesMax) {
    return Error{Code::kExhausted, folder + ": too many files, or folders too deep", {}, {}};
  }
  RINGFENCE_ASSIGN(const auto names, os::ListDir(folder));
  for (const std::string& name : names) {
    const std::string path = folder + "/" + name;
    if (os::IsDirectory(path)) {
      RINGFENCE_TRY(Find(path, endings, depth + 1, files));
    } else if (std::any_of(endings.begin(), endings.end(),
                           [&](std::string_view end) { return name.ends_with(end); })) {
      files.push_back(path);
    }
  }
  return {};
}

}  // namespace

Result<std::vector<std::string>> FindFiles(const std::string& path,
                                           const std::vector<std::string_view>& endings) {
  std::vector<std::string> files;
  if (!os::Exists(path)) {
    return Error{Code::kNotFound, "there is no " + path, {}, {}};
  }
  if (!os::IsDirectory(path)) {
    files.push_back(path);
    return files;
  }
  std::string folder = path;
  while (folder.size() > 1 && folder.ends_with('/')) {
    folder.pop_back();
  }
  RINGFENCE_TRY(Find(folder, endings, 0, files));
  return files;
}

Result<Loaded> LoadRules(const std::string& path, std::vector<Problem>& problems) {
  RINGFENCE_ASSIGN(const auto files, FindFiles(path, {".yml", ".yaml"}));
  Loaded loaded;
  for (const std::string& file : files) {
    if (file.ends_with(".test.yml") || file.ends_with(".test.yaml")) {
      continue;
    }
    ++loaded.files;
    const auto text = os::ReadText(file, wire::kYamlBytesMax);
    if (!text.has_value()) {
      problems.push_back({{file, 0}, "", text.error().message, text.error().hint});
      continue;
    }
    for (Rule& rule : ReadRules(*text, file, problems)) {
      loaded.rules.push_back(std::move(rule));
    }
    if (loaded.rules.size() > kRulesMax) {
      return Error{Code::kExhausted, "more than " + std::to_string(kRulesMax) + " rules", {}, {}};
    }
  }
  return loaded;
}

}  // namespace ringfence::sigma
