#include "server/live_intel.h"

#include <algorithm>
#include <set>

#include "detect/indicator_json.h"
#include "os/log.h"
#include "server/core.h"

namespace ringfence::server {
namespace {

using std::chrono::steady_clock;

constexpr std::chrono::seconds kLookEvery{1};
constexpr std::int64_t kHuntPerStep = 256;
constexpr std::size_t kPartBytesMax = std::size_t{4} << 20U;

bool SameUploads(const std::vector<store::IntelFeed>& some,
                 const std::vector<store::IntelFeed>& others) {
  return std::equal(some.begin(), some.end(), others.begin(), others.end(),
                    [](const store::IntelFeed& a, const store::IntelFeed& b) {
                      return a.name == b.name && a.upload == b.upload;
                    });
}

// Bad lines cannot be there: the route that stored them read them first.
Status AddPart(const std::string& text, std::vector<detect::Indicator>& indicators) {
  RINGFENCE_ASSIGN(const Json json, ParseJson(text, kPartBytesMax));
  RINGFENCE_ASSIGN(auto reader, JsonReader::Open(json));
  RINGFENCE_ASSIGN(const auto items, reader.Array("indicators"));
  for (const Json* const item : items) {
    RINGFENCE_ASSIGN(detect::Indicator indicator, detect::IndicatorFromJson(*item));
    indicators.push_back(std::move(indicator));
  }
  return {};
}

bool IsDone(const store::IntelFeed& feed) {
  return feed.hunt_until >= 0 && feed.hunt_from >= feed.hunt_until;
}

std::string KeyOf(const detect::Indicator& indicator) {
  return std::string(Name(indicator.kind)) + " " + indicator.value;
}

}  // namespace

Status LiveIntel::Look(std::int64_t evaluated) {
  const auto now = steady_clock::now();
  if (looked_.has_value() && now - *looked_ < kLookEvery) {
    return {};
  }
  std::vector<store::IntelFeed> feeds;
  RINGFENCE_TRY(core_.database().Read([&](store::Connection& db) -> Status {
    RINGFENCE_ASSIGN(feeds, store::ListIntelFeeds(db));
    return {};
  }));
  if (!SameUploads(feeds, read_)) {
    RINGFENCE_TRY(Read(feeds, evaluated));
  }
  looked_ = now;
  return {};
}

Status LiveIntel::Read(const std::vector<store::IntelFeed>& feeds, std::int64_t evaluated) {
  auto all = std::make_unique<detect::IndicatorIndex>();
  // What was held against all stored events already is not hunted again with the feed's next
  // edition. After a restart that is not known, and the whole edition is hunted.
  std::set<std::string> known;
  for (const detect::Indicator& indicator : all_->indicators()) {
    known.insert(KeyOf(indicator));
  }
  std::vector<Chase> chases;
  for (const store::IntelFeed& feed : feeds) {
    std::vector<std::string> parts;
    RINGFENCE_TRY(core_.database().Read([&](store::Connection& db) -> Status {
      RINGFENCE_ASSIGN(parts, store::IntelPartsOf(db, feed));
      return {};
    }));
    std::vector<detect::Indicator> indicators;
    for (const std::string& part : parts) {
      RINGFENCE_TRY(AddPart(part, indicators));
    }
    Chase chase{feed, std::make_unique<detect::IndicatorIndex>()};
    if (feed.hunt_until < 0) {
      chase.feed.hunt_from = 0;
      chase.feed.hunt_until = evaluated;
    }
    for (const detect::Indicator& indicator : indicators) {
      RINGFENCE_TRY(all->Add(indicator));
      if (!IsDone(feed) && (feed.hunt_until >= 0 || !known.contains(KeyOf(indicator)))) {
        RINGFENCE_TRY(chase.index->Add(indicator));
      }
    }
    if (!IsDone(feed)) {
      chases.push_back(std::move(chase));
    }
  }
  all_ = std::move(all);
  chases_ = std::move(chases);
  read_ = feeds;
  os::Log(os::Level::kInfo, "indicators_loaded",
          {{"feeds", std::to_string(feeds.size())}, {"indicators", std::to_string(indicators())}});
  return {};
}

void LiveIntel::MatchWith(detect::IndicatorIndex& index, const store::EventRow& row,
                          std::vector<detect::Match>& found) {
  if (index.indicators().empty()) {
    return;
  }
  const auto json = ParseJson(row.event, detect::kLiveEventBytesMax * 2);
  if (!json.has_value()) {
    return;
  }
  const auto event = mapping_.Apply(*json);
  if (!event.has_value()) {
    return;
  }
  index.Match(event->observation(), static_cast<std::uint64_t>(row.seq), numbers_);
  const detect::Moment time{
      std::chrono::duration_cast<std::chrono::microseconds>(row.time.time_since_epoch()).count()};
  for (const std::uint32_t number : numbers_) {
    const detect::Indicator& indicator = index.indicators()[number];
    if (indicator.ValidAt(time)) {
      detect::Match match = detect::MatchOf(indicator);
      match.members = {row.seq};
      found.push_back(std::move(match));
    }
  }
}

void LiveIntel::Match(const store::EventRow& row, std::vector<detect::Match>& found) {
  MatchWith(*all_, row, found);
}

Result<LiveIntel::Hunted> LiveIntel::Hunt() {
  Hunted hunted;
  if (chases_.empty()) {
    return hunted;
  }
  Chase& chase = chases_.front();
  store::IntelFeed feed = chase.feed;
  std::vector<store::EventRow> rows;
  if (!chase.index->indicators().empty()) {
    RINGFENCE_TRY(core_.database().Read([&](store::Connection& db) -> Status {
      store::EventFilter filter;
      filter.from = feed.hunt_from;
      filter.limit = kHuntPerStep;
      RINGFENCE_ASSIGN(rows, store::ListEvents(db, filter));
      return {};
    }));
  }
  for (const store::EventRow& row : rows) {
    if (row.seq < feed.hunt_until) {
      MatchWith(*chase.index, row, hunted.found);
    }
  }
  const bool more = static_cast<std::int64_t>(rows.size()) == kHuntPerStep;
  feed.hunt_from = more ? std::min(rows.back().seq + 1, feed.hunt_until) : feed.hunt_until;
  hunted.feeds.push_back(std::move(feed));
  return hunted;
}

void LiveIntel::Went(const Hunted& hunted) {
  if (chases_.empty() || hunted.feeds.empty()) {
    return;
  }
  chases_.front().feed = hunted.feeds.front();
  if (IsDone(chases_.front().feed)) {
    chases_.erase(chases_.begin());
  }
}

}  // namespace ringfence::server
