#pragma once

// Boxes under way: from the runtime's start to nothing left. One thread; every event comes through
// the jailer's loop.

#include <chrono>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/time.h"
#include "isolate/box.h"
#include "isolate/box_network.h"
#include "isolate/jailer_client.h"
#include "isolate/resolver.h"
#include "jailer/names.h"
#include "jailer/records.h"
#include "os/process.h"

namespace ringfence::jailer {

class Boxes {
 public:
  using TimePoint = std::chrono::steady_clock::time_point;
  using Started = std::function<void(Result<isolate::StartedBox>)>;

  // `records` and `clock` must outlive this.
  Boxes(isolate::BoxPlace place, isolate::NetworkPlace network, isolate::ResolverPlace resolver,
        Records& records, const Clock& clock)
      : place_(std::move(place)),
        network_place_(std::move(network)),
        resolver_place_(std::move(resolver)),
        records_(&records),
        clock_(&clock) {}

  // Ends and removes what an earlier jailer left. OK means: nothing of its boxes is there.
  // `held` are leases without a box, which are not looked at.
  Status Recover(const std::string& driver_root, const std::set<std::string>& held = {});

  // The record must be durable already. `started` is called once, later or at once.
  void Start(isolate::BoxPlan plan, TimePoint now, Started started);
  // SIGTERM, and SIGKILL ten seconds later. Unknown or ended leases are passed over.
  void End(const std::string& lease, TimePoint now);
  void KillAll();
  bool empty() const { return boxes_.empty(); }

  void AddPollItems(std::vector<os::PollItem>& items) const;
  void ReadStatus();
  bool IsRuntime(int pid) const;
  bool OnEnded(const os::Ended& ended, TimePoint now);
  void Tick(TimePoint now);
  std::optional<TimePoint> NextDeadline() const;

 private:
  struct Box {
    isolate::BoxPlan plan;
    int runtime_pid = 0;   // 0 once it has ended
    int init_pid = 0;      // 0 until the box runs
    os::UniqueFd process;  // of whichever of the two is there
    os::UniqueFd status;
    os::UniqueFd out;  // handed on with `started`
    os::UniqueFd err;
    os::UniqueFd exit;  // write end
    os::UniqueFd exit_read;
    TimePoint deadline;  // of the runtime's start, then of the job
    std::optional<TimePoint> kill_at;
    bool ready = false;  // signals reach the job
    bool end_asked = false;
    bool term_sent = false;
    bool timed_out = false;
    bool take_down_failed = false;
    TimePoint take_down_at;  // the next try
    TimePoint give_up_at;    // of taking it down, when the agent is told
    std::string exit_line;   // for `exit`, once nothing of the box is left
    model::Denied denied;    // by the firewall, as far as was looked
    Started started;
  };
  using Place = std::map<std::string, Box>::iterator;

  Status CheckSharing(const Box& box) const;
  Status Launch(Box& box);
  // Puts the box on the network that its grant has, and lets its command start.
  Status Connect(const Box& box, int pid);
  Status Disconnect(Box& box);
  void LookAtDenied(const std::string& lease, Box& box);
  void OnRuntimeEnded(Place place, const os::Ended& ended, TimePoint now);
  void OnBoxEnded(Place place, const os::Ended& ended, TimePoint now);
  void Finish(Place place, TimePoint now);
  void Fail(Place place, const Error& error);
  std::string ExitLine(Box& box, const os::Ended& ended) const;
  bool TakeDown(Box& box);
  static void Terminate(Box& box, TimePoint now);

  isolate::BoxPlace place_;
  isolate::NetworkPlace network_place_;
  std::unique_ptr<isolate::BoxNetwork> network_;  // with the first box that has one
  isolate::ResolverPlace resolver_place_;
  std::unique_ptr<Names> names_;  // with the first box that has some; before network_ it goes
  TimePoint look_at_;             // when to look what was denied
  Records* records_;
  const Clock* clock_;
  std::map<std::string, Box> boxes_;
};

}  // namespace ringfence::jailer
