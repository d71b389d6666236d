#include "os/log.h"

#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <mutex>

#include "base/json.h"
#include "base/time.h"
#include "os/log_format.h"

namespace ringfence::os {
namespace {

std::atomic<Level> g_least{Level::kInfo};
std::atomic<LogFormat> g_format{LogFormat::kText};
std::atomic<bool> g_journal{false};

constexpr std::string_view kNames[] = {"debug", "info", "warning", "error"};
constexpr std::string_view kPriorities[] = {"<7>", "<6>", "<4>", "<3>"};  // of syslog

struct Limiter {
  std::mutex mutex;
  std::string name = "ringfence";
  std::int64_t second = 0;
  int lines = 0;
  std::uint64_t dropped = 0;
};
Limiter& TheLimiter() {
  static Limiter limiter;
  return limiter;
}

std::string Quoted(std::string_view text) {
  std::string out;
  bool plain = !text.empty();
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    plain = plain && byte > 0x20 && c != '"' && c != '=' && byte != 0x7f;
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (c == '\n') {
      out += "\\n";
    } else if (byte < 0x20 || byte == 0x7f) {
      out += '?';
    } else {
      out += c;
    }
  }
  return plain ? out : '"' + out + '"';
}

// Whether standard error is the journal's stream, which takes a priority before each line.
bool StandardErrorIsJournal() {
  const char* const stream = std::getenv("JOURNAL_STREAM");  // "DEVICE:INODE"
  struct stat facts{};
  return stream != nullptr && fstat(STDERR_FILENO, &facts) == 0 &&
         std::to_string(facts.st_dev) + ":" + std::to_string(facts.st_ino) == stream;
}

std::string TextLine(Level level, std::string_view name, std::string_view event,
                     std::initializer_list<LogField> fields) {
  std::string line = FormatTime(SystemClock().Now());
  line.append(" ").append(name).append(" ").append(kNames[static_cast<int>(level)]);
  line.append(" ").append(event);
  for (const auto& [key, value] : fields) {
    line.append(" ").append(key).append("=").append(Quoted(value));
  }
  return line;
}

std::string JsonLine(Level level, std::string_view name, std::string_view event,
                     std::initializer_list<LogField> fields) {
  JsonObject object;
  for (const auto& [key, value] : fields) {
    object[key] = value;
  }
  object["time"] = FormatTime(SystemClock().Now());
  object["process"] = name;
  object["level"] = kNames[static_cast<int>(level)];
  object["event"] = event;
  return (g_journal ? std::string(kPriorities[static_cast<int>(level)]) : "") +
         CanonicalJson(object);
}

void WriteLine(Level level, std::string_view name, std::string_view event,
               std::initializer_list<LogField> fields) {
  std::string line = g_format == LogFormat::kJson ? JsonLine(level, name, event, fields)
                                                  : TextLine(level, name, event, fields);
  line += '\n';
  (void)!write(STDERR_FILENO, line.data(), line.size());
}

}  // namespace

void SetLogLevel(Level least) { g_least = least; }

void SetLogFormat(LogFormat format) {
  g_format = format;
  g_journal = format == LogFormat::kJson && StandardErrorIsJournal();
}

void SetLogName(std::string_view process) {
  Limiter& limiter = TheLimiter();
  const std::lock_guard lock(limiter.mutex);
  limiter.name = process;
}

void Log(Level level, std::string_view event, std::initializer_list<LogField> fields) {
  if (level < g_least) {
    return;
  }
  Limiter& limiter = TheLimiter();
  const std::lock_guard lock(limiter.mutex);
  const std::int64_t second = SystemClock().Now().time_since_epoch().count() / 1000;
  if (second != limiter.second) {
    limiter.second = second;
    limiter.lines = 0;
    if (limiter.dropped > 0) {
      WriteLine(Level::kWarning, limiter.name, "log_lines_dropped",
                {{"count", std::to_string(std::exchange(limiter.dropped, 0))}});
    }
  }
  if (++limiter.lines > kLogLinesPerSecond) {
    ++limiter.dropped;
    return;
  }
  WriteLine(level, limiter.name, event, fields);
}

}  // namespace ringfence::os
