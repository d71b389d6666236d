// What the writer's memory does as a log grows, and the verifier's on the grown log.
//   audit_growth_bench FOLDER [ENTRIES [SAMPLES]]
// Appends sample entries in batches of 4,096 through LogWriter (no database), and prints the
// resident memory SAMPLES times on the way, then once more after verifying all of it.

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>

#include "audit/log.h"
#include "audit/note.h"
#include "audit/verify.h"
#include "bench/audit/entries.h"
#include "os/file.h"

namespace ringfence::bench {
namespace {

constexpr std::uint64_t kBatch = 4096;
constexpr const char* kOrigin = "ringfence.bench/log";

// A line of /proc/self/status in KiB: VmRSS now, VmHWM at most so far.
long KilobytesOf(const std::string& field) {
  const auto text = os::ReadText("/proc/self/status", 65536);
  const std::size_t at = text.has_value() ? text->find(field + ":") : std::string::npos;
  return at == std::string::npos ? 0
                                 : std::strtol(text->c_str() + at + field.size() + 1, nullptr, 10);
}

double Seconds(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

Status Run(const std::string& folder, std::uint64_t size, std::uint64_t samples) {
  const auto key = crypto::SigningKey::FromSeed(SecretBytes(Bytes(32, std::byte{7}))).value();
  {
    RINGFENCE_ASSIGN(const auto log, audit::LogWriter::Open(folder, kOrigin, key));
    auto start = std::chrono::steady_clock::now();
    std::uint64_t told = 0;
    while (log->head().size < size) {
      const std::uint64_t have = log->head().size;
      RINGFENCE_TRY(log->Append(SampleEntries(have, std::min(kBatch, size - have))));
      if (log->head().size * samples / size > told) {
        told = log->head().size * samples / size;
        std::printf("%llu entries: resident %ld KiB, at most %ld KiB, %.0f s\n",
                    static_cast<unsigned long long>(log->head().size), KilobytesOf("VmRSS"),
                    KilobytesOf("VmHWM"), Seconds(start));
        std::fflush(stdout);
      }
    }
  }
  audit::VerifyOptions options;
  options.folder = folder;
  options.vkeys = {audit::VerifierKey(kOrigin, 1, key.public_key())};
  const auto start = std::chrono::steady_clock::now();
  RINGFENCE_ASSIGN(const audit::VerifyReport report, audit::VerifyLog(options));
  std::printf("verified %llu entries: %s, resident %ld KiB, at most %ld KiB, %.0f s\n",
              static_cast<unsigned long long>(report.entries_read), report.ok ? "good" : "BAD",
              KilobytesOf("VmRSS"), KilobytesOf("VmHWM"), Seconds(start));
  return report.ok ? Status() : Status(Error{Code::kCorrupt, "the log does not verify"});
}

}  // namespace
}  // namespace ringfence::bench

int main(int argc, char** argv) {
  if (argc < 2) {
    std::fprintf(stderr, "usage: audit_growth_bench FOLDER [ENTRIES [SAMPLES]]\n");
    return 2;
  }
  const ringfence::Status status =
      ringfence::bench::Run(argv[1], argc > 2 ? std::strtoull(argv[2], nullptr, 10) : 10000000,
                            argc > 3 ? std::strtoull(argv[3], nullptr, 10) : 20);
  if (!status.has_value()) {
    std::fprintf(stderr, "error: %s\n", status.error().message.c_str());
    return 1;
  }
  return 0;
}
