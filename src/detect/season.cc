#include "detect/season.h"

#include <algorithm>
#include <cmath>
#include <vector>

namespace ringfence::detect {
namespace {

constexpr std::int64_t kDay = 86400;
constexpr float kDayRate = 0.15F;   // of what one more day says, once there are several
constexpr float kWeekRate = 0.15F;  // of what one more week says, for each of its two hours
constexpr float kCut = 1.5F;        // spreads that one value may pull
constexpr unsigned kDaysBeforeWeeks = 6;
constexpr unsigned kDaysBeforeCut = 2;

struct Place {
  std::int32_t day;
  int weekday;  // 0: Sunday
  int hour;
};
Place PlaceOf(std::int64_t time_s) {
  const std::int64_t day = time_s >= 0 ? time_s / kDay : (time_s - kDay + 1) / kDay;
  return {static_cast<std::int32_t>(day), static_cast<int>(((day + 4) % 7 + 7) % 7),
          static_cast<int>((time_s - day * kDay) / 3600)};
}

}  // namespace

Season::Blend Season::Cell(int weekday, int hour) const {
  if (hour < 0 || hour > 23) {
    weekday = (weekday + (hour < 0 ? 6 : 1)) % 7;
    hour = hour < 0 ? 23 : 0;
  }
  const auto h = static_cast<std::size_t>(hour);
  const auto w = static_cast<std::size_t>(weekday);
  const auto weeks = static_cast<float>(weeks_[w]);
  return {hour_[h] + week_[w * 12 + h / 2].get() * weeks / (weeks + 1.5F), days_[h] > 0};
}

Season::Usual Season::At(std::int64_t time_s) const {
  const Place place = PlaceOf(time_s);
  // Between the middles of two hours lies a line.
  const auto into = static_cast<float>(time_s - place.day * kDay - place.hour * 3600) / 3600.0F;
  const int other = into < 0.5F ? place.hour - 1 : place.hour + 1;
  const float share = std::fabs(into - 0.5F);
  const Blend here = Cell(place.weekday, place.hour);
  const Blend there = Cell(place.weekday, other);
  Usual usual;
  usual.days = days_[static_cast<std::size_t>(place.hour)];
  usual.weeks = weeks_[static_cast<std::size_t>(place.weekday)];
  usual.level = there.known ? here.level * (1 - share) + there.level * share : here.level;
  return usual;
}

void Season::Learn(std::int64_t time_s, float value, float spread) {
  const Place place = PlaceOf(time_s);
  if (place.day != day_ || place.hour != open_) {
    Commit();
    day_ = place.day;
    open_ = static_cast<std::uint8_t>(place.hour);
  }
  const Blend cell = Cell(place.weekday, place.hour);
  float off = value - cell.level;
  if (days_[open_] > kDaysBeforeCut) {
    off = std::clamp(off, -kCut * spread, kCut * spread);
  }
  sum_ += off;
  ++count_;
}

void Season::Commit() {
  if (count_ == 0) {
    return;
  }
  const float off = sum_ / static_cast<float>(count_);
  sum_ = 0;
  count_ = 0;
  const auto more = [](std::uint8_t& counter) {
    counter = static_cast<std::uint8_t>(std::min(255, counter + 1));
  };
  more(days_[open_]);
  hour_[open_] += off * std::max(1.0F / static_cast<float>(days_[open_]), kDayRate);
  if (days_[open_] <= kDaysBeforeWeeks) {
    return;
  }
  const auto weekday = static_cast<std::size_t>(((day_ + 4) % 7 + 7) % 7);
  if (open_ == 23 || weeks_[weekday] == 0) {
    more(weeks_[weekday]);
  }
  ShortFloat& week = week_[weekday * 12 + open_ / 2U];
  const float rate = std::max(0.5F / static_cast<float>(weeks_[weekday]), kWeekRate);
  week = ShortFloat(week.get() + rate * (1 - kDayRate) * off);
}

void Season::LearnFrom(std::span<const Peer> peers) {
  for (std::size_t hour = 0; hour < hour_.size(); ++hour) {
    std::vector<float> levels;
    unsigned days = 0;
    for (const Peer& peer : peers) {
      if (peer.season->days_[hour] > 0) {
        levels.push_back(peer.season->hour_[hour] + peer.shift);
        days = std::max<unsigned>(days, peer.season->days_[hour]);
      }
    }
    if (!levels.empty()) {
      std::nth_element(levels.begin(), levels.begin() + static_cast<long>(levels.size() / 2),
                       levels.end());
      hour_[hour] = levels[levels.size() / 2];
      days_[hour] = static_cast<std::uint8_t>(days);
    }
  }
}

}  // namespace ringfence::detect
