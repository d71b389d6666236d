// Durable writes a second on a database: one after the other, and from many threads that share
// commits. Each write is what an audited change is: one audit entry and one record.
//   store_writes WHERE [SECONDS]     WHERE as in server.database; a database that may be filled
// Prints one line of JSON.

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <thread>
#include <vector>

#include "store/database.h"
#include "store/records.h"

namespace {

using ringfence::Status;
using ringfence::store::Connection;
using ringfence::store::Database;
using Steady = std::chrono::steady_clock;

struct Measured {
  double writes_per_second = 0;
  double median_ms = 0;
  double p99_ms = 0;
};

Measured Measure(Database& db, int threads, double seconds) {
  std::atomic<bool> failed = false;
  std::vector<std::vector<double>> taken(static_cast<std::size_t>(threads));
  const auto start = Steady::now();
  const auto end =
      start + std::chrono::duration_cast<Steady::duration>(std::chrono::duration<double>(seconds));
  {
    std::vector<std::jthread> all;
    for (int t = 0; t < threads; ++t) {
      all.emplace_back([&, t] {
        const std::string node = "node-" + std::to_string(t);
        const ringfence::Bytes entry(400, std::byte{'x'});
        while (Steady::now() < end && !failed) {
          const auto from = Steady::now();
          const Status status = db.Write([&](Connection& c) -> Status {
            RINGFENCE_TRY(
                c.Run("INSERT INTO nodes (name, record) VALUES ($1, $2)"
                      " ON CONFLICT (name) DO UPDATE SET record = $2",
                      {node, std::string(400, 'y')}));
            return ringfence::store::AppendAudit(c, "bench.write", "", entry);
          });
          if (!status.has_value()) {
            std::fprintf(stderr, "%s\n", status.error().message.c_str());
            failed = true;
          }
          taken[static_cast<std::size_t>(t)].push_back(
              std::chrono::duration<double, std::milli>(Steady::now() - from).count());
        }
      });
    }
  }
  if (failed) {
    std::exit(1);
  }
  std::vector<double> times;
  for (const auto& one : taken) {
    times.insert(times.end(), one.begin(), one.end());
  }
  std::sort(times.begin(), times.end());
  const auto at = [&](double part) {
    return times[static_cast<std::size_t>(part * static_cast<double>(times.size() - 1))];
  };
  const double whole = std::chrono::duration<double>(Steady::now() - start).count();
  return {static_cast<double>(times.size()) / whole, at(0.5), at(0.99)};
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) {
    std::fprintf(stderr, "usage: store_writes WHERE [SECONDS]\n");
    return 2;
  }
  const double seconds = argc > 2 ? std::atof(argv[2]) : 5;
  auto db = ringfence::store::Open(argv[1]);
  if (!db.has_value()) {
    std::fprintf(stderr, "%s\n%s\n", db.error().message.c_str(), db.error().hint.c_str());
    return 1;
  }
  (void)Measure(**db, 1, 0.5);  // warm
  const Measured alone = Measure(**db, 1, seconds);
  const Measured shared = Measure(**db, 64, seconds);
  std::printf(
      "{\"one_by_one_per_s\": %.0f, \"one_by_one_median_ms\": %.2f, \"threads\": 64,"
      " \"shared_per_s\": %.0f, \"shared_median_ms\": %.2f, \"shared_p99_ms\": %.2f,"
      " \"ratio\": %.1f}\n",
      alone.writes_per_second, alone.median_ms, shared.writes_per_second, shared.median_ms,
      shared.p99_ms, shared.writes_per_second / alone.writes_per_second);
  return 0;
}
