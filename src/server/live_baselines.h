#pragma once

// Learned baselines over the server's own events: a series for each GPU, node, tenant and principal
// and what is measured of it, a sample a minute by the events' own time. An alarm becomes an alert
// that says what is usual. Memory is bounded: what is beyond kSeriesMax series is counted and not
// watched. A series that begins is judged by its peers, as soon as there
// are some.
//
// What was learned is stored every few minutes. An event that is seen again after a restart belongs
// to a minute that is over, and teaches nothing twice; what a dead server had not stored yet is a
// gap of minutes in the history.

#include <chrono>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "detect/alert.h"
#include "detect/baseline.h"
#include "store/baseline_records.h"
#include "store/database.h"
#include "store/event_records.h"

namespace ringfence::server {

// For one thread.
class LiveBaselines {
 public:
  static constexpr std::size_t kSeriesMax = 8192;

  // One event; alarms of minutes that are over are added to `found`.
  void Take(const store::EventRow& row, std::vector<detect::Match>& found);
  // Minutes that are over by the server's clock.
  void Tick(Timestamp now, std::vector<detect::Match>& found);

  // What has changed since the last time.
  std::vector<store::BaselineRow> TakeChanged();
  // Forgets everything, and knows what was stored. A state that is not of this build's layout is
  // passed over.
  void Load(const std::vector<store::BaselineRow>& rows);

  // What was stored is known from then on, until Unload: another server may learn meanwhile.
  Status Ready(store::Database& database);
  void Unload() { loaded_ = false; }
  // Stores what has changed, and forgets series that nothing was heard of for long.
  Status Keep(store::Database& database, Timestamp now);
  Status KeepNowAndThen(store::Database& database, Timestamp now);

  std::size_t series() const { return series_.size(); }
  std::uint64_t unwatched() const { return unwatched_; }

 private:
  // What a series is about: "gpu/busy_percent", and how it is fed.
  struct Kind {
    std::string_view subject;  // "gpu", "node", "tenant", "principal", "cluster"
    std::string_view measure;
    std::string_view title;
    bool counts;  // events of a minute, none is 0; else the mean of what they say
  };
  struct Series {
    std::size_t kind = 0;
    std::string subject;
    detect::Baseline baseline;
    std::int64_t minute = -1;  // the one that runs
    double sum = 0;
    std::uint32_t samples = 0;
    std::int64_t event = 0;  // the last of it
    bool changed = false;
  };
  static const std::vector<Kind>& Kinds();
  void Add(std::size_t kind, const std::string& subject, double value, const store::EventRow& row,
           std::vector<detect::Match>& found);
  Series* Find(std::size_t kind, const std::string& subject);
  void Close(Series& series, std::vector<detect::Match>& found);
  void TakeReading(const store::EventRow& row, std::vector<detect::Match>& found);
  detect::Baseline FromPeers(std::size_t kind) const;

  std::map<std::string, Series, std::less<>> series_;
  std::uint64_t unwatched_ = 0;
  bool loaded_ = false;
  std::chrono::steady_clock::time_point kept_;
};

}  // namespace ringfence::server
