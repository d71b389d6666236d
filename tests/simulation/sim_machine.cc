// What the jailer's hands do on a simulated machine: boxes and workers, as jailer/boxes.cc and
// jailer/workers.cc report them, and what that leaves in the cards' memory.

#include <algorithm>
#include <charconv>

#include "base/check.h"
#include "gpu/inventory.h"
#include "gpu/scrub.h"
#include "os/file.h"
#include "os/memory_file.h"
#include "sim_node.h"

namespace ringfence::simulation {
namespace {

constexpr std::uint64_t kMemoryBytes = std::uint64_t{1} << 34U;
const std::string kLibrary = "sha256:" + std::string(64, '5');

// A job says in its third word what it will do: "exit:CODE:MS", "signal:NUMBER:MS", "oom:MS",
// "stay" (until it is told to end) or "cling" (until it is killed).
struct Job {
  std::string deed;
  std::int64_t number = 0;
  Milliseconds time{0};
};

std::int64_t NumberIn(std::string_view text) {
  std::int64_t number = 0;
  (void)std::from_chars(text.data(), text.data() + text.size(), number);
  return number;
}

Job JobOf(const isolate::Grant& grant) {
  const std::string& word = grant.command.at(2);
  const std::size_t first = word.find(':');
  Job job{word.substr(0, first)};
  if (first == std::string::npos) {
    return job;
  }
  const std::size_t second = word.find(':', first + 1);
  if (second == std::string::npos) {
    job.time = Milliseconds(NumberIn(std::string_view(word).substr(first + 1)));
  } else {
    job.number = NumberIn(std::string_view(word).substr(first + 1, second - first - 1));
    job.time = Milliseconds(NumberIn(std::string_view(word).substr(second + 1)));
  }
  return job;
}

}  // namespace

Result<gpu::DriverFiles> SimNode::FilesFor(const std::vector<gpu::WantedGpu>& /*gpus*/) const {
  return gpu::DriverFiles();
}

void SimNode::StartWorker(Milliseconds time, std::function<Result<std::string>()> work, Text done) {
  const std::uint64_t number = next_worker_++;
  workers_.emplace(number, std::move(done));
  Post(time, [this, number, work = std::move(work)] {
    auto worker = workers_.extract(number);
    if (!worker.empty()) {
      worker.mapped()(work());
    }
  });
}

void SimNode::ReadInventory(Text done) {
  StartWorker(scheduler_.chance().Time(20, 400), [this] { return Inventory(); }, std::move(done));
}

Result<std::string> SimNode::Inventory() {
  if (scheduler_.chance().In1000(faults.worker_fails_in_1000)) {
    return Error{Code::kUnavailable, "the worker failed and gave no reason"};
  }
  gpu::Inventory inventory;
  inventory.simulated = true;
  inventory.driver_version = "580.0";
  inventory.cuda_version = "13.0";
  inventory.nvml_version = "13.580";
  inventory.kernel_driver = "simulated";
  inventory.library_path = "/driver/libnvidia-ml.so.1";
  inventory.library_digest = kLibrary;
  for (const SimGpu& gpu : gpus_) {
    if (!gpu.present) {
      continue;
    }
    gpu::Gpu one;
    one.uuid = gpu.uuid;
    one.model = "Simulated";
    one.index = gpu.minor;
    one.minor = gpu.minor;
    one.memory_bytes = kMemoryBytes;
    inventory.gpus.push_back(std::move(one));
  }
  return CanonicalJson(gpu::InventoryToJson(inventory));
}

void SimNode::ScrubCards(const std::vector<gpu::WantedGpu>& gpus, Text done) {
  const Milliseconds time = scheduler_.chance().In1000(30) ? scheduler_.chance().Time(10000, 120000)
                                                           : scheduler_.chance().Time(100, 4000);
  StartWorker(time, [this, gpus] { return Scrub(gpus); }, std::move(done));
}

Result<std::string> SimNode::Scrub(const std::vector<gpu::WantedGpu>& wanted) {
  gpu::ScrubReport report;
  report.simulated = true;
  report.driver_version = "13.0";
  report.kernel_driver = "simulated";
  report.library_digest = kLibrary;
  const bool fails = scheduler_.chance().In1000(faults.worker_fails_in_1000);
  for (const gpu::WantedGpu& want : wanted) {
    const auto gpu = std::find_if(gpus_.begin(), gpus_.end(),
                                  [&](const SimGpu& one) { return one.uuid == want.uuid; });
    RINGFENCE_CHECK(gpu != gpus_.end());
    for (const auto& [lease, box] : boxes_) {
      const auto& held = box.grant.gpus;
      if (box.running && std::find(held.begin(), held.end(), gpu->uuid) != held.end()) {
        place_.judge.Condemn(gpu->uuid + " was scrubbed under the running box of " + lease);
      }
    }
    if (fails || !gpu->present) {
      return Error{Code::kUnavailable, gpu->uuid + ": the worker failed and gave no reason"};
    }
    gpu::ScrubResult result;
    result.uuid = gpu->uuid;
    result.memory_bytes = kMemoryBytes;
    result.reached_bytes = kMemoryBytes / 100 * 98;
    result.residue_bytes = gpu->residue.empty() ? 0 : 4096;
    result.mismatch_bytes = gpu->bad ? 512 : 0;
    result.duration_us = 1000;
    if (!gpu->bad) {
      gpu->residue.clear();
    }
    report.gpus.push_back(std::move(result));
  }
  return gpu::ScrubReportToJson(report);
}

void SimNode::StartBox(isolate::BoxPlan plan, Started started) {
  const std::string lease = plan.grant.lease;
  boxes_[lease].grant = std::move(plan.grant);
  const bool fails = scheduler_.chance().In1000(faults.start_fails_in_1000);
  Post(scheduler_.chance().Time(20, fails ? 60000 : 1500), [this, lease, fails, started] {
    if (!boxes_.contains(lease)) {
      return;  // taken down meanwhile
    }
    if (fails) {
      boxes_.erase(lease);
      jailer_->records.SetState(lease, isolate::BoxState::kEnded, clock_.Now());
      started(Error{Code::kUnavailable, "the runtime could not start the box: no luck"});
      return;
    }
    RunBox(lease, started);
  });
}

void SimNode::RunBox(const std::string& lease, const Started& started) {
  Box& box = boxes_.at(lease);
  for (const std::string& uuid : box.grant.gpus) {
    const auto gpu = std::find_if(gpus_.begin(), gpus_.end(),
                                  [&](const SimGpu& one) { return one.uuid == uuid; });
    RINGFENCE_CHECK(gpu != gpus_.end());
    if (!gpu->residue.empty()) {
      place_.judge.Condemn("the box of " + lease + " started on " + uuid + " with what " +
                           gpu->residue + " left there");
    }
    for (const auto& [other, held] : boxes_) {
      if (other != lease && held.running &&
          std::find(held.grant.gpus.begin(), held.grant.gpus.end(), uuid) !=
              held.grant.gpus.end()) {
        place_.judge.Condemn("the boxes of " + lease + " and " + other + " run on " + uuid);
      }
    }
    gpu->residue = lease;
  }
  box.running = true;
  isolate::StartedBox ends;
  for (auto [write, read] : {std::pair(&box.out, &ends.out), std::pair(&box.err, &ends.err),
                             std::pair(&box.exit, &ends.exit)}) {
    auto pipe = os::MakePipe();
    RINGFENCE_CHECK(pipe.has_value());
    *write = std::move(pipe->write);
    *read = std::move(pipe->read);
  }
  scheduler_.Trace(name_ + " box of " + lease + " runs");
  (void)os::WriteAll(box.out.get(), AsBytes("hello from " + lease + "\n"));
  jailer_->records.SetState(lease, isolate::BoxState::kRunning, clock_.Now());
  started(std::move(ends));
  PlanEnd(lease);
}

void SimNode::PlanEnd(const std::string& lease) {
  const Box& box = boxes_.at(lease);
  const Job job = JobOf(box.grant);
  Post(box.grant.runtime_max, [this, lease] {
    const auto found = boxes_.find(lease);
    if (found != boxes_.end() && found->second.running) {
      found->second.timed_out = true;
      Terminate(lease);
    }
  });
  if (job.deed == "exit") {
    Post(job.time,
         [this, lease, job] { BoxEnds(lease, "exited " + std::to_string(job.number) + "\n"); });
  } else if (job.deed == "signal") {
    Post(job.time,
         [this, lease, job] { BoxEnds(lease, "signalled " + std::to_string(job.number) + "\n"); });
  } else if (job.deed == "oom") {
    Post(job.time, [this, lease] { BoxEnds(lease, "oom\n"); });
  }
  if (box.end_asked) {
    Terminate(lease);
  }
}

void SimNode::EndBox(const std::string& lease) {
  const auto found = boxes_.find(lease);
  if (found == boxes_.end()) {
    return;
  }
  found->second.end_asked = true;
  if (found->second.running) {
    Terminate(lease);
  }
}

void SimNode::Terminate(const std::string& lease) {
  if (JobOf(boxes_.at(lease).grant).deed == "cling") {
    Post(std::chrono::seconds(10), [this, lease] { BoxEnds(lease, "signalled 9\n"); });
  } else {
    Post(scheduler_.chance().Time(1, 2000), [this, lease] { BoxEnds(lease, "signalled 15\n"); });
  }
}

void SimNode::BoxEnds(const std::string& lease, const std::string& line) {
  const auto found = boxes_.find(lease);
  if (found == boxes_.end()) {
    return;
  }
  Box& box = found->second;
  if (box.running && !box.out.valid()) {
    return;  // it has ended already and is being taken down
  }
  if (box.out.valid()) {
    (void)os::WriteAll(box.out.get(), AsBytes("bye\n"));
  }
  box.out.Reset();
  box.err.Reset();
  box.exit_line = box.timed_out ? "timeout\n" : line;
  box.give_up_at = scheduler_.now() + std::chrono::seconds(30);
  TakeDown(lease);
  WakePollers();
}

// A box that cannot be taken down keeps its record "running", and is tried again; after a while the
// agent is told.
void SimNode::TakeDown(const std::string& lease) {
  Box& box = boxes_.at(lease);
  if (scheduler_.chance().In1000(faults.take_down_fails_in_1000)) {
    if (scheduler_.now() >= box.give_up_at && box.exit.valid()) {
      (void)os::WriteAll(box.exit.get(), AsBytes("failed the box could not be taken down\n"));
      box.exit.Reset();
      WakePollers();
    }
    Post(std::chrono::seconds(1), [this, lease] {
      if (boxes_.contains(lease)) {
        TakeDown(lease);
      }
    });
    return;
  }
  const std::string& line = box.exit_line;
  scheduler_.Trace(name_ + " box of " + lease + " is gone: " + line.substr(0, line.size() - 1));
  jailer_->records.SetState(lease, isolate::BoxState::kEnded, clock_.Now());
  if (box.exit.valid()) {
    (void)os::WriteAll(box.exit.get(), AsBytes(line));
  }
  boxes_.erase(lease);
  WakePollers();
}

}  // namespace ringfence::simulation
