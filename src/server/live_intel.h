#pragma once

// Known-bad indicators over the server's own events: each new event is held against all feeds, and
// a feed that is new is held against all events that are still stored. How far that is, is stored,
// so that a hunt goes on after a restart.

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "detect/alert.h"
#include "detect/indicator_index.h"
#include "detect/mapping.h"
#include "store/event_records.h"
#include "store/intel_records.h"

namespace ringfence::server {

class Core;

inline constexpr std::int64_t kIntelIndicatorsMax = 200'000;  // of all feeds

// For one thread.
class LiveIntel {
 public:
  LiveIntel(Core& core, detect::Mapping mapping) : core_(core), mapping_(std::move(mapping)) {}

  // Reads the feeds again if they are others. Events before `evaluated` were not held against what
  // is new: they are hunted.
  Status Look(std::int64_t evaluated);
  // What an event shows of all feeds.
  void Match(const store::EventRow& row, std::vector<detect::Match>& found);
  // Events hunted at a time: what they show, and the feeds' new places. Nothing to do: no feeds.
  struct Hunted {
    std::vector<store::IntelFeed> feeds;
    std::vector<detect::Match> found;
  };
  Result<Hunted> Hunt();
  // The hunt's places are stored.
  void Went(const Hunted& hunted);

  std::int64_t indicators() const { return static_cast<std::int64_t>(all_->indicators().size()); }

 private:
  struct Chase {
    store::IntelFeed feed;
    std::unique_ptr<detect::IndicatorIndex> index;
  };
  Status Read(const std::vector<store::IntelFeed>& feeds, std::int64_t evaluated);
  void MatchWith(detect::IndicatorIndex& index, const store::EventRow& row,
                 std::vector<detect::Match>& found);

  Core& core_;
  const detect::Mapping mapping_;
  std::unique_ptr<detect::IndicatorIndex> all_ = std::make_unique<detect::IndicatorIndex>();
  std::vector<Chase> chases_;
  std::vector<store::IntelFeed> read_;  // the feeds in all_
  std::optional<std::chrono::steady_clock::time_point> looked_;
  detect::IndicatorIndex::Numbers numbers_;
};

}  // namespace ringfence::server
