#include "jailer/workers.h"

#include <array>

#include "base/code.h"
#include "base/json.h"
#include "isolate/jailer_protocol.h"
#include "os/file.h"

namespace ringfence::jailer {
namespace {

constexpr int kSigKill = 9;

// {"error":{"code","message"}}, or nothing that could be trusted.
Error WorkerError(const std::string& text) {
  Error error{Code::kUnavailable, "the worker failed and gave no reason"};
  const auto json = ParseJson(text, isolate::kInventoryBytesMax);
  const JsonObject* whole = json.has_value() ? json->if_object() : nullptr;
  const Json* inner = whole == nullptr ? nullptr : whole->if_contains("error");
  if (inner == nullptr) {
    return error;
  }
  auto reader = JsonReader::Open(*inner);
  if (!reader.has_value()) {
    return error;
  }
  const auto code = reader->String("code", 64);
  const auto message = reader->String("message", 4096);
  if (code.has_value() && message.has_value()) {
    error.code = CodeFromLabel(*code);
    error.message = *message;
  }
  return error;
}

}  // namespace

Status Workers::Add(isolate::StartedWorker worker, TimePoint deadline, Done done) {
  RINGFENCE_ASSIGN(os::UniqueFd process, os::OpenProcess(worker.pid));
  Worker added;
  added.pid = worker.pid;
  added.process = std::move(process);
  added.out = std::move(worker.out);
  added.deadline = deadline;
  added.done = std::move(done);
  workers_.push_back(std::move(added));
  return {};
}

void Workers::AddPollItems(std::vector<os::PollItem>& items) const {
  for (const Worker& worker : workers_) {
    if (worker.out.valid()) {
      items.push_back({worker.out.get()});
    }
  }
}

void Workers::ReadOutput() {
  for (Worker& worker : workers_) {
    std::array<std::byte, 65536> chunk{};
    while (worker.out.valid()) {
      const auto got = os::ReadSome(worker.out.get(), chunk);
      if (!got.has_value()) {
        break;  // nothing more now
      }
      if (*got == 0) {
        worker.out.Reset();
      } else if (worker.text.size() + *got > isolate::kInventoryBytesMax) {
        worker.too_long = true;
        worker.out.Reset();
        Kill(worker);
      } else {
        worker.text += AsText(ByteView(chunk).first(*got));
      }
    }
  }
}

bool Workers::OnEnded(const os::Ended& ended) {
  for (Worker& worker : workers_) {
    if (worker.pid == ended.pid && !worker.ended.has_value()) {
      worker.ended = ended;
      return true;
    }
  }
  return false;
}

void Workers::Kill(Worker& worker) {
  worker.killed = true;
  (void)os::SendSignal(worker.process.get(), kSigKill);
}

Result<std::string> Workers::Outcome(Worker& worker) {
  if (worker.too_long) {
    return Error{Code::kExhausted, "the worker wrote more than it may"};
  }
  if (worker.killed) {
    return Error{Code::kUnavailable, "the worker did not finish in time and was killed"};
  }
  if (worker.ended->signalled) {
    return Error{Code::kUnavailable,
                 "the worker was ended by signal " + std::to_string(worker.ended->code)};
  }
  if (worker.ended->code != 0) {
    return WorkerError(worker.text);
  }
  return std::move(worker.text);
}

void Workers::Tick(TimePoint now) {
  for (auto worker = workers_.begin(); worker != workers_.end();) {
    if (now >= worker->deadline && !worker->killed) {
      Kill(*worker);
    }
    if (!worker->ended.has_value() || worker->out.valid()) {
      ++worker;
      continue;
    }
    // Taken out first: what it calls may add a worker.
    std::list<Worker> finished;
    finished.splice(finished.begin(), workers_, worker++);
    finished.front().done(Outcome(finished.front()));
  }
}

std::optional<Workers::TimePoint> Workers::NextDeadline() const {
  std::optional<TimePoint> next;
  for (const Worker& worker : workers_) {
    if (!worker.killed && (!next.has_value() || worker.deadline < *next)) {
      next = worker.deadline;
    }
  }
  return next;
}

void Workers::KillAll() {
  for (Worker& worker : workers_) {
    Kill(worker);
  }
}

}  // namespace ringfence::jailer
