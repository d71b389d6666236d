// Durable appends to the audit table by many writers at once against commits one by one, in turn on
// the same disk. For both, an append counts once it would survive a power cut.
//   commits FOLDER [--writers N] [--seconds S] [--rounds N]      prints JSON
//
// "one": SQLite alone, WAL and synchronous=FULL, the same table, a commit for each entry.
// "many": store::Database as the server uses it, N threads that each wait for their own entry.
// "sync": a page written and synced, over and over: what the disk itself can do.

#include <fcntl.h>
#include <sqlite3.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <iostream>
#include <mutex>
#include <thread>
#include <vector>

#include "base/json.h"
#include "crypto/random.h"
#include "load/histogram.h"
#include "os/file.h"
#include "store/database.h"
#include "store/records.h"

namespace ringfence::bench {
namespace {

using Clock = std::chrono::steady_clock;
constexpr std::size_t kEntryBytes = 700;  // what a denial takes

struct Options {
  std::string folder;
  int writers = 64;
  double seconds = 3;
  int rounds = 3;
};

struct Outcome {
  double per_second = 0;
  Histogram times;
};

std::uint64_t MicrosSince(Clock::time_point start) {
  return static_cast<std::uint64_t>(
      std::chrono::duration_cast<std::chrono::microseconds>(Clock::now() - start).count());
}

[[noreturn]] void Die(const std::string& why) {
  std::cerr << "error: " << why << "\n";
  std::exit(1);
}

// Calls `work` until the time is over.
template <typename Work>
Outcome Measure(double seconds, Work work) {
  Outcome outcome;
  const auto start = Clock::now();
  const auto most = static_cast<std::uint64_t>(seconds * 1e6);
  while (MicrosSince(start) < most) {
    const auto before = Clock::now();
    work();
    outcome.times.Add(MicrosSince(before));
  }
  outcome.per_second =
      static_cast<double>(outcome.times.count()) * 1e6 / static_cast<double>(MicrosSince(start));
  return outcome;
}

class OneByOne {
 public:
  explicit OneByOne(const std::string& path) {
    if (sqlite3_open(path.c_str(), &db_) != SQLITE_OK) {
      Die("open " + path);
    }
    for (const char* const sql :
         {"PRAGMA journal_mode = WAL", "PRAGMA synchronous = FULL",
          "CREATE TABLE audit (seq INTEGER PRIMARY KEY, action TEXT NOT NULL, lease TEXT NOT NULL,"
          " entry BLOB NOT NULL)",
          "CREATE INDEX audit_by_lease ON audit (lease, seq) WHERE lease <> ''",
          "CREATE INDEX audit_by_action ON audit (action, seq)"}) {
      if (sqlite3_exec(db_, sql, nullptr, nullptr, nullptr) != SQLITE_OK) {
        Die(sqlite3_errmsg(db_));
      }
    }
    (void)sqlite3_prepare_v2(db_, "INSERT INTO audit VALUES (?, 'lease.request', '', ?)", -1,
                             &insert_, nullptr);
  }
  ~OneByOne() {
    (void)sqlite3_finalize(insert_);
    (void)sqlite3_close(db_);
  }
  OneByOne(const OneByOne&) = delete;
  OneByOne& operator=(const OneByOne&) = delete;

  void Append(const Bytes& entry) {
    (void)sqlite3_bind_int64(insert_, 1, next_++);
    (void)sqlite3_bind_blob(insert_, 2, entry.data(), static_cast<int>(entry.size()),
                            SQLITE_STATIC);
    if (sqlite3_step(insert_) != SQLITE_DONE) {
      Die(sqlite3_errmsg(db_));
    }
    (void)sqlite3_reset(insert_);
  }

 private:
  sqlite3* db_ = nullptr;
  sqlite3_stmt* insert_ = nullptr;
  sqlite3_int64 next_ = 0;
};

Outcome Many(store::Database& database, const Options& options, const Bytes& entry) {
  Outcome sum;
  std::mutex mutex;
  {
    std::vector<std::jthread> threads;
    for (int i = 0; i < options.writers; ++i) {
      threads.emplace_back([&] {
        const Outcome mine = Measure(options.seconds, [&] {
          const Status written = database.Write([&](store::Connection& db) {
            return store::AppendAudit(db, "lease.request", "", entry);
          });
          if (!written.has_value()) {
            Die(written.error().message);
          }
        });
        const std::scoped_lock lock(mutex);
        sum.per_second += mine.per_second;
        sum.times.Merge(mine.times);
      });
    }
  }
  return sum;
}

Outcome Sync(const std::string& path, double seconds) {
  const int fd = open(path.c_str(), O_CREAT | O_WRONLY | O_APPEND | O_CLOEXEC, 0600);
  const std::vector<char> page(4096, 'x');
  Outcome outcome = Measure(seconds, [&] {
    if (write(fd, page.data(), page.size()) < 0 || fdatasync(fd) != 0) {
      Die("sync " + path);
    }
  });
  close(fd);
  (void)unlink(path.c_str());
  return outcome;
}

Json ToJson(const Outcome& outcome) {
  return JsonObject{{"per_second", static_cast<std::int64_t>(outcome.per_second)},
                    {"p50_us", outcome.times.Percentile(0.5)},
                    {"p99_us", outcome.times.Percentile(0.99)},
                    {"max_us", outcome.times.max()}};
}

Options Parse(const std::vector<std::string>& words) {
  Options options;
  for (std::size_t i = 0; i < words.size(); ++i) {
    const bool more = i + 1 < words.size();
    if (words[i] == "--writers" && more) {
      options.writers = std::atoi(words[++i].c_str());
    } else if (words[i] == "--seconds" && more) {
      options.seconds = std::atof(words[++i].c_str());
    } else if (words[i] == "--rounds" && more) {
      options.rounds = std::atoi(words[++i].c_str());
    } else {
      options.folder = words[i];
    }
  }
  if (options.folder.empty() || options.folder[0] == '-') {
    Die("usage: commits FOLDER [--writers N] [--seconds S] [--rounds N]");
  }
  return options;
}

int Main(const std::vector<std::string>& words) {
  const Options options = Parse(words);
  if (!os::MakeDirs(options.folder, 0700).has_value()) {
    Die("cannot make " + options.folder);
  }
  auto database = store::OpenSqlite(options.folder + "/many.db");
  if (!database.has_value()) {
    Die(database.error().message);
  }
  OneByOne one(options.folder + "/one.db");
  const Bytes entry = crypto::RandomBytes(kEntryBytes);
  JsonArray rounds;
  for (int i = 0; i < options.rounds; ++i) {
    const Outcome sync = Sync(options.folder + "/sync", options.seconds / 3);
    const Outcome alone = Measure(options.seconds, [&] { one.Append(entry); });
    const Outcome many = Many(**database, options, entry);
    rounds.emplace_back(
        JsonObject{{"sync", ToJson(sync)}, {"one", ToJson(alone)}, {"many", ToJson(many)}});
  }
  std::cout << PrettyJson(Json(std::move(rounds))) << "\n";
  return 0;
}

}  // namespace
}  // namespace ringfence::bench

int main(int argc, char** argv) { return ringfence::bench::Main({argv + 1, argv + argc}); }
