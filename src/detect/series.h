#pragma once

// Series of numbers from CSV: "timestamp,value", or "timestamp,series,value" for several in one
// file. Rows that cannot be read are set aside with their line and the reason; the others count.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace ringfence::detect {

inline constexpr std::size_t kSeriesFileBytesMax = std::size_t{1} << 30U;
inline constexpr std::size_t kSeriesLineBytesMax = 64 * 1024;
inline constexpr std::size_t kSeriesMax = 1'000'000;
inline constexpr std::size_t kBadRowsKept = 100;

struct Sample {
  std::string time;  // as it was written
  std::int64_t time_s = 0;
  double value = 0;
};

struct Series {
  std::string name;  // empty in a file of one
  std::vector<Sample> samples;
};

struct BadRow {
  std::size_t line = 0;
  std::string what;
};

struct SeriesFile {
  std::vector<Series> series;  // in the order of their first rows
  std::size_t rows = 0;
  std::size_t bad_count = 0;
  std::vector<BadRow> bad;    // the first of them
  std::size_t backwards = 0;  // rows whose time is not after that of the row before
};

// "2014-04-01 00:05:00", "2014-04-01T00:05:00.123Z", seconds or milliseconds since 1970.
Result<std::int64_t> ParseSeriesTime(std::string_view text);

// kInvalidArgument when no row can be read, or there are more series than kSeriesMax.
Result<SeriesFile> ParseSeries(std::string_view text);
// The same; errors name the file.
Result<SeriesFile> ReadSeries(const std::string& path);

}  // namespace ringfence::detect
