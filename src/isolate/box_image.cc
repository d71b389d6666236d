#include "isolate/box_image.h"

#include <algorithm>

#include "isolate/box_root.h"
#include "os/file.h"
#include "os/mount.h"
#include "os/overlay.h"

namespace ringfence::isolate {
namespace {

std::string Skeleton(const std::string& bundle) { return bundle + "/skeleton"; }
std::string Shown(const std::string& bundle) { return bundle + "/image"; }
std::string Root(const std::string& bundle) { return bundle + "/root"; }

// What an image may not say about its box: which GPUs it sees, whose it is, what is loaded into
// every program.
bool SpeaksForOthers(const std::string& name) {
  return name.starts_with("NVIDIA_") || name.starts_with("RINGFENCE_") ||
         (name.starts_with("LD_") && name != "LD_LIBRARY_PATH") || name == "HOME" ||
         name == "USER" || name == "HOSTNAME";
}

// Where the box has file systems of its own, nothing of the image's is to be seen.
bool IsHidden(const std::string& folder) {
  constexpr const char* kOwn[] = {"/dev", "/proc", "/sys", "/tmp", "/home/job"};
  return std::any_of(std::begin(kOwn), std::end(kOwn), [&](const std::string& own) {
    return folder == own || folder.starts_with(own + "/");
  });
}

Status MakeOwned(const std::string& path, unsigned uid) {
  if (os::Exists(path)) {
    return {};
  }
  RINGFENCE_TRY(os::MakeDirs(path, 0755));
  RINGFENCE_TRY(os::ChangeMode(path, 0755));
  return os::ChangeOwner(path, uid, uid);
}

// The folders on the way to a mount point, and the point itself: a folder, or a file.
Status MakePoint(const std::string& skeleton, const std::string& path, bool is_folder,
                 unsigned uid) {
  for (std::size_t at = path.find('/', 1); at != std::string::npos; at = path.find('/', at + 1)) {
    RINGFENCE_TRY(MakeOwned(skeleton + path.substr(0, at), uid));
  }
  const std::string point = skeleton + path;
  if (is_folder) {
    return MakeOwned(point, uid);
  }
  if (os::Exists(point)) {
    return {};
  }
  RINGFENCE_TRY(os::WriteFile(point, {}, 0444));
  RINGFENCE_TRY(os::ChangeMode(point, 0444));
  return os::ChangeOwner(point, uid, uid);
}

}  // namespace

BoxImage ImageForBox(const image::StoredImage& stored, os::UniqueFd hold) {
  BoxImage image;
  image.digest = stored.report.digest;
  image.tree = stored.tree();
  image.environment = stored.report.environment;
  std::erase_if(image.environment, [](const auto& pair) { return SpeaksForOthers(pair.first); });
  if (!IsHidden(stored.report.working_folder)) {
    image.working_folder = stored.report.working_folder;
  }
  image.hold = std::make_shared<os::UniqueFd>(std::move(hold));
  return image;
}

Status MountImageRoot(const std::string& bundle, const BoxImage& image, const BoxSpec& spec) {
  const std::string skeleton = Skeleton(bundle);
  RINGFENCE_TRY(MakeOwned(skeleton, spec.first_uid));
  RINGFENCE_TRY(MakeOwned(Shown(bundle), spec.first_uid));
  RINGFENCE_TRY(BuildSkeleton(skeleton, spec.first_uid));
  for (const gpu::DriverMount& mount : spec.driver_mounts) {
    RINGFENCE_TRY(
        MakePoint(skeleton, mount.box_path, os::IsDirectory(mount.host_path), spec.first_uid));
  }
  for (const NamedMount& mount : spec.named_mounts) {
    RINGFENCE_TRY(MakePoint(skeleton, mount.box_path, true, spec.first_uid));
  }
  os::BindOptions bind;
  bind.read_only = true;
  RINGFENCE_TRY(os::BindMount(image.tree, Shown(bundle), bind));
  return os::MountLayers(skeleton, Shown(bundle), spec.root_folder);
}

Status UnmountImageRoot(const std::string& bundle) {
  RINGFENCE_TRY(os::UnmountIfMounted(Root(bundle)));
  return os::UnmountIfMounted(Shown(bundle));
}

}  // namespace ringfence::isolate
