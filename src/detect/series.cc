#include "detect/series.h"

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cmath>
#include <unordered_map>

#include "os/file.h"

namespace ringfence::detect {
namespace {

constexpr std::size_t kFieldsMax = 64;

std::string_view Trimmed(std::string_view text) {
  while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) {
    text.remove_prefix(1);
  }
  while (!text.empty() && (text.back() == ' ' || text.back() == '\t' || text.back() == '\r')) {
    text.remove_suffix(1);
  }
  if (text.size() >= 2 && text.front() == '"' && text.back() == '"') {
    text = text.substr(1, text.size() - 2);
  }
  return text;
}

// No field of these files has a comma in it.
std::vector<std::string_view> Fields(std::string_view line) {
  std::vector<std::string_view> fields;
  while (fields.size() < kFieldsMax) {
    const std::size_t comma = line.find(',');
    fields.push_back(Trimmed(line.substr(0, comma)));
    if (comma == std::string_view::npos) {
      break;
    }
    line.remove_prefix(comma + 1);
  }
  return fields;
}

std::string Quoted(std::string_view text) {
  std::string quoted = "\"";
  for (const char c : text.substr(0, 40)) {
    quoted += c >= ' ' && c < 0x7f ? c : '?';
  }
  return quoted + "\"";
}

bool Read(std::string_view text, std::size_t at, std::size_t count, int* into) {
  if (text.size() < at + count) {
    return false;
  }
  const char* begin = text.data() + at;
  const auto [end, error] = std::from_chars(begin, begin + count, *into);
  return error == std::errc() && end == begin + count && *begin != '-';
}

Result<double> ParseValue(std::string_view text) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (text.empty() || error != std::errc() || end != text.data() + text.size()) {
    return Error{Code::kInvalidArgument, "the value " + Quoted(text) + " is not a number"};
  }
  if (!std::isfinite(value) || std::fabs(value) > 1e30) {
    return Error{Code::kInvalidArgument, "the value " + Quoted(text) + " is not a finite number"};
  }
  return value;
}

// Which column holds what.
struct Columns {
  std::size_t time = 0;
  std::size_t value = 1;
  std::size_t name = std::string_view::npos;
  std::size_t count = 2;
};

bool IsOneOf(std::string_view text, std::initializer_list<std::string_view> names) {
  return std::find(names.begin(), names.end(), text) != names.end();
}

Columns ColumnsOf(const std::vector<std::string_view>& first) {
  Columns columns;
  columns.count = first.size();
  if (first.size() >= 3) {
    columns.name = 1;
    columns.value = 2;
  }
  for (std::size_t i = 0; i < first.size(); ++i) {
    if (IsOneOf(first[i], {"timestamp", "timestamp_s", "time"})) {
      columns.time = i;
    } else if (first[i] == "value") {
      columns.value = i;
    }
  }
  if (first.size() == 2) {
    columns.value = columns.value == columns.time ? 1 - columns.time : columns.value;
  } else if (columns.name == columns.value || columns.name == columns.time) {
    columns.name = std::string_view::npos;  // further columns of one series
  }
  return columns;
}

class Reader {
 public:
  Result<SeriesFile> Read(std::string_view text) {
    std::size_t line = 0;
    while (!text.empty()) {
      const std::size_t end = text.find('\n');
      const std::string_view row = text.substr(0, end);
      text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
      RINGFENCE_TRY(Row(row, ++line));
    }
    if (file_.rows == 0) {
      return Error{Code::kInvalidArgument,
                   file_.bad.empty()
                       ? "there are no rows"
                       : "no row can be read; line " + std::to_string(file_.bad[0].line) + ": " +
                             file_.bad[0].what,
                   "rows are timestamp,value or timestamp,series,value"};
    }
    return std::move(file_);
  }

 private:
  Status Row(std::string_view row, std::size_t line) {
    if (Trimmed(row).empty()) {
      return {};
    }
    if (row.size() > kSeriesLineBytesMax) {
      Bad(line, "longer than " + std::to_string(kSeriesLineBytesMax) + " bytes");
      return {};
    }
    const std::vector<std::string_view> fields = Fields(row);
    if (!begun_) {
      begun_ = true;
      columns_ = ColumnsOf(fields);
      const bool header =
          columns_.time < fields.size() && !ParseSeriesTime(fields[columns_.time]).has_value();
      if (header) {
        return {};
      }
    }
    if (fields.size() != columns_.count || fields.size() < 2) {
      Bad(line, std::to_string(fields.size()) + " fields where there should be " +
                    std::to_string(std::max<std::size_t>(2, columns_.count)));
      return {};
    }
    const auto time = ParseSeriesTime(fields[columns_.time]);
    const auto value = ParseValue(fields[columns_.value]);
    if (!time.has_value() || !value.has_value()) {
      Bad(line, time.has_value() ? value.error().message : time.error().message);
      return {};
    }
    return Add(fields, *time, *value);
  }

  Status Add(const std::vector<std::string_view>& fields, std::int64_t time, double value) {
    const std::string name(columns_.name < fields.size() ? fields[columns_.name] : "");
    const auto [at, fresh] = known_.try_emplace(name, file_.series.size());
    if (fresh) {
      if (file_.series.size() == kSeriesMax) {
        return Error{Code::kExhausted, "more than " + std::to_string(kSeriesMax) + " series"};
      }
      file_.series.push_back({name, {}});
    }
    std::vector<Sample>& samples = file_.series[at->second].samples;
    file_.backwards += !samples.empty() && time <= samples.back().time_s ? 1 : 0;
    samples.push_back({std::string(fields[columns_.time]), time, value});
    ++file_.rows;
    return {};
  }

  void Bad(std::size_t line, std::string what) {
    ++file_.bad_count;
    if (file_.bad.size() < kBadRowsKept) {
      file_.bad.push_back({line, std::move(what)});
    }
  }

  SeriesFile file_;
  Columns columns_;
  std::unordered_map<std::string, std::size_t> known_;
  bool begun_ = false;
};

}  // namespace

Result<std::int64_t> ParseSeriesTime(std::string_view text) {
  const Error bad{Code::kInvalidArgument, "the time " + Quoted(text) + " cannot be read",
                  "write it as 2026-11-15 08:46:30, 2026-11-15T08:46:30Z or in seconds since 1970"};
  int year = 0;
  int month = 0;
  int day = 0;
  int hour = 0;
  int minute = 0;
  int second = 0;
  if (text.size() >= 16 && text[4] == '-' && text[7] == '-') {
    const bool seconds = text.size() >= 19 && text[16] == ':';
    if (!Read(text, 0, 4, &year) || !Read(text, 5, 2, &month) || !Read(text, 8, 2, &day) ||
        !Read(text, 11, 2, &hour) || !Read(text, 14, 2, &minute) || text[13] != ':' ||
        (text[10] != ' ' && text[10] != 'T') || (seconds && !Read(text, 17, 2, &second))) {
      return bad;
    }
    std::string_view rest = text.substr(seconds ? 19 : 16);
    if (!rest.empty() && rest[0] == '.') {
      rest.remove_prefix(1);
      rest.remove_prefix(std::min(rest.find_first_not_of("0123456789"), rest.size()));
    }
    const std::chrono::year_month_day date(std::chrono::year(year),
                                           std::chrono::month(static_cast<unsigned>(month)),
                                           std::chrono::day(static_cast<unsigned>(day)));
    if (!IsOneOf(rest, {"", "Z", "+00:00"}) || !date.ok() || hour > 23 || minute > 59 ||
        second > 60) {
      return bad;
    }
    return std::chrono::seconds(std::chrono::sys_days(date).time_since_epoch()).count() +
           hour * 3600 + minute * 60 + second;
  }
  double number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  constexpr double kLatest = 253'402'300'799.0;  // the year 9999
  if (text.empty() || error != std::errc() || end != text.data() + text.size() ||
      !(number >= 0 && number <= kLatest * 1000)) {
    return bad;
  }
  // Seconds up to the year 5138; larger numbers are milliseconds.
  return static_cast<std::int64_t>(number < 1e11 ? number : number / 1000);
}

Result<SeriesFile> ParseSeries(std::string_view text) { return Reader().Read(text); }

Result<SeriesFile> ReadSeries(const std::string& path) {
  RINGFENCE_ASSIGN(const std::string text, os::ReadText(path, kSeriesFileBytesMax));
  auto file = ParseSeries(text);
  if (!file.has_value()) {
    return Prefix(path, file.error());
  }
  return file;
}

}  // namespace ringfence::detect
