#include "jailer/held_leases.h"

#include <algorithm>

#include "gpu/library.h"
#include "isolate/cdi_spec.h"
#include "isolate/oci_check.h"
#include "os/beneath.h"
#include "os/cgroup.h"
#include "os/file.h"
#include "os/log.h"
#include "os/memory_file.h"
#include "os/privileges.h"
#include "os/process.h"

namespace ringfence::jailer {
namespace {

using isolate::BoxState;
using isolate::HeldContainer;

constexpr int kSigTerm = 15;
constexpr auto kGrace = std::chrono::seconds(10);
constexpr auto kLookPause = std::chrono::milliseconds(100);
constexpr auto kHolderPause = std::chrono::seconds(1);
constexpr auto kGiveUp = std::chrono::seconds(30);
constexpr auto kSweepPause = std::chrono::seconds(5);
constexpr auto kReportPause = std::chrono::minutes(10);
constexpr std::size_t kReportedMax = 256;
constexpr std::size_t kDevicesFileBytesMax = 65536;
constexpr std::string_view kCapabilities = "/dev/nvidia-caps/";

Result<bool> HasProcesses(const HeldContainer& container) {
  for (const std::string& cgroup : container.cgroups) {
    RINGFENCE_ASSIGN(const auto pids, os::CgroupProcesses(cgroup));
    if (!pids.empty()) {
      return true;
    }
  }
  return false;
}

void Terminate(const HeldContainer& container) {
  auto process = os::OpenProcess(container.pid);
  const auto started = os::StartOf(container.pid);  // after the open: now it cannot change hands
  if (process.has_value() && started.has_value() && *started == container.started) {
    (void)os::SendSignal(process->get(), kSigTerm);
  }
}

bool WasBefore(const std::vector<os::Holder>& before, const os::Holder& holder) {
  return std::any_of(before.begin(), before.end(), [&](const os::Holder& one) {
    return one.pid == holder.pid && one.started == holder.started;
  });
}

}  // namespace

Status HeldLeases::PrepareFolders() {
  RINGFENCE_TRY(os::MakeDirs(place_.held_folder, 0700));
  RINGFENCE_ASSIGN(folder_, isolate::HeldFolder::Open(place_.held_folder));
  const std::string beneath = gpu::Beneath(place_.driver_root, "proc/devices");
  const auto devices =
      os::ReadText(os::Exists(beneath) ? beneath : "/proc/devices", kDevicesFileBytesMax);
  RINGFENCE_TRY(folder_->SetMajors(isolate::GpuMajors(devices.has_value() ? *devices : "")));
  if (!place_.cdi_folder.empty() && !os::Exists(place_.cdi_folder)) {
    RINGFENCE_TRY(os::MakeDirs(place_.cdi_folder, 0755));
    RINGFENCE_TRY(os::ChangeMode(place_.cdi_folder, 0755));  // whatever the umask
  }
  return {};
}

Result<std::set<std::string>> HeldLeases::Recover() {
  if (place_.cdi_folder.empty() && !os::Exists(place_.held_folder)) {
    return std::set<std::string>();
  }
  RINGFENCE_TRY(PrepareFolders());
  RINGFENCE_ASSIGN(const auto names, folder_->Names());
  RINGFENCE_ASSIGN(const std::string boot, os::BootId());
  const TimePoint now = std::chrono::steady_clock::now();
  for (const std::string& lease : names) {
    RINGFENCE_TRY(folder_->Close(lease));
    const LeaseRecord* const record = records_->Find(lease);
    const auto ended = folder_->FindEnded(lease);
    const bool over = record == nullptr || record->state == BoxState::kEnded ||
                      record->state == BoxState::kScrubbed;
    // After another boot there is no container of it; a folder without its file was never given.
    if (over || !ended.has_value() || ended->boot != boot) {
      RINGFENCE_TRY(folder_->Remove(lease));
      continue;
    }
    Held held;
    const auto files = gpu::FilesFor(place_.driver_root, record->gpus);
    held.devices = DevicesOf(files.has_value() ? *files : gpu::DriverFiles{ended->nodes, {}, {}});
    held.before = ended->before;
    const Place place = leases_.emplace(lease, std::move(held)).first;
    BeginEnd(lease, place->second, now);
    place->second.kill_at = now;
    LookAgain(place, now);
    os::Log(os::Level::kWarning, "lease_held_by_earlier_jailer_ended", {{"lease", lease}});
  }
  Sweep(now);
  std::set<std::string> left;
  for (const auto& [lease, held] : leases_) {
    left.insert(lease);
  }
  return left;
}

// The cards' own nodes; those that every GPU job opens would name everybody, and so would the node
// of a GPU that is cut: of a slice, its capabilities are its own. Of simulated cards, the file that
// is their memory.
os::Holdable HeldLeases::DevicesOf(const gpu::DriverFiles& files) const {
  os::Holdable devices;
  const bool of_slice =
      std::any_of(files.nodes.begin(), files.nodes.end(),
                  [](const gpu::DeviceNode& node) { return node.path.starts_with(kCapabilities); });
  for (const gpu::DeviceNode& node : files.nodes) {
    if (node.path != "/dev/nvidiactl" && node.path != "/dev/nvidia-uvm" &&
        node.path != "/dev/kfd" && (!of_slice || node.path.starts_with(kCapabilities))) {
      devices.devices.insert({node.major, node.minor});
    }
  }
  for (const gpu::DriverMount& mount : files.mounts) {
    if (!mount.give_to_box) {
      continue;
    }
    const auto folder = os::OpenFolder(mount.host_path.substr(0, mount.host_path.rfind('/')));
    const auto facts =
        folder.has_value()
            ? os::FactsBeneath(folder->get(),
                               mount.host_path.substr(mount.host_path.rfind('/') + 1))
            : Result<os::OpenFacts>(folder.error());
    if (facts.has_value()) {
      devices.files.insert({facts->file_system, facts->inode});
    }
  }
  return devices;
}

Result<isolate::StartedBox> HeldLeases::Hold(const isolate::BoxPlan& plan, TimePoint now) {
  const std::string& lease = plan.grant.lease;
  if (place_.cdi_folder.empty()) {
    return Error{Code::kFailedPrecondition, "this node holds no leases for other runtimes",
                 "name the folder for CDI documents in its setting node.cdi_dir (--cdi-dir)"};
  }
  Held held;
  held.devices = DevicesOf(plan.files);
  RINGFENCE_ASSIGN(held.before, os::FindHolders(held.devices));
  held.document = isolate::WriteCdi(
      {lease, plan.files, place_.hook, place_.held_folder, isolate::SlicesOf(plan.grant.gpus)});
  held.deadline = now + plan.grant.runtime_max;
  isolate::StartedBox box;
  RINGFENCE_ASSIGN(os::Pipe out, os::MakePipe());
  RINGFENCE_ASSIGN(os::Pipe err, os::MakePipe());
  RINGFENCE_ASSIGN(os::Pipe exit, os::MakePipe());
  box.out = std::move(out.read);  // the write ends close here: there is no output of ours
  box.err = std::move(err.read);
  box.exit = std::move(exit.read);
  held.exit = std::move(exit.write);
  RINGFENCE_ASSIGN(const std::string boot, os::BootId());
  RINGFENCE_TRY(folder_->Add({lease, boot, plan.files.nodes, held.before}, held.document));
  RINGFENCE_TRY(isolate::WriteCdiFile(place_.cdi_folder, lease, held.document));
  leases_.emplace(lease, std::move(held));
  return box;
}

void HeldLeases::Start(const isolate::BoxPlan& plan, TimePoint now, const Started& started) {
  const std::string& lease = plan.grant.lease;
  auto box = Hold(plan, now);
  if (!box.has_value()) {
    os::Log(os::Level::kError, "lease_not_held",
            {{"lease", lease}, {"reason", box.error().message}});
    if (!place_.cdi_folder.empty()) {
      (void)isolate::RemoveCdiFile(place_.cdi_folder, lease);
    }
    if (folder_.has_value()) {
      (void)folder_->Remove(lease);
    }
    records_->SetState(lease, BoxState::kEnded, clock_->Now());
    started(box.error());
    return;
  }
  records_->SetState(lease, BoxState::kRunning, clock_->Now());
  started(std::move(box));
}

void HeldLeases::BeginEnd(const std::string& lease, Held& held, TimePoint now) {
  if (held.ending) {
    return;
  }
  held.ending = true;
  held.kill_at = now + kGrace;
  held.give_up_at = now + kGrace + kGiveUp;
  held.look_at = now;
  if (!place_.cdi_folder.empty()) {
    if (const Status gone = isolate::RemoveCdiFile(place_.cdi_folder, lease); !gone.has_value()) {
      os::Log(os::Level::kError, "cdi_document_not_removed",  // the sweep tries again
              {{"lease", lease}, {"reason", gone.error().message}});
    }
  }
  const Status closed = folder_->Close(lease);
  const auto containers = folder_->Containers(lease);
  if (!closed.has_value() || !containers.has_value()) {
    os::Log(os::Level::kError, "lease_not_closed",
            {{"lease", lease},
             {"reason", closed.has_value() ? containers.error().message : closed.error().message}});
    return;  // looked at again until it works
  }
  for (const HeldContainer& container : *containers) {
    Terminate(container);
  }
}

void HeldLeases::End(const std::string& lease, TimePoint now) {
  const Place place = leases_.find(lease);
  if (place != leases_.end()) {
    BeginEnd(lease, place->second, now);
  }
}

std::string HeldLeases::InTheWayOf(const std::string& lease) const {
  const auto place = leases_.find(lease);
  return place == leases_.end() ? std::string() : place->second.in_the_way;
}

void HeldLeases::KillAll(TimePoint now) {
  for (auto& [lease, held] : leases_) {
    BeginEnd(lease, held, now);
    held.kill_at = std::min(held.kill_at, now);
  }
}

Result<bool> HeldLeases::IsOver(const std::string& lease, Held& held, TimePoint now) {
  RINGFENCE_TRY(folder_->Close(lease));  // again, should it have failed before
  RINGFENCE_ASSIGN(const auto containers, folder_->Containers(lease));
  held.look_at = now + kLookPause;
  for (const HeldContainer& container : containers) {
    RINGFENCE_ASSIGN(const bool alive, HasProcesses(container));
    if (!alive) {
      continue;
    }
    held.in_the_way = "container " + container.id;
    if (now < held.kill_at) {
      return false;
    }
    for (const std::string& cgroup : container.cgroups) {
      RINGFENCE_TRY(os::KillCgroup(cgroup));
    }
  }
  // Whoever got a descriptor from a container, or opened the device behind our back.
  held.look_at = now + kHolderPause;
  RINGFENCE_ASSIGN(const auto holders, os::FindHolders(held.devices));
  for (const os::Holder& holder : holders) {
    if (!WasBefore(held.before, holder) && holder.pid != spared_) {
      held.in_the_way = "process " + std::to_string(holder.pid) + " (" + holder.name + ")";
      return false;
    }
  }
  return true;
}

void HeldLeases::LookAgain(Place place, TimePoint now) {
  Held& held = place->second;
  const auto over = IsOver(place->first, held, now);
  Status removed;
  if (over.has_value() && *over) {
    removed = folder_->Remove(place->first);
  }
  if (!over.has_value() || !*over || !removed.has_value()) {
    if (!over.has_value() || !removed.has_value()) {
      held.in_the_way = over.has_value() ? removed.error().message : over.error().message;
      held.look_at = now + kHolderPause;
    }
    if (now >= held.give_up_at && held.exit.valid()) {
      const std::string line = "failed " + held.in_the_way + " still has the lease's GPUs\n";
      os::Log(os::Level::kError, "lease_not_ended",
              {{"lease", place->first}, {"reason", held.in_the_way}});
      (void)os::WriteAll(held.exit.get(), AsBytes(line));
      held.exit.Reset();
    }
    return;
  }
  records_->SetState(place->first, BoxState::kEnded, clock_->Now());
  if (held.exit.valid()) {  // never blocks: one short line into an empty pipe
    (void)os::WriteAll(held.exit.get(), AsBytes(held.exit_line));
  }
  leases_.erase(place);
}

void HeldLeases::Tick(TimePoint now) {
  for (auto next = leases_.begin(); next != leases_.end();) {
    const Place place = next++;
    Held& held = place->second;
    if (!held.ending && now >= held.deadline) {
      held.exit_line = "timeout\n";
      BeginEnd(place->first, held, now);
    }
    if (held.ending && now >= held.look_at) {
      LookAgain(place, now);
    }
  }
  if (!place_.cdi_folder.empty() && now >= sweep_at_) {
    Sweep(now);
  }
}

// Puts right what others did to the folder, and says so in a way that reaches the audit log.
void HeldLeases::Sweep(TimePoint now) {
  sweep_at_ = now + kSweepPause;
  if (place_.cdi_folder.empty()) {
    return;
  }
  isolate::CdiSync sync;
  sync.folder = place_.cdi_folder;
  for (const auto& [lease, held] : leases_) {
    if (held.ending) {
      continue;
    }
    sync.wanted.emplace(lease, held.document);
    const auto containers = folder_->Containers(lease);
    for (const HeldContainer& container :
         containers.has_value() ? *containers : std::vector<HeldContainer>()) {
      if (std::none_of(container.cgroups.begin(), container.cgroups.end(), os::CgroupExists)) {
        (void)folder_->Drop(lease, container.id);  // over and done with
      }
    }
  }
  const auto found = isolate::SyncCdiFolder(sync);
  if (!found.has_value()) {
    Report("cdi_folder_unsafe", found.error().message, now);
    return;
  }
  for (const isolate::CdiFile& file : *found) {
    if (isolate::IsTampering(file.finding)) {
      Report("cdi_tampered",
             place_.cdi_folder + "/" + file.name + ": " + std::string(Name(file.finding)) + ": " +
                 file.detail,
             now);
    }
  }
}

void HeldLeases::Report(const std::string& what, const std::string& detail, TimePoint now) {
  std::erase_if(reported_, [&](const auto& one) { return now - one.second >= kReportPause; });
  if (reported_.size() >= kReportedMax || !reported_.emplace(what + detail, now).second) {
    return;
  }
  os::Log(os::Level::kWarning, what, {{"detail", detail}});
  if (report_) {
    report_(what, detail);
  }
}

std::optional<HeldLeases::TimePoint> HeldLeases::NextDeadline() const {
  std::optional<TimePoint> next;
  const auto consider = [&next](TimePoint time) {
    if (!next.has_value() || time < *next) {
      next = time;
    }
  };
  if (!place_.cdi_folder.empty()) {
    consider(sweep_at_);
  }
  for (const auto& [lease, held] : leases_) {
    consider(held.ending ? held.look_at : held.deadline);
  }
  return next;
}

}  // namespace ringfence::jailer
