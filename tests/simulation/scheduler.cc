#include "scheduler.h"

#include <cinttypes>
#include <cstdio>

#include "base/check.h"

namespace ringfence::simulation {

Scheduler::~Scheduler() { Finish(); }

void Scheduler::Finish() {
  due_.clear();
  std::vector<Group> groups;
  for (const auto& [id, task] : tasks_) {
    groups.push_back(task->group);
  }
  for (const Group group : groups) {
    Kill(group);
  }
  while (!tasks_.empty()) {
    RINGFENCE_CHECK(Step(Milliseconds::max()));
  }
}

void Scheduler::After(Milliseconds delay, std::function<void()> work) {
  due_.emplace(std::pair(now_ + delay, sequence_++), std::move(work));
}

bool Scheduler::Step(Milliseconds until) {
  if (due_.empty() || due_.begin()->first.first > until) {
    return false;
  }
  auto next = due_.extract(due_.begin());
  now_ = next.key().first;
  ++steps_;
  next.mapped()();
  return true;
}

Scheduler::TaskRef Scheduler::Launch(Group group, std::function<void()> work) {
  auto task = std::make_shared<Task>();
  task->id = next_task_++;
  task->group = group;
  tasks_.emplace(task->id, task);
  task->thread = std::thread([this, raw = task.get(), work = std::move(work)] {
    raw->turn.Take();
    if (!raw->killed) {
      try {
        work();
      } catch (const Killed&) {  // its process is gone
      }
    }
    raw->done = true;
    turn_.Give();
  });
  After(Milliseconds(0), [this, task] { Resume(task, 0, true); });
  return task;
}

void Scheduler::Resume(const TaskRef& task, std::uint64_t number, bool woken) {
  if (task->done || task->ticket != number) {
    return;
  }
  task->woken = woken;
  ++task->ticket;  // nobody else wakes it from this wait
  current_ = task;
  task->turn.Give();
  turn_.Take();
  current_ = nullptr;
  if (task->done) {
    task->thread.join();
    tasks_.erase(task->id);
    for (const Ticket& joiner : task->joiners) {
      Wake(joiner);
    }
    task->joiners.clear();
  }
}

void Scheduler::HandBack() {
  Task* const task = current_.get();
  turn_.Give();
  task->turn.Take();
}

Scheduler::Ticket Scheduler::TakeTicket() { return {current_, current_->ticket}; }

bool Scheduler::Wait(const Ticket& ticket, std::optional<Milliseconds> time) {
  if (current_->killed) {
    throw Killed{};
  }
  if (time.has_value()) {
    After(*time, [this, ticket] { Resume(ticket.task, ticket.number, false); });
  }
  HandBack();
  if (current_->killed) {
    throw Killed{};
  }
  return current_->woken;
}

void Scheduler::Sleep(Milliseconds time) { (void)Wait(TakeTicket(), time); }

void Scheduler::Wake(const Ticket& ticket) {
  After(Milliseconds(0), [this, ticket] { Resume(ticket.task, ticket.number, true); });
}

void Scheduler::Join(const TaskRef& task) {
  while (!task->done) {
    task->joiners.push_back(TakeTicket());
    HandBack();
  }
}

void Scheduler::KillMe() {
  Kill(current_->group);
  throw Killed{};
}

void Scheduler::Kill(Group group) {
  for (const auto& [id, task] : tasks_) {
    if (task->group == group && !task->killed) {
      task->killed = true;
      After(Milliseconds(0), [this, task = task] { Resume(task, task->ticket, false); });
    }
  }
}

bool Scheduler::HasTasks(Group group) const {
  for (const auto& [id, task] : tasks_) {
    if (task->group == group) {
      return true;
    }
  }
  return false;
}

void Scheduler::Trace(std::string line) {
  char head[48];
  (void)std::snprintf(head, sizeof head, "%6" PRIu64 " %9.3f  ", steps_,
                      static_cast<double>(now_.count()) / 1000.0);
  line.insert(0, head);
  for (const char c : line) {
    trace_hash_ = (trace_hash_ ^ static_cast<unsigned char>(c)) * 0x100000001b3ULL;
  }
  trace_.push_back(std::move(line));
  if (trace_.size() > trace_kept_) {
    trace_.pop_front();
  }
}

}  // namespace ringfence::simulation
