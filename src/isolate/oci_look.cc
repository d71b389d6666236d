#include "isolate/oci_look.h"

#include "os/beneath.h"

namespace ringfence::isolate {
namespace {

constexpr std::size_t kNamesMax = 20'000;  // in all of a container's device folders
constexpr int kDepthMax = 8;
constexpr std::size_t kMountInfoBytesMax = 8 * 1024 * 1024;

class Looker {
 public:
  explicit Looker(const std::set<std::uint32_t>& majors) : majors_(majors) {}

  void Take(const os::OpenFacts& facts, const std::string& path) {
    if (facts.kind == os::Kind::kCharacterDevice && majors_.contains(facts.major)) {
      asked_.push_back({facts.major, facts.minor, false, "/" + path});
    }
  }

  // One file system: those mounted within are looked at by themselves.
  Status Walk(int folder, std::uint64_t file_system, const std::string& path, int depth) {
    RINGFENCE_ASSIGN(const auto names, os::NamesIn(folder, kNamesMax));
    seen_ += names.size();
    if (seen_ > kNamesMax || depth > kDepthMax) {
      return Error{Code::kExhausted, "the container's /" + path + " holds too much to look at"};
    }
    for (const std::string& name : names) {
      const std::string here = path + "/" + name;
      const auto facts = os::FactsBeneath(folder, name);
      if (!facts.has_value()) {
        continue;  // gone meanwhile
      }
      Take(*facts, here);
      if (facts->kind != os::Kind::kFolder || facts->file_system != file_system) {
        continue;
      }
      const auto inner = os::OpenBeneath(folder, name);
      if (!inner.has_value()) {
        continue;  // no folder any more; what is there now leads nowhere for us
      }
      const auto now = os::FactsOf(inner->get());
      if (now.has_value() && now->kind == os::Kind::kFolder && now->file_system == file_system) {
        RINGFENCE_TRY(Walk(inner->get(), file_system, here, depth + 1));
      }
    }
    return {};
  }

  // What lies at a path of the root: a device, or a folder of them.
  Status LookAt(int root, const std::string& path, bool walk) {
    const auto found = os::OpenBeneath(root, path);
    if (!found.has_value()) {
      // Nothing there, or covered by another mount: the container does not reach it either.
      return found.error().code == Code::kNotFound ? Status() : Status(found.error());
    }
    RINGFENCE_ASSIGN(const os::OpenFacts facts, os::FactsOf(found->get()));
    Take(facts, path);
    if (walk && facts.kind == os::Kind::kFolder) {
      return Walk(found->get(), facts.file_system, path, 0);
    }
    return {};
  }

  std::vector<AskedDevice> asked() { return std::move(asked_); }

 private:
  const std::set<std::uint32_t>& majors_;
  std::vector<AskedDevice> asked_;
  std::size_t seen_ = 0;
};

}  // namespace

Result<std::vector<AskedDevice>> LookInside(int pid, const std::string& root,
                                            const std::set<std::uint32_t>& majors) {
  const std::string process = "/proc/" + std::to_string(pid);
  RINGFENCE_ASSIGN(const os::UniqueFd view, os::OpenFolder(process + "/root"));
  const auto folder = os::OpenFolderInRoot(view.get(), root);
  if (!folder.has_value()) {
    return Prefix("the container's root", folder.error());
  }
  RINGFENCE_ASSIGN(const std::string path, os::PathOf(folder->get()));
  RINGFENCE_ASSIGN(const os::UniqueFd own, os::OpenFolder(process));
  RINGFENCE_ASSIGN(const std::string mountinfo,
                   os::ReadBeneath(own.get(), "mountinfo", kMountInfoBytesMax));
  RINGFENCE_ASSIGN(const auto mounts, MountsBeneath(mountinfo, path));
  Looker looker(majors);
  // A link here would lead the container to another folder, which is no device folder of the
  // runtime's; its mounts are in the list.
  if (const auto dev = os::OpenBeneath(folder->get(), "dev"); dev.has_value()) {
    RINGFENCE_TRY(looker.LookAt(folder->get(), "dev", true));
  }
  for (const ContainerMount& mount : mounts) {
    if (mount.path == "." || mount.path == "dev") {
      continue;
    }
    RINGFENCE_TRY(
        looker.LookAt(folder->get(), mount.path, mount.devices || mount.path.starts_with("dev/")));
  }
  return looker.asked();
}

}  // namespace ringfence::isolate
