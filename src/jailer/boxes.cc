#include "jailer/boxes.h"

#include <algorithm>
#include <array>
#include <charconv>

#include "os/cgroup.h"
#include "os/failpoint.h"
#include "os/file.h"
#include "os/log.h"
#include "os/memory_file.h"

namespace ringfence::jailer {
namespace {

using isolate::BoxState;

constexpr int kSigKill = 9;
constexpr int kSigTerm = 15;
constexpr std::size_t kStatusLineBytesMax = 64;
constexpr auto kGrace = std::chrono::seconds(10);
constexpr auto kStartMax = std::chrono::seconds(60);
constexpr auto kTakeDownMax = std::chrono::seconds(30);
constexpr auto kDeniedPause = std::chrono::seconds(10);  // between two looks at what was denied
constexpr auto kTakeDownPause = std::chrono::seconds(1);

// "exited N" or "signalled N", as ringfence-init writes them and nothing else can.
struct InitLine {
  bool signalled = false;
  int number = 0;
};

std::optional<InitLine> ParseInitLine(std::string_view text) {
  InitLine line;
  if (text.starts_with("exited ")) {
    text.remove_prefix(7);
  } else if (text.starts_with("signalled ")) {
    text.remove_prefix(10);
    line.signalled = true;
  } else {
    return std::nullopt;
  }
  const auto parsed = std::from_chars(text.data(), text.data() + text.size(), line.number);
  if (parsed.ec != std::errc() || std::string_view(parsed.ptr, text.data() + text.size()) != "\n" ||
      line.number < 0 || line.number > 255) {
    return std::nullopt;
  }
  return line;
}

std::string OneLine(std::string text) {
  for (char& c : text) {
    c = static_cast<unsigned char>(c) < ' ' ? ' ' : c;
  }
  return text;
}

}  // namespace

Status Boxes::Recover(const std::string& driver_root, const std::set<std::string>& held) {
  std::vector<std::string> unfinished;
  for (const auto& [lease, record] : records_->leases()) {
    if (!held.contains(lease) &&
        (record.state == BoxState::kPreparing || record.state == BoxState::kRunning)) {
      unfinished.push_back(lease);
    }
  }
  for (const std::string& lease : unfinished) {
    RINGFENCE_FAILPOINT("jailer.recover");
    const LeaseRecord& record = *records_->Find(lease);
    // A driver that has gone since leaves nothing to give back.
    const auto files = gpu::FilesFor(driver_root, record.gpus);
    RINGFENCE_TRY(
        isolate::TakeDownBox(place_, lease, files.has_value() ? *files : gpu::DriverFiles()));
    records_->SetState(lease, BoxState::kEnded, clock_->Now());
    RINGFENCE_FAILPOINT("jailer.recovered");
    os::Log(os::Level::kWarning, "box_of_earlier_jailer_ended", {{"lease", lease}});
  }
  return {};
}

Status Boxes::Launch(Box& box) {
  RINGFENCE_TRY(isolate::BuildBox(place_, box.plan));
  RINGFENCE_FAILPOINT("jailer.built");
  RINGFENCE_ASSIGN(os::Pipe exit, os::MakePipe());
  RINGFENCE_ASSIGN(isolate::LaunchedBox launched, isolate::LaunchBox(place_, box.plan));
  RINGFENCE_FAILPOINT("jailer.launched");
  box.runtime_pid = launched.runtime_pid;
  box.out = std::move(launched.out);
  box.err = std::move(launched.err);
  box.status = std::move(launched.status);
  box.exit = std::move(exit.write);
  box.exit_read = std::move(exit.read);
  RINGFENCE_ASSIGN(box.process, os::OpenProcess(box.runtime_pid));
  return {};
}

Status Boxes::Connect(const Box& box, int pid) {
  const isolate::Grant& grant = box.plan.grant;
  if (box.plan.access.has_value() && box.plan.access->network()) {
    return os::WriteAll(box.status.get(), AsBytes("go\n"));  // the host's is there already
  }
  if (!grant.network.has_value()) {
    return {};
  }
  if (network_ == nullptr) {
    RINGFENCE_ASSIGN(network_, isolate::BoxNetwork::Open(network_place_));
  }
  RINGFENCE_TRY(
      network_->Attach({grant.lease, box.plan.slot, pid, {grant.tenant, *grant.network}}));
  if (const auto names = network_->NamesOf(grant.lease)) {
    if (names_ == nullptr) {
      RINGFENCE_ASSIGN(names_, Names::Open(resolver_place_, *network_));
    }
    names_->Add(*names);
  }
  RINGFENCE_FAILPOINT("jailer.connected");
  return os::WriteAll(box.status.get(), AsBytes("go\n"));
}

// Idempotent: the last look counts.
Status Boxes::Disconnect(Box& box) {
  if (network_ == nullptr || !box.plan.grant.network.has_value()) {
    return {};
  }
  LookAtDenied(box.plan.grant.lease, box);
  if (const auto names = network_->NamesOf(box.plan.grant.lease); names && names_ != nullptr) {
    names_->Remove({names->slot, names->mark});
  }
  RINGFENCE_TRY(network_->Detach(box.plan.grant.lease));
  return {};
}

void Boxes::LookAtDenied(const std::string& lease, Box& box) {
  const auto denied = network_->DeniedSoFar(lease);
  if (!denied.has_value() || denied->packets <= box.denied.packets) {
    return;
  }
  const std::uint64_t before = box.denied.packets;
  box.denied = *denied;
  std::string flows;
  for (const model::DeniedFlow& flow : denied->flows) {
    flows += (flows.empty() ? "" : ", ") + flow.to + " " + flow.protocol + "/" +
             std::to_string(flow.port) + " x" + std::to_string(flow.packets);
  }
  os::Log(os::Level::kWarning, "flows_denied",
          {{"lease", lease},
           {"tenant", box.plan.grant.tenant},
           {"packets", std::to_string(denied->packets)},
           {"new", std::to_string(denied->packets - before)},
           {"to", flows}});
}

// A node has one IMEX channel for boxes, and whoever has it can map what others of it export.
Status Boxes::CheckSharing(const Box& box) const {
  const auto has_channel = [](const isolate::Grant& grant) {
    return std::find(grant.box.devices.begin(), grant.box.devices.end(), "imex") !=
           grant.box.devices.end();
  };
  const isolate::Grant& grant = box.plan.grant;
  for (const auto& [lease, other] : boxes_) {
    if (has_channel(grant) && has_channel(other.plan.grant) &&
        other.plan.grant.tenant != grant.tenant) {
      return Error{Code::kFailedPrecondition,
                   "the node's IMEX channel is in use by lease " + lease + " of another tenant",
                   "wait until it has ended, or use another node"};
    }
  }
  return {};
}

void Boxes::Start(isolate::BoxPlan plan, TimePoint now, Started started) {
  const std::string lease = plan.grant.lease;
  const auto [place, added] = boxes_.try_emplace(lease);
  Box& box = place->second;
  box.plan = std::move(plan);
  box.deadline = now + kStartMax;
  box.started = std::move(started);
  Status launched = CheckSharing(place->second);
  if (launched.has_value()) {
    launched = Launch(box);
  }
  if (!launched.has_value()) {
    Fail(place, launched.error());
  }
}

void Boxes::Fail(Place place, const Error& error) {
  const Started started = std::move(place->second.started);
  os::Log(os::Level::kError, "box_not_started",
          {{"lease", place->first}, {"reason", error.message}});
  if (TakeDown(place->second)) {
    records_->SetState(place->first, BoxState::kEnded, clock_->Now());
    boxes_.erase(place);
  }
  started(error);
}

// A box that cannot be taken down keeps its record "running": its GPUs stay out of use, and the
// next tick tries again.
bool Boxes::TakeDown(Box& box) {
  box.status.Reset();
  const std::string& lease = box.plan.grant.lease;
  Status gone = isolate::TakeDownBox(place_, lease, box.plan.files);
  if (gone.has_value()) {
    gone = Disconnect(box);
  }
  if (!gone.has_value()) {
    if (!box.take_down_failed) {
      os::Log(os::Level::kError, "box_not_taken_down",
              {{"lease", lease}, {"reason", gone.error().message}});
    }
    box.take_down_failed = true;
    box.take_down_at = std::chrono::steady_clock::now() + kTakeDownPause;
    return false;
  }
  return true;
}

void Boxes::Terminate(Box& box, TimePoint now) {
  box.end_asked = true;
  if (box.init_pid == 0) {
    return;
  }
  if (!box.kill_at.has_value()) {
    box.kill_at = now + kGrace;
  }
  if (box.ready && !box.term_sent) {
    (void)os::SendSignal(box.process.get(), kSigTerm);
    box.term_sent = true;
  }
}

void Boxes::AddPollItems(std::vector<os::PollItem>& items) const {
  for (const auto& [lease, box] : boxes_) {
    if (box.init_pid != 0 && !box.ready) {
      items.push_back({box.status.get()});
    }
  }
  if (names_ != nullptr) {
    names_->AddPollItems(items);
  }
}

// A signal sent before ringfence-init is ready would be lost: a process 1 that has no handler yet
// never sees it.
void Boxes::ReadStatus() {
  for (auto& [lease, box] : boxes_) {
    std::array<std::byte, kStatusLineBytesMax> text{};
    if (box.init_pid == 0 || box.ready || !os::ReadSome(box.status.get(), text).has_value()) {
      continue;
    }
    box.ready = true;  // or it has ended already, and there is nobody to signal
    if (box.end_asked) {
      Terminate(box, std::chrono::steady_clock::now());
    }
  }
}

void Boxes::End(const std::string& lease, TimePoint now) {
  const auto place = boxes_.find(lease);
  if (place != boxes_.end()) {
    Terminate(place->second, now);
  }
}

void Boxes::KillAll() {
  for (auto& [lease, box] : boxes_) {
    box.end_asked = true;
    if (box.process.valid()) {
      (void)os::SendSignal(box.process.get(), kSigKill);
    }
  }
}

bool Boxes::IsRuntime(int pid) const {
  for (const auto& [lease, box] : boxes_) {
    if (box.runtime_pid == pid) {
      return true;
    }
  }
  return false;
}

bool Boxes::OnEnded(const os::Ended& ended, TimePoint now) {
  if (names_ != nullptr && names_->OnEnded(ended, now)) {
    return true;
  }
  for (auto place = boxes_.begin(); place != boxes_.end(); ++place) {
    if (place->second.runtime_pid == ended.pid) {
      OnRuntimeEnded(place, ended, now);
      return true;
    }
    if (place->second.init_pid == ended.pid) {
      OnBoxEnded(place, ended, now);
      return true;
    }
  }
  return false;
}

void Boxes::OnRuntimeEnded(Place place, const os::Ended& ended, TimePoint now) {
  Box& box = place->second;
  const std::string& lease = place->first;
  RINGFENCE_FAILPOINT("jailer.runtime_ended");
  box.runtime_pid = 0;
  box.process.Reset();
  if (ended.signalled || ended.code != 0) {
    Fail(place, Error{Code::kUnavailable, "the runtime could not start the box: " +
                                              OneLine(isolate::RuntimeComplaint(place_, lease))});
    return;
  }
  const auto pid = isolate::BoxPid(place_, lease);
  if (!pid.has_value()) {
    Fail(place, pid.error());
    return;
  }
  if (const Status connected = Connect(box, *pid); !connected.has_value()) {
    Fail(place, connected.error());
    return;
  }
  box.init_pid = *pid;
  // Its zombie waits for us at least, so the number cannot be another's yet.
  auto process = os::OpenProcess(*pid);
  if (process.has_value()) {
    box.process = std::move(*process);
  }
  box.deadline = now + box.plan.grant.runtime_max;
  records_->SetState(lease, BoxState::kRunning, clock_->Now());
  RINGFENCE_FAILPOINT("jailer.running");
  const Started started = std::move(box.started);
  started(isolate::StartedBox{std::move(box.out), std::move(box.err), std::move(box.exit_read)});
  if (box.end_asked) {
    Terminate(box, now);
  }
}

std::string Boxes::ExitLine(Box& box, const os::Ended& ended) const {
  if (box.timed_out) {
    return "timeout\n";
  }
  std::array<std::byte, kStatusLineBytesMax> text{};
  if (!box.ready) {
    (void)os::ReadSome(box.status.get(), text);
  }
  const auto got = os::ReadSome(box.status.get(), text);
  const auto line =
      ParseInitLine(got.has_value() ? AsText(ByteView(text).first(*got)) : std::string_view());
  const bool killed = !line.has_value() ||
                      (line->signalled ? line->number == kSigKill : line->number == 128 + kSigKill);
  if (killed && !box.end_asked &&
      os::CgroupOomKills(isolate::BoxCgroup(place_, box.plan.grant.lease)) > 0) {
    return "oom\n";
  }
  if (line.has_value()) {
    return (line->signalled ? "signalled " : "exited ") + std::to_string(line->number) + "\n";
  }
  return (ended.signalled ? "signalled " : "exited ") + std::to_string(ended.code) + "\n";
}

void Boxes::OnBoxEnded(Place place, const os::Ended& ended, TimePoint now) {
  Box& box = place->second;
  RINGFENCE_FAILPOINT("jailer.box_ended");
  box.exit_line = ExitLine(box, ended);
  box.init_pid = 0;
  box.process.Reset();
  box.give_up_at = now + kTakeDownMax;
  Finish(place, now);
}

// Says how the job ended and forgets the box, once nothing of it is left; else the next tick tries
// again.
void Boxes::Finish(Place place, TimePoint now) {
  Box& box = place->second;
  if (!TakeDown(box)) {
    if (now >= box.give_up_at && box.exit.valid()) {
      (void)os::WriteAll(box.exit.get(), AsBytes("failed the box could not be taken down\n"));
      box.exit.Reset();
    }
    return;
  }
  RINGFENCE_FAILPOINT("jailer.taken_down");
  records_->SetState(place->first, BoxState::kEnded, clock_->Now());
  RINGFENCE_FAILPOINT("jailer.ended");
  box.plan.image.reset();  // whoever reads of the end may remove it
  // Never blocks: a short line or two into an empty pipe. A reader that has gone is no error.
  if (box.denied.packets != 0) {
    box.exit_line += "denied " + CanonicalJson(isolate::DeniedToJson(box.denied)) + "\n";
  }
  if (box.plan.prove) {
    const std::string ending = box.exit_line.substr(0, box.exit_line.find('\n'));
    box.exit_line += "proof " + box.plan.prove(ending) + "\n";
  }
  if (box.exit.valid()) {
    (void)os::WriteAll(box.exit.get(), AsBytes(box.exit_line));
  }
  boxes_.erase(place);
}

void Boxes::Tick(TimePoint now) {
  if (names_ != nullptr) {
    names_->Tick(now);
  }
  if (network_ != nullptr && now >= look_at_) {
    look_at_ = now + kDeniedPause;
    for (auto& [lease, box] : boxes_) {
      LookAtDenied(lease, box);
    }
  }
  for (auto next = boxes_.begin(); next != boxes_.end();) {
    const auto place = next++;
    Box& box = place->second;
    if (box.kill_at.has_value() && now >= *box.kill_at && box.process.valid()) {
      (void)os::SendSignal(box.process.get(), kSigKill);
      box.kill_at = now + kGrace;
    }
    if (now >= box.deadline && !box.timed_out && box.process.valid()) {
      if (box.runtime_pid != 0) {
        (void)os::SendSignal(box.process.get(), kSigKill);
      } else {
        box.timed_out = true;
        Terminate(box, now);
      }
    }
    const bool stuck = box.take_down_failed && box.init_pid == 0 && box.runtime_pid == 0;
    if (stuck && now >= box.take_down_at) {
      Finish(place, now);
    }
  }
}

std::optional<Boxes::TimePoint> Boxes::NextDeadline() const {
  std::optional<TimePoint> next;
  const auto consider = [&next](TimePoint time) {
    if (!next.has_value() || time < *next) {
      next = time;
    }
  };
  if (names_ != nullptr && names_->NextDeadline().has_value()) {
    consider(*names_->NextDeadline());
  }
  for (const auto& [lease, box] : boxes_) {
    if (network_ != nullptr && box.plan.grant.network.has_value()) {
      consider(look_at_);
    }
    if (!box.timed_out && box.process.valid()) {
      consider(box.deadline);
    }
    if (box.kill_at.has_value() && box.process.valid()) {
      consider(*box.kill_at);
    }
    if (box.take_down_failed) {
      consider(box.take_down_at);
    }
  }
  return next;
}

}  // namespace ringfence::jailer
