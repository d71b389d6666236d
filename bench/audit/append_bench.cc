// How many entries a second become part of a log, all durable, each Append with its checkpoint.
//   audit_append_bench make COUNT FILE       writes sample entries, length (2 bytes) and bytes
//   audit_append_bench run FILE FOLDER BATCH appends them in batches; prints one line
// What is synced: each tile and bundle written (fdatasync), each folder with a new name (fsync),
// then the checkpoint, its name, and its folder.

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include "audit/log.h"
#include "bench/audit/entries.h"
#include "os/file.h"

namespace ringfence::bench {
namespace {

constexpr std::size_t kFileBytesMax = std::size_t{4} << 30U;

Status Make(std::uint64_t count, const std::string& path) {
  Bytes all;
  for (std::uint64_t i = 0; i < count; ++i) {
    const Bytes entry = SampleEntry(i);
    Append(all, PutBigEndian(static_cast<std::uint16_t>(entry.size())));
    Append(all, entry);
  }
  return os::WriteFile(path, all);
}

Status Run(const std::string& path, const std::string& folder, std::size_t batch) {
  RINGFENCE_ASSIGN(const Bytes all, os::ReadFile(path, kFileBytesMax));
  std::vector<Bytes> entries;
  for (ByteView rest = all; !rest.empty();) {
    const std::size_t length = GetBigEndian<std::uint16_t>(rest);
    entries.emplace_back(rest.begin() + 2, rest.begin() + 2 + static_cast<std::ptrdiff_t>(length));
    rest = rest.subspan(2 + length);
  }
  const auto key = crypto::SigningKey::FromSeed(SecretBytes(Bytes(32, std::byte{7}))).value();
  RINGFENCE_ASSIGN(const auto log, audit::LogWriter::Open(folder, "ringfence.bench/log", key));
  const auto start = std::chrono::steady_clock::now();
  for (std::size_t at = 0; at < entries.size(); at += batch) {
    const auto first = entries.begin() + static_cast<std::ptrdiff_t>(at);
    const auto count = static_cast<std::ptrdiff_t>(std::min(batch, entries.size() - at));
    RINGFENCE_TRY(log->Append({first, first + count}));
  }
  const double seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  std::printf("ringfence batch %zu: %zu entries in %.3f s, %.0f/s\n", batch, entries.size(),
              seconds, static_cast<double>(entries.size()) / seconds);
  return {};
}

}  // namespace
}  // namespace ringfence::bench

int main(int argc, char** argv) {
  const std::string_view what = argc > 1 ? argv[1] : "";
  ringfence::Status status;
  if (what == "make" && argc == 4) {
    status = ringfence::bench::Make(std::strtoull(argv[2], nullptr, 10), argv[3]);
  } else if (what == "run" && argc == 5) {
    status = ringfence::bench::Run(argv[2], argv[3], std::strtoull(argv[4], nullptr, 10));
  } else {
    std::fprintf(stderr, "usage: audit_append_bench make COUNT FILE | run FILE FOLDER BATCH\n");
    return 2;
  }
  if (!status.has_value()) {
    std::fprintf(stderr, "error: %s\n", status.error().message.c_str());
    return 1;
  }
  return 0;
}
