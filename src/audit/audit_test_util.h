#pragma once

// For tests: a temporary folder, a log key, and RFC 6962 written down as plainly as it is defined
// there, to compare the real thing with.

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "audit/disk.h"
#include "audit/log.h"
#include "base/bytes.h"
#include "base/check.h"
#include "crypto/ed25519.h"
#include "crypto/sha256.h"
#include "os/file.h"
#include "os/staged_file.h"

namespace ringfence::audit::testing {

inline constexpr const char* kOrigin = "ringfence.test/log";

class TempFolder {
 public:
  TempFolder() {
    std::string pattern = (std::filesystem::temp_directory_path() / "ringfence-audit-XXXXXX");
    RINGFENCE_CHECK(mkdtemp(pattern.data()) != nullptr);
    path_ = pattern;
  }
  TempFolder(const TempFolder&) = delete;
  TempFolder& operator=(const TempFolder&) = delete;
  ~TempFolder() { std::filesystem::remove_all(path_); }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

inline crypto::SigningKey KeyOf(unsigned char fill) {
  return crypto::SigningKey::FromSeed(SecretBytes(Bytes(32, std::byte{fill}))).value();
}

// A short canonical JSON object, another one for each index.
inline Bytes Sample(std::uint64_t index) {
  return ToBytes("{\"n\":" + std::to_string(index) + "}");
}
inline std::vector<Bytes> Samples(std::uint64_t first, std::uint64_t count) {
  std::vector<Bytes> entries;
  for (std::uint64_t i = 0; i < count; ++i) {
    entries.push_back(Sample(first + i));
  }
  return entries;
}

// Writes for real but never waits for the disk: for tests in which nothing crashes.
class HastyDisk final : public Disk {
 public:
  Result<bool> MakeDir(const std::string& path) override { return os::MakeDir(path, 0755); }
  Status Write(const std::string& path, ByteView bytes) override {
    RINGFENCE_ASSIGN(const os::UniqueFd fd, os::OpenForWrite(path, 0644));
    return os::WriteAll(fd.get(), bytes);
  }
  Status SyncFile(const std::string&) override { return {}; }
  Status SyncDir(const std::string&) override { return {}; }
  Status Rename(const std::string& from, const std::string& to) override {
    return os::RenameStaged(from, to);
  }
  Status RemoveTree(const std::string& path) override { return os::RemoveTree(path); }
};

using Files = std::map<std::string, std::string>;  // path relative to the log, content

inline std::string Slurp(const std::filesystem::path& path) {
  std::ifstream stream(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(stream), {}};
}
inline void Spew(const std::filesystem::path& path, std::string_view content) {
  std::filesystem::create_directories(path.parent_path());
  std::ofstream(path, std::ios::binary | std::ios::trunc)
      .write(content.data(), static_cast<std::streamsize>(content.size()));
}
inline Files FilesOf(const std::string& folder) {
  Files files;
  for (const auto& item : std::filesystem::recursive_directory_iterator(folder)) {
    if (item.is_regular_file() && item.path().filename() != ".lock") {
      files[std::filesystem::relative(item.path(), folder)] = Slurp(item.path());
    }
  }
  return files;
}

// RFC 6962 section 2.1, over leaf hashes.
inline Digest Mth(std::span<const Digest> leaves) {
  if (leaves.empty()) {
    return crypto::Sha256(ByteView());
  }
  if (leaves.size() == 1) {
    return leaves[0];
  }
  std::size_t k = 1;
  while (k * 2 < leaves.size()) {
    k *= 2;
  }
  return crypto::Sha256({AsBytes("\x01"), Mth(leaves.first(k)), Mth(leaves.subspan(k))});
}
inline Digest MthLeaf(ByteView entry) {
  return crypto::Sha256({AsBytes(std::string_view("\0", 1)), entry});
}
inline std::vector<Digest> LeavesOf(const std::vector<Bytes>& entries) {
  std::vector<Digest> leaves;
  for (const Bytes& entry : entries) {
    leaves.push_back(MthLeaf(entry));
  }
  return leaves;
}
// Section 2.1.1.
inline std::vector<Digest> Path(std::size_t m, std::span<const Digest> leaves) {
  if (leaves.size() == 1) {
    return {};
  }
  std::size_t k = 1;
  while (k * 2 < leaves.size()) {
    k *= 2;
  }
  std::vector<Digest> path = m < k ? Path(m, leaves.first(k)) : Path(m - k, leaves.subspan(k));
  path.push_back(m < k ? Mth(leaves.subspan(k)) : Mth(leaves.first(k)));
  return path;
}
// Section 2.1.2; SUBPROOF.
inline std::vector<Digest> Subproof(std::size_t m, std::span<const Digest> leaves, bool whole) {
  if (m == leaves.size()) {
    return whole ? std::vector<Digest>() : std::vector<Digest>{Mth(leaves)};
  }
  std::size_t k = 1;
  while (k * 2 < leaves.size()) {
    k *= 2;
  }
  std::vector<Digest> proof =
      m <= k ? Subproof(m, leaves.first(k), whole) : Subproof(m - k, leaves.subspan(k), false);
  proof.push_back(m <= k ? Mth(leaves.subspan(k)) : Mth(leaves.first(k)));
  return proof;
}

}  // namespace ringfence::audit::testing
