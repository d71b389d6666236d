#include "isolate/image_worker.h"

#include <memory>

#include "image/reference.h"
#include "os/file.h"
#include "os/landlock.h"
#include "os/memory_file.h"
#include "os/mount.h"
#include "os/privileges.h"
#include "os/seccomp.h"
#include "os/socket_pair.h"

namespace ringfence::isolate {
namespace {

constexpr int kSigKill = 9;
constexpr int kFirstFile = 10;
constexpr unsigned kImageUidBelow = 4;  // worker, server and agent have the three above it
constexpr std::uint64_t kOpenFilesMax = 4096;
constexpr std::size_t kReportTextMax = 4096;
constexpr int kTreeFile = 9;

std::vector<std::string> Arguments(const ImageTask& task) {
  std::vector<std::string> arguments = {"ringfence-unpack"};
  const auto add = [&arguments](const std::string& option, const std::string& value) {
    arguments.push_back(option);
    arguments.push_back(value);
  };
  switch (task.work) {
    case ImageWork::kResolve:
      arguments.emplace_back("resolve");
      break;
    case ImageWork::kUnpack:
      arguments.emplace_back("unpack");
      add("--tree", std::to_string(kTreeFile));
      break;
    case ImageWork::kCheck:
      arguments.emplace_back("check");
      add("--tree", std::to_string(kTreeFile));
      return arguments;
  }
  if (task.tar >= 0) {
    add("--tar", std::to_string(kFirstFile));
  }
  for (std::size_t i = 0; i < task.files.size(); ++i) {
    add("--file", std::to_string(kFirstFile + static_cast<int>(i)) + "=" + task.files[i].first);
  }
  if (!task.wanted.tag.empty()) {
    add("--tag", task.wanted.tag);
  }
  if (!task.wanted.digest.empty()) {
    add("--digest", task.wanted.digest);
  }
  return arguments;
}

os::LandlockRules Rules(const WorkerPlace& place, const ImageTask& task) {
  os::LandlockRules rules;
  const auto add = [&rules](const std::string& path, os::PathUse use) {
    rules.paths.push_back({path, use, false});
  };
  for (const char* path : {"/usr", "/lib", "/lib64", "/etc/ld.so.cache", "/proc"}) {
    add(path, os::PathUse::kRead);
  }
  add(place.program, os::PathUse::kReadExec);
  add("/lib64/ld-linux-x86-64.so.2", os::PathUse::kReadExec);
  if (!task.tree.empty()) {
    add(task.tree, task.work == ImageWork::kCheck ? os::PathUse::kRead : os::PathUse::kReadWrite);
  }
  return rules;
}

Status Confine(const WorkerPlace& place, const ImageTask& task) {
  if (place.walls == WorkerWalls::kAll) {
    RINGFENCE_TRY(
        os::EnterNewNamespaces({.mount = true, .network = true, .ipc = true, .uts = true}));
  }
  RINGFENCE_TRY(os::EnterLandlock(Rules(place, task)));
  os::SetFileModeMask(022);
  RINGFENCE_TRY(os::SetLimit(os::Limit::kCoreBytes, 0));
  RINGFENCE_TRY(os::SetLimit(os::Limit::kOpenFiles, kOpenFilesMax));
  RINGFENCE_TRY(place.walls == WorkerWalls::kSameUser ? os::DropAllPrivileges()
                                                      : os::BecomeUser(place.uid, place.uid));
  std::vector<os::SeccompRule> rules = os::DenySystemAdministration();
  for (const auto& more : {os::DenyNewProcesses(), os::DenySocketsExcept({})}) {
    rules.insert(rules.end(), more.begin(), more.end());
  }
  return os::EnterSeccompDenyList(rules);
}

}  // namespace

unsigned ImageUid(unsigned uid_base) { return uid_base - kImageUidBelow; }

Result<os::SpawnOptions> ImageWorkerProcess(const WorkerPlace& place, const ImageTask& task) {
  auto program = os::OpenRead(place.program);
  if (!program.has_value()) {
    return Prefix("start worker", program.error());
  }
  // Kept open by the options themselves, which are copyable.
  auto held = std::make_shared<std::vector<os::UniqueFd>>();
  os::SpawnOptions spawn;
  spawn.exec_fd = program->get();
  held->push_back(std::move(*program));
  spawn.arguments = Arguments(task);
  if (!task.tree.empty()) {
    RINGFENCE_ASSIGN(os::UniqueFd tree, os::OpenRead(task.tree));
    spawn.fds.emplace_back(tree.get(), kTreeFile);
    held->push_back(std::move(tree));
  }
  spawn.environment = {"PATH=/usr/bin:/bin", "HOME=/nonexistent"};
  if (task.tar >= 0) {
    spawn.fds.emplace_back(task.tar, kFirstFile);
  }
  for (std::size_t i = 0; i < task.files.size(); ++i) {
    spawn.fds.emplace_back(task.files[i].second, kFirstFile + static_cast<int>(i));
  }
  spawn.new_session = true;
  spawn.parent_death_signal = kSigKill;
  spawn.before_exec = [held, place, task] { return Confine(place, task); };
  return spawn;
}

Result<StartedWorker> StartImageCheck(const WorkerPlace& place, const std::string& tree) {
  ImageTask task;
  task.work = ImageWork::kCheck;
  task.tree = tree;
  RINGFENCE_ASSIGN(os::SpawnOptions spawn, ImageWorkerProcess(place, task));
  RINGFENCE_ASSIGN(os::Pipe out, os::MakePipe());
  spawn.fds.emplace_back(out.write.get(), 1);
  const auto pid = os::Spawn(spawn);
  if (!pid.has_value()) {
    return Prefix("start worker", pid.error());
  }
  RINGFENCE_TRY(os::SetNonBlocking(out.read.get(), true));
  return StartedWorker{*pid, std::move(out.read)};
}

Result<std::string> TreeDigestOf(const std::string& report) {
  RINGFENCE_ASSIGN(const Json json, ParseJson(report, kReportTextMax));
  RINGFENCE_ASSIGN(auto reader, JsonReader::Open(json));
  RINGFENCE_ASSIGN(std::string digest, reader.String("tree_digest", 80));
  RINGFENCE_TRY(reader.Finish());
  if (!image::IsDigest(digest)) {
    return Error{Code::kCorrupt, "the worker printed no digest"};
  }
  return digest;
}

}  // namespace ringfence::isolate
