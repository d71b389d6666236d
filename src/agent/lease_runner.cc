#include "agent/lease_runner.h"

#include <algorithm>
#include <array>

#include "base/encoding.h"
#include "os/failpoint.h"
#include "os/file.h"
#include "os/log.h"
#include "os/process.h"

namespace ringfence::agent {
namespace {

constexpr std::size_t kChunkBytes = 64 * 1024;
constexpr std::size_t kChunksPerRequest = 8;
// Output that comes within this time travels together.
constexpr std::chrono::milliseconds kGather{5};
constexpr std::size_t kEndingBytesMax = 64 * 1024;
constexpr std::size_t kFirstLineBytesMax = 2048;
constexpr std::string_view kDeniedLine = "\ndenied ";
constexpr std::string_view kProofLine = "\nproof ";
constexpr std::size_t kLinksKept = 4;
constexpr int kScrubTriesMax = 5;
constexpr std::chrono::milliseconds kInventoryPause{50};
constexpr std::chrono::milliseconds kScrubPauseFirst{250};

Json GpuList(const std::vector<std::string>& gpus) {
  JsonArray array;
  for (const std::string& gpu : gpus) {
    array.emplace_back(gpu);
  }
  return array;
}

std::string LineAt(const std::string& text, std::size_t at) {
  return text.substr(at, text.find('\n', at) - at);
}

// One read of what is there; empty at the end of the stream.
Bytes ReadChunk(int fd) {
  Bytes chunk(kChunkBytes);
  const auto got = os::ReadSome(fd, chunk);
  chunk.resize(got.has_value() ? *got : 0);
  return chunk;
}

}  // namespace

LeaseRunner::~LeaseRunner() {
  std::map<std::string, Job> jobs;
  {
    const std::lock_guard lock(mutex_);
    jobs.swap(jobs_);
  }
  for (auto& [key, job] : jobs) {
    job.thread->RequestStop();
  }
}

template <typename Work>
void LeaseRunner::Launch(const std::string& key, Work work) {
  const std::lock_guard lock(mutex_);
  if (settled_.contains(key)) {
    overtaken_ = true;
    return;
  }
  std::erase_if(jobs_, [](const auto& job) { return job.second.done; });
  const auto [entry, added] = jobs_.try_emplace(key);
  if (!added) {
    return;
  }
  entry->second.thread = surroundings_.Launch([this, key, work](const std::stop_token& stop) {
    work(stop);
    const std::lock_guard inner(mutex_);
    const auto found = jobs_.find(key);
    if (found != jobs_.end()) {
      found->second.done = true;
    }
  });
}

void LeaseRunner::BeginOrders() {
  const std::lock_guard lock(mutex_);
  settled_.clear();
  overtaken_ = false;
}

bool LeaseRunner::overtaken() {
  const std::lock_guard lock(mutex_);
  return overtaken_;
}

std::vector<std::string> LeaseRunner::InHand() {
  std::vector<std::string> leases;
  const std::lock_guard lock(mutex_);
  for (const auto& [key, job] : jobs_) {
    if (!job.done && !key.starts_with("gpu:")) {
      leases.push_back(key);
    }
  }
  return leases;
}

bool LeaseRunner::IsInHand(const std::string& lease) {
  const std::lock_guard lock(mutex_);
  const auto found = jobs_.find(lease);
  return found != jobs_.end() && !found->second.done;
}

void LeaseRunner::Start(const std::string& lease, const std::string& grant,
                        const std::vector<std::string>& gpus) {
  Launch(lease, [=, this](const std::stop_token& stop) { RunBox(stop, lease, grant, gpus); });
}

void LeaseRunner::End(const std::string& lease, const std::vector<std::string>& gpus) {
  RINGFENCE_FAILPOINT("agent.end");
  if (IsInHand(lease)) {
    const Status ended = jailer_.End(lease);
    if (!ended.has_value()) {
      os::Log(os::Level::kWarning, "lease_not_ended",
              {{"lease", lease}, {"why", ended.error().message}});
    }
    return;
  }
  // Ended before its box was started.
  Launch(lease, [=, this](const std::stop_token& stop) {
    Link link(surroundings_);
    Finish(stop, link, lease, gpus, "failed it was ended before it started");
  });
}

void LeaseRunner::Scrub(const std::string& lease, const std::vector<std::string>& gpus) {
  if (IsInHand(lease)) {
    // Its box, if it still runs, is not wanted any more; its own thread scrubs when it has ended.
    (void)jailer_.End(lease);
    return;
  }
  Launch(lease, [=, this](const std::stop_token& stop) {
    Link link(surroundings_);
    ScrubAndDeliver(stop, link, lease, gpus);
  });
}

void LeaseRunner::ScrubUnleased(const std::vector<std::string>& gpus) {
  Launch(KeyOf("", gpus), [=, this](const std::stop_token& stop) {
    Link link(surroundings_);
    ScrubAndDeliver(stop, link, "", gpus);
  });
}

void LeaseRunner::Mig(const std::string& gpu, const std::string& order) {
  Launch("gpu:mig:" + gpu,
         [=, this](const std::stop_token& stop) { CutAndDeliver(stop, gpu, order); });
}

void LeaseRunner::CutAndDeliver(const std::stop_token& stop, const std::string& gpu,
                                const std::string& order) {
  auto report = jailer_.Mig(order);
  std::chrono::milliseconds pause = kScrubPauseFirst;
  for (int tries = 1;
       tries < kScrubTriesMax && !report.has_value() &&
       (report.error().code == Code::kUnavailable || report.error().code == Code::kExhausted) &&
       !stop.stop_requested() && jailer_.Hello().has_value();
       ++tries) {
    surroundings_.Pause(stop, pause);
    pause *= 2;
    report = jailer_.Mig(order);
  }
  if (!report.has_value() && !jailer_.Hello().has_value()) {
    return;  // the pair ended: whoever comes next takes it up again
  }
  Link link(surroundings_);
  JsonObject news{{"gpu", gpu}};
  if (!report.has_value()) {
    // Not done yet: the order comes again. Until then this is why.
    news["error"] = report.error().message.substr(0, 2000);
    (void)link.Send("POST", "/v1/agent/mig", news);
    return;
  }
  // While the order is open nobody leases the GPU: the server learns of its slices first.
  const std::uint64_t wanted = ++inventories_wanted_;
  while (inventories_reported_ < wanted && !stop.stop_requested()) {
    surroundings_.Pause(stop, kInventoryPause);
  }
  news["envelope"] = *report;
  const auto said = link.SendUntil(stop, "POST", "/v1/agent/mig", news);
  if (!said.has_value()) {
    os::Log(os::Level::kError, "mig_not_delivered", {{"gpu", gpu}, {"why", said.error().message}});
    return;
  }
  const std::lock_guard lock(mutex_);
  settled_.insert("gpu:mig:" + gpu);
}

Status LeaseRunner::Recover() {
  RINGFENCE_ASSIGN(const auto records, jailer_.List());
  for (const isolate::BoxRecord& record : records) {
    RINGFENCE_FAILPOINT("agent.recover");
    Launch(record.lease, [=, this](const std::stop_token& stop) {
      Link link(surroundings_);
      if (record.state != isolate::BoxState::kScrubbed) {
        (void)jailer_.End(record.lease);  // ended already, unless its jailer outlived its agent
      }
      Finish(stop, link, record.lease, record.gpus,
             "failed the node's agent was restarted while it ran");
    });
  }
  return {};
}

std::unique_ptr<Link> LeaseRunner::TakeLink() {
  {
    const std::lock_guard lock(mutex_);
    if (!links_.empty()) {
      std::unique_ptr<Link> link = std::move(links_.back());
      links_.pop_back();
      return link;
    }
  }
  return std::make_unique<Link>(surroundings_);
}

void LeaseRunner::KeepLink(std::unique_ptr<Link> link) {
  const std::lock_guard lock(mutex_);
  if (links_.size() < kLinksKept) {
    links_.push_back(std::move(link));
  }
}

void LeaseRunner::RunBox(const std::stop_token& stop, const std::string& lease,
                         const std::string& grant, const std::vector<std::string>& gpus) {
  std::unique_ptr<Link> own = TakeLink();
  Link& link = *own;
  std::string ending;
  RINGFENCE_FAILPOINT("agent.start");
  auto box = jailer_.Start(grant);
  if (box.has_value()) {
    RINGFENCE_FAILPOINT("agent.started");
    const auto said = link.SendUntil(stop, "POST", "/v1/agent/leases/" + lease + "/step",
                                     JsonObject{{"step", "started"}});
    if (!said.has_value()) {
      os::Log(os::Level::kWarning, "start_not_reported",
              {{"lease", lease}, {"why", said.error().message}});
    }
    RINGFENCE_FAILPOINT("agent.said_started");
    ending = Carry(stop, link, lease, *box);
    RINGFENCE_FAILPOINT("agent.ended");
  } else {
    ending = "failed " + box.error().message;
    if (!box.error().hint.empty()) {
      ending += " (" + box.error().hint + ")";
    }
  }
  Finish(stop, link, lease, gpus, ending);
  KeepLink(std::move(own));
}

std::string LeaseRunner::Carry(const std::stop_token& stop, Link& link, const std::string& lease,
                               isolate::StartedBox& box) {
  std::int64_t first = 1;
  bool kept = true;  // false once the server refuses output: drain it, so that the job can end
  while (box.out.valid() || box.err.valid()) {
    JsonArray chunks;
    std::optional<std::chrono::milliseconds> wait;
    while (chunks.size() < kChunksPerRequest && (box.out.valid() || box.err.valid())) {
      std::vector<os::PollItem> items{{box.out.get()}, {box.err.get()}};
      if (!surroundings_.Poll(items, wait).has_value() ||
          (!items[0].ready && !items[0].hung_up && !items[1].ready && !items[1].hung_up)) {
        break;
      }
      for (const bool is_error : {false, true}) {
        os::UniqueFd& fd = is_error ? box.err : box.out;
        const os::PollItem& item = items[is_error ? 1 : 0];
        if (!fd.valid() || (!item.ready && !item.hung_up)) {
          continue;
        }
        const Bytes chunk = ReadChunk(fd.get());
        if (chunk.empty()) {
          fd.Reset();
        } else {
          chunks.emplace_back(JsonObject{{"error", is_error}, {"data", Base64(chunk)}});
        }
      }
      wait = kGather;
    }
    if (chunks.empty() || !kept) {
      continue;
    }
    RINGFENCE_FAILPOINT("agent.output");
    const auto count = static_cast<std::int64_t>(chunks.size());
    const auto sent = link.SendUntil(stop, "POST", "/v1/agent/leases/" + lease + "/output",
                                     JsonObject{{"first", first}, {"chunks", std::move(chunks)}});
    RINGFENCE_FAILPOINT("agent.output_sent");
    first += count;
    kept = sent.has_value();
  }
  Bytes line;
  for (;;) {
    std::vector<os::PollItem> items{{box.exit.get()}};
    (void)surroundings_.Poll(items, std::nullopt);
    std::array<std::byte, 512> more{};
    const auto got = os::ReadSome(box.exit.get(), more);
    if (!got.has_value() || *got == 0 || line.size() > kEndingBytesMax) {
      break;
    }
    Append(line, ByteView(more).first(*got));
  }
  std::string text = ToText(line);
  while (!text.empty() && text.back() == '\n') {
    text.pop_back();
  }
  return text.empty() ? "failed the jailer ended" : text.substr(0, kEndingBytesMax);
}

void LeaseRunner::Finish(const std::stop_token& stop, Link& link, const std::string& lease,
                         const std::vector<std::string>& gpus, const std::string& ending) {
  // Lines after the first: what the firewall denied, and a probe's signed result.
  JsonObject news{{"step", "ended"}, {"ending", LineAt(ending, 0).substr(0, kFirstLineBytesMax)}};
  if (const std::size_t at = ending.find(kDeniedLine); at != std::string::npos) {
    auto denied = ParseJson(LineAt(ending, at + kDeniedLine.size()), kEndingBytesMax);
    if (denied.has_value()) {
      news["denied"] = std::move(denied).value();
    }
  }
  if (const std::size_t at = ending.find(kProofLine); at != std::string::npos) {
    news["proof"] = LineAt(ending, at + kProofLine.size());
  }
  const auto said =
      link.SendUntil(stop, "POST", "/v1/agent/leases/" + lease + "/step", std::move(news));
  if (!said.has_value()) {
    os::Log(os::Level::kWarning, "end_not_reported",
            {{"lease", lease}, {"why", said.error().message}});
  }
  RINGFENCE_FAILPOINT("agent.said_ended");
  ScrubAndDeliver(stop, link, lease, gpus);
}

Result<std::string> LeaseRunner::ScrubPatiently(const std::stop_token& stop,
                                                const std::string& lease,
                                                const std::vector<std::string>& gpus) {
  std::chrono::milliseconds pause = kScrubPauseFirst;
  for (int tries = 1;; ++tries) {
    auto receipt = jailer_.Scrub(lease, gpus);
    const bool passing = !receipt.has_value() && (receipt.error().code == Code::kUnavailable ||
                                                  receipt.error().code == Code::kExhausted);
    if (!passing || tries == kScrubTriesMax || stop.stop_requested() ||
        !jailer_.Hello().has_value()) {
      return receipt;
    }
    os::Log(os::Level::kWarning, "scrub_tried_again",
            {{"lease", lease}, {"why", receipt.error().message}});
    surroundings_.Pause(stop, pause);
    pause *= 2;
  }
}

void LeaseRunner::ScrubAndDeliver(const std::stop_token& stop, Link& link, const std::string& lease,
                                  const std::vector<std::string>& gpus) {
  const auto receipt = ScrubPatiently(stop, lease, gpus);
  RINGFENCE_FAILPOINT("agent.scrubbed");
  if (!receipt.has_value() && !jailer_.Hello().has_value()) {
    return;  // the pair ended: whoever comes next takes it up again
  }
  if (gpus.empty()) {
    (void)jailer_.Forget(lease);
    return;
  }
  JsonObject news{{"lease", lease}, {"gpus", GpuList(gpus)}};
  if (receipt.has_value()) {
    news["envelope"] = *receipt;
  } else {
    news["error"] = receipt.error().message.substr(0, 2000);
  }
  const auto said = link.SendUntil(stop, "POST", "/v1/agent/receipts", news);
  if (!said.has_value()) {
    os::Log(os::Level::kError, "receipt_not_delivered",
            {{"lease", lease}, {"why", said.error().message}});
    if (said.error().code == Code::kNotFound && receipt.has_value() && !lease.empty()) {
      (void)jailer_.Forget(lease);  // the server's records were restored from before it: scrubbed
    }
    return;
  }
  RINGFENCE_FAILPOINT("agent.delivered");
  const Json* clean = said->is_object() ? said->get_object().if_contains("clean") : nullptr;
  const bool taken = clean != nullptr && clean->is_bool() && clean->get_bool();
  if (!taken) {
    return;
  }
  {
    const std::lock_guard lock(mutex_);
    settled_.insert(KeyOf(lease, gpus));
  }
  if (!lease.empty()) {
    (void)jailer_.Forget(lease);
    RINGFENCE_FAILPOINT("agent.forgot");
  }
}

}  // namespace ringfence::agent
