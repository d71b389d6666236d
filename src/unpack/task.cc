#include "unpack/task.h"

#include <charconv>
#include <map>

#include "base/json.h"
#include "unpack/image.h"
#include "unpack/layer.h"

namespace ringfence::image {
namespace {

constexpr std::size_t kFilesMax = 1024;
constexpr int kFdLeast = 3;
constexpr int kFdMost = 65535;

struct ImageArguments {
  int tree = -1;
  int tar = -1;
  std::map<std::string, int> files;
  Wanted wanted;
};

Error Usage() {
  return Error{Code::kInvalidArgument, "ringfence-unpack is started by ringfence itself"};
}

Result<int> Descriptor(std::string_view text) {
  int fd = -1;
  const auto [end, wrong] = std::from_chars(text.data(), text.data() + text.size(), fd);
  if (wrong != std::errc() || end != text.data() + text.size() || fd < kFdLeast || fd > kFdMost) {
    return Usage();
  }
  return fd;
}

Result<ImageArguments> Parse(const std::vector<std::string_view>& words) {
  ImageArguments arguments;
  if (words.size() % 2 == 0) {
    return Usage();
  }
  for (std::size_t i = 1; i + 1 < words.size(); i += 2) {
    const std::string_view value = words[i + 1];
    if (words[i] == "--tree") {
      RINGFENCE_ASSIGN(arguments.tree, Descriptor(value));
    } else if (words[i] == "--tar") {
      RINGFENCE_ASSIGN(arguments.tar, Descriptor(value));
    } else if (words[i] == "--file" && arguments.files.size() < kFilesMax) {
      const std::size_t equals = value.find('=');
      if (equals == std::string_view::npos) {
        return Usage();
      }
      RINGFENCE_ASSIGN(arguments.files[std::string(value.substr(equals + 1))],
                       Descriptor(value.substr(0, equals)));
    } else if (words[i] == "--tag") {
      arguments.wanted.tag = value;
    } else if (words[i] == "--digest") {
      arguments.wanted.digest = value;
    } else {
      return Usage();
    }
  }
  return arguments;
}

}  // namespace

Result<std::string> RunTask(const std::vector<std::string_view>& words) {
  RINGFENCE_ASSIGN(const ImageArguments arguments, Parse(words));
  const bool check = words[0] == "check";
  const bool unpack = words[0] == "unpack";
  if ((!check && !unpack && words[0] != "resolve") || (check || unpack) != (arguments.tree >= 0)) {
    return Usage();
  }
  std::unique_ptr<os::Tree> tree;
  if (arguments.tree >= 0) {
    RINGFENCE_ASSIGN(os::Tree opened, os::Tree::Take(os::UniqueFd(arguments.tree)));
    tree = std::make_unique<os::Tree>(std::move(opened));
  }
  if (check) {
    RINGFENCE_ASSIGN(const std::string digest, TreeDigest(*tree));
    return CanonicalJson(JsonObject{{"tree_digest", digest}});
  }
  std::unique_ptr<Source> source;
  if (arguments.tar >= 0) {
    RINGFENCE_ASSIGN(source, SourceOfTar(arguments.tar));
  } else {
    source = SourceOfFiles(arguments.files);
  }
  RINGFENCE_ASSIGN(const Found found, FindImage(*source, arguments.wanted));
  if (!unpack) {
    return CanonicalJson(JsonObject{{"digest", found.digest}});
  }
  RINGFENCE_ASSIGN(const Report report, UnpackImage(*source, found, *tree, Limits()));
  return CanonicalJson(ReportToJson(report));
}

}  // namespace ringfence::image
