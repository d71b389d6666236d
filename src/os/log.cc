#include "os/log.h"

#include <unistd.h>

#include <atomic>
#include <mutex>

#include "base/time.h"

namespace ringfence::os {
namespace {

std::atomic<Level> g_least{Level::kInfo};

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

void WriteLine(std::string_view level, std::string_view name, std::string_view event,
               std::string_view rest) {
  const SystemClock clock;
  std::string line = FormatTime(clock.Now());
  line.append(" ").append(name).append(" ").append(level).append(" ").append(event);
  line.append(rest).append("\n");
  (void)!write(STDERR_FILENO, line.data(), line.size());
}

}  // namespace

void SetLogLevel(Level least) { g_least = least; }

void SetLogName(std::string_view process) {
  Limiter& limiter = TheLimiter();
  const std::lock_guard lock(limiter.mutex);
  limiter.name = process;
}

void Log(Level level, std::string_view event, std::initializer_list<LogField> fields) {
  if (level < g_least) {
    return;
  }
  std::string rest;
  for (const auto& [key, value] : fields) {
    rest.append(" ").append(key).append("=").append(Quoted(value));
  }
  constexpr std::string_view kNames[] = {"debug", "info", "warning", "error"};
  Limiter& limiter = TheLimiter();
  const std::lock_guard lock(limiter.mutex);
  const std::int64_t second = SystemClock().Now().time_since_epoch().count() / 1000;
  if (second != limiter.second) {
    limiter.second = second;
    limiter.lines = 0;
    if (limiter.dropped > 0) {
      WriteLine("warning", limiter.name, "log_lines_dropped",
                " count=" + std::to_string(std::exchange(limiter.dropped, 0)));
    }
  }
  if (++limiter.lines > kLogLinesPerSecond) {
    ++limiter.dropped;
    return;
  }
  WriteLine(kNames[static_cast<int>(level)], limiter.name, event, rest);
}

}  // namespace ringfence::os
