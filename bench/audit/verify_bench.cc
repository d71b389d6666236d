// How fast a log is verified, against merely hashing the same leaves and nodes with the same
// function on as many threads, in the same run, by turns: once with the entries in memory already,
// and once with the bundles read from the same files.
//   audit_verify_bench FOLDER [ENTRIES [THREADS [ROUNDS]]]
// The log is made in FOLDER unless it is there. Prints one line a round, then the medians.

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <map>
#include <string>
#include <thread>
#include <vector>

#include "audit/log.h"
#include "audit/note.h"
#include "audit/verify.h"
#include "audit/verify_tree.h"
#include "base/encoding.h"
#include "bench/audit/entries.h"
#include "os/file.h"

namespace ringfence::bench {
namespace {

using audit::verify::kEntries;
using audit::verify::kSpan;
using audit::verify::ReadPiece;
constexpr const char* kOrigin = "ringfence.bench/log";
using Clock = std::chrono::steady_clock;

// Wall-clock and, for machines that have other work to do, processor time of all threads.
struct Cost {
  double wall_s = 0;
  double cpu_s = 0;
};

template <typename Work>
Cost Timed(const Work& work) {
  const Clock::time_point start = Clock::now();
  const std::clock_t cpu = std::clock();
  work();
  return {std::chrono::duration<double>(Clock::now() - start).count(),
          static_cast<double>(std::clock() - cpu) / CLOCKS_PER_SEC};
}

crypto::SigningKey Key() {
  return crypto::SigningKey::FromSeed(SecretBytes(Bytes(32, std::byte{7}))).value();
}

Status Fill(const std::string& folder, std::uint64_t size) {
  RINGFENCE_ASSIGN(const auto log, audit::LogWriter::Open(folder, kOrigin, Key()));
  while (log->head().size < size) {
    const std::uint64_t have = log->head().size;
    RINGFENCE_TRY(log->Append(
        SampleEntries(have, std::min<std::uint64_t>(size - have, audit::kBatchEntriesMax))));
  }
  return {};
}

// The bundles of the log, in memory, with where each entry is.
struct Leaves {
  std::vector<Bytes> bundles;
  std::uint64_t bytes = 0;
};

Result<Leaves> Load(const std::string& folder, std::uint64_t size) {
  Leaves leaves;
  for (std::uint64_t index = 0; index * audit::verify::kSpan < size; ++index) {
    Bytes bundle;
    RINGFENCE_TRY(audit::verify::ReadPiece(
        folder, audit::verify::kEntries, index,
        std::min(audit::verify::kSpan, size - index * audit::verify::kSpan), bundle));
    leaves.bytes += bundle.size();
    leaves.bundles.push_back(std::move(bundle));
  }
  return leaves;
}

void Fold(std::vector<Digest>& row) {
  while (row.size() > 1) {
    std::size_t to = 0;
    for (std::size_t i = 0; i + 1 < row.size(); i += 2) {
      row[to++] = audit::verify::HashPair(row[i], row[i + 1]);
    }
    if (row.size() % 2 != 0) {
      row[to++] = row.back();
    }
    row.resize(to);
  }
}

// All leaves and all nodes, and nothing else: nothing is compared. `bundle_of(i, room)` gives a
// bundle's bytes, in `room` if it has to read them.
template <typename BundleOf>
Digest HashAll(std::size_t bundles, unsigned threads, const BundleOf& bundle_of) {
  std::vector<Digest> tops(bundles);
  std::atomic<std::size_t> next = 0;
  const auto work = [&] {
    std::vector<Digest> row;
    Bytes room;
    for (std::size_t i = next++; i < tops.size(); i = next++) {
      row.clear();
      const ByteView bundle = bundle_of(i, room);
      for (std::size_t at = 0; at < bundle.size();) {
        const std::size_t length = GetBigEndian<std::uint16_t>(bundle.subspan(at));
        row.push_back(audit::verify::HashEntry(bundle.subspan(at + 2, length)));
        at += 2 + length;
      }
      Fold(row);
      tops[i] = row[0];
    }
  };
  {
    std::vector<std::jthread> pool;
    for (unsigned i = 1; i < threads; ++i) {
      pool.emplace_back(work);
    }
    work();
  }
  Fold(tops);
  return tops[0];
}

double Median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

Status Run(const std::string& folder, std::uint64_t size, unsigned threads, int rounds) {
  RINGFENCE_TRY(Fill(folder, size));
  RINGFENCE_ASSIGN(const Leaves leaves, Load(folder, size));
  std::printf("%llu entries, %.0f bytes on average, %u thread(s)\n",
              static_cast<unsigned long long>(size),
              static_cast<double>(leaves.bytes) / static_cast<double>(size) - 2, threads);
  audit::VerifyOptions options;
  options.folder = folder;
  options.vkeys = {audit::VerifierKey(kOrigin, 1, Key().public_key())};
  options.threads = threads;
  const auto in_memory = [&](std::size_t i, Bytes&) -> ByteView { return leaves.bundles[i]; };
  const auto from_files = [&](std::size_t i, Bytes& room) -> ByteView {
    const std::uint64_t width = std::min(kSpan, size - i * kSpan);
    RINGFENCE_CHECK(ReadPiece(folder, kEntries, i, width, room).has_value());
    return room;
  };
  std::map<std::string, std::vector<double>> all;
  for (int round = 1; round <= rounds; ++round) {
    std::array<Digest, 2> roots{};
    const Cost hashing =
        Timed([&] { roots[0] = HashAll(leaves.bundles.size(), threads, in_memory); });
    const Cost reading =
        Timed([&] { roots[1] = HashAll(leaves.bundles.size(), threads, from_files); });
    Result<audit::VerifyReport> report = Error{Code::kInternal, "not run"};
    const Cost verifying = Timed([&] { report = audit::VerifyLog(options); });
    if (!report.has_value()) {
      return report.error();
    }
    if (!report->ok || report->entries_read != size || report->root != Base64(roots[0]) ||
        roots[0] != roots[1]) {
      return Error{Code::kInternal, "the log did not verify"};
    }
    const auto entries = static_cast<double>(size);
    const std::map<std::string, double> now = {
        {"1 hashing/s", entries / hashing.wall_s},
        {"2 verifying/s", entries / verifying.wall_s},
        {"3 ratio", hashing.wall_s / verifying.wall_s},
        {"4 ratio by processor time", hashing.cpu_s / verifying.cpu_s},
        {"5 ratio to reading and hashing", reading.wall_s / verifying.wall_s},
        {"6 the same by processor time", reading.cpu_s / verifying.cpu_s}};
    std::printf("round %d:", round);
    for (const auto& [name, value] : now) {
      all[name].push_back(value);
      std::printf(value > 100 ? " %.0f" : " %.3f", value);
    }
    std::printf("\n");
    std::fflush(stdout);
  }
  std::printf("medians:\n");
  for (const auto& [name, values] : all) {
    const double value = Median(values);
    std::printf(value > 100 ? "  %s %.0f\n" : "  %s %.3f\n", name.c_str() + 2, value);
  }
  return {};
}

}  // namespace
}  // namespace ringfence::bench

int main(int argc, char** argv) {
  if (argc < 2) {
    std::fprintf(stderr, "usage: audit_verify_bench FOLDER [ENTRIES [THREADS [ROUNDS]]]\n");
    return 2;
  }
  const std::uint64_t size = argc > 2 ? std::strtoull(argv[2], nullptr, 10) : 1000000;
  const unsigned threads = argc > 3 ? static_cast<unsigned>(std::atoi(argv[3])) : 1;
  const int rounds = argc > 4 ? std::atoi(argv[4]) : 7;
  const ringfence::Status status = ringfence::bench::Run(argv[1], size, threads, rounds);
  if (!status.has_value()) {
    std::fprintf(stderr, "error: %s\n", status.error().message.c_str());
    return 1;
  }
  return 0;
}
