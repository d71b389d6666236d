#pragma once

// Leases that are held for another runtime's containers: from the CDI document in its folder to
// nobody having the lease's devices any more. One thread; the jailer's loop.

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
#include "isolate/cdi_folder.h"
#include "isolate/held.h"
#include "isolate/jailer_client.h"
#include "jailer/records.h"
#include "os/holders.h"

namespace ringfence::jailer {

struct HeldPlace {
  std::string cdi_folder;   // that runtimes read; empty: no leases for them
  std::string hook;         // the ringfence-hook program
  std::string held_folder;  // of isolate::HeldFolder
  std::string driver_root;
};

class HeldLeases {
 public:
  using TimePoint = std::chrono::steady_clock::time_point;
  using Started = std::function<void(Result<isolate::StartedBox>)>;
  using Incident = std::function<void(const std::string& what, const std::string& detail)>;

  // `records` and `clock` must outlive this.
  HeldLeases(HeldPlace place, Records& records, const Clock& clock)
      : place_(std::move(place)), records_(&records), clock_(&clock) {}

  // Ends what an earlier jailer held, and brings the folder in step. Returns the leases that are
  // not over yet, because a container of theirs is still there: Tick goes on with them.
  Result<std::set<std::string>> Recover();
  void OnIncident(Incident report) { report_ = std::move(report); }

  // The record must be durable already. `started` is called once, at once.
  void Start(const isolate::BoxPlan& plan, TimePoint now, const Started& started);
  // The document goes first, so that no container takes the lease any more. SIGTERM to those that
  // have, SIGKILL ten seconds later. Unknown or ended leases are passed over.
  void End(const std::string& lease, TimePoint now);
  void KillAll(TimePoint now);
  bool empty() const { return leases_.empty(); }
  // This process of ours reads every card and is in nobody's way; 0: there is none.
  void Spare(int pid) { spared_ = pid; }
  // Who still has the devices of a lease that is ending; empty when nobody is known.
  std::string InTheWayOf(const std::string& lease) const;

  void Tick(TimePoint now);
  std::optional<TimePoint> NextDeadline() const;

 private:
  struct Held {
    std::string document;
    os::Holdable devices;
    std::vector<os::Holder> before;
    os::UniqueFd exit;  // write end
    std::string exit_line = "exited 0\n";
    TimePoint deadline;  // of the lease
    bool ending = false;
    TimePoint kill_at;
    TimePoint look_at;  // when to look again whether it is over
    TimePoint give_up_at;
    std::string in_the_way;  // who still has its devices
  };
  using Place = std::map<std::string, Held>::iterator;

  Result<isolate::StartedBox> Hold(const isolate::BoxPlan& plan, TimePoint now);
  void BeginEnd(const std::string& lease, Held& held, TimePoint now);
  // Whether nobody has its devices any more; kills who is past his time.
  Result<bool> IsOver(const std::string& lease, Held& held, TimePoint now);
  void LookAgain(Place place, TimePoint now);
  os::Holdable DevicesOf(const gpu::DriverFiles& files) const;
  Status PrepareFolders();
  void Sweep(TimePoint now);
  void Report(const std::string& what, const std::string& detail, TimePoint now);

  HeldPlace place_;
  Records* records_;
  const Clock* clock_;
  Incident report_;
  std::optional<isolate::HeldFolder> folder_;
  std::map<std::string, Held> leases_;
  TimePoint sweep_at_;
  int spared_ = 0;
  std::map<std::string, TimePoint> reported_;
};

}  // namespace ringfence::jailer
