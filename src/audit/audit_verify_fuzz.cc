// Goal: no set of files crashes the verifier or makes it run away, and it calls a log good only
// when its entries, read by other code, hash to the root that is signed.
// Method: the input is a list of (number of a path, length, content); they are written to a folder
// and verified with a fixed key.

#include <array>
#include <cstdlib>
#include <filesystem>

#include "audit/audit_test_util.h"
#include "audit/note.h"
#include "audit/verify.h"

namespace {

using namespace ringfence;  // NOLINT(google-build-using-namespace): one short program

constexpr std::array kPaths = {"checkpoint",           "tile/0/000",
                               "tile/0/000.p/1",       "tile/0/000.p/2",
                               "tile/0/000.p/3",       "tile/0/001.p/1",
                               "tile/1/000.p/1",       "tile/entries/000",
                               "tile/entries/000.p/1", "tile/entries/000.p/2",
                               "tile/entries/000.p/3", "tile/entries/001.p/1",
                               "tile/0/001",           "tile/entries/x001/000",
                               "tile/0/junk",          "tile/9"};

void CheckGood(const std::string& folder, const audit::VerifyReport& report) {
  std::vector<Bytes> entries;
  for (std::uint64_t i = 0; i < report.size; ++i) {
    const Result<Bytes> entry = audit::ReadEntry(folder, i, report.size);
    if (!entry.has_value()) {
      std::abort();
    }
    entries.push_back(*entry);
  }
  const audit::TreeHead head{report.size, audit::testing::Mth(audit::testing::LeavesOf(entries))};
  const crypto::SigningKey key = audit::testing::KeyOf(1);
  const auto opened = audit::OpenCheckpoint(audit::testing::Slurp(folder + "/checkpoint"),
                                            {audit::testing::kOrigin, 1, key.public_key()});
  if (!opened.has_value() || opened->head != head) {
    std::abort();
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const audit::testing::TempFolder root;
  static const std::string vkey =
      audit::VerifierKey(audit::testing::kOrigin, 1, audit::testing::KeyOf(1).public_key());
  const std::string folder = root.path() + "/log";
  std::filesystem::remove_all(folder);
  std::filesystem::create_directories(folder);
  ByteView rest = std::as_bytes(std::span(data, size));
  while (rest.size() >= 3) {
    const auto path = std::to_integer<std::size_t>(rest[0]) % kPaths.size();
    const std::size_t length =
        std::min<std::size_t>(GetBigEndian<std::uint16_t>(rest.subspan(1)), rest.size() - 3);
    std::error_code error;
    const std::string whole = folder + "/" + kPaths[path];
    std::filesystem::create_directories(std::filesystem::path(whole).parent_path(), error);
    if (!error && !std::filesystem::is_directory(whole)) {
      audit::testing::Spew(whole, AsText(rest.subspan(3, length)));
    }
    rest = rest.subspan(3 + length);
  }
  audit::VerifyOptions options;
  options.folder = folder;
  options.vkeys = {vkey};
  options.settle = std::chrono::milliseconds(0);
  options.threads = 1;
  const auto report = audit::VerifyLog(options);
  if (!report.has_value()) {
    std::abort();
  }
  if (report->ok) {
    CheckGood(folder, *report);
  }
  return 0;
}
