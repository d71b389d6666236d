#include "assure/evidence_package.h"

#include <algorithm>

#include "base/encoding.h"
#include "crypto/ed25519_pem.h"
#include "crypto/sha256.h"
#include "os/file.h"
#include "os/root_folder.h"

namespace ringfence::assure {
namespace {

constexpr std::size_t kPathMax = 100;
constexpr int kDepthMax = 6;

bool IsNameByte(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' ||
         c == '_' || c == '-';
}

Error TooMuch() {
  return {Code::kExhausted, "the package holds more than " + std::to_string(kEvidenceFilesMax) +
                                " files or " + std::to_string(kEvidenceBytesMax >> 20U) + " MiB"};
}

Status ReadFolder(const os::RootFolder& root, const std::string& folder, int depth,
                  std::size_t& total, EvidenceFiles& files) {
  RINGFENCE_ASSIGN(const auto names, root.List("/" + folder, kEvidenceFilesMax));
  for (const std::string& name : names) {
    const std::string path = folder.empty() ? name : folder + "/" + name;
    if (!IsEvidencePath(path) || depth > kDepthMax) {
      return Error{Code::kInvalidArgument, "\"" + path + "\" is no file of a package",
                   "take it away"};
    }
    if (root.List("/" + path, kEvidenceFilesMax).has_value()) {
      RINGFENCE_TRY(ReadFolder(root, path, depth + 1, total, files));
      continue;
    }
    RINGFENCE_ASSIGN(std::string bytes, root.Read("/" + path, kEvidenceBytesMax));
    total += bytes.size();
    if (total > kEvidenceBytesMax || files.size() >= kEvidenceFilesMax) {
      return TooMuch();
    }
    files.emplace(path, std::move(bytes));
  }
  return {};
}

}  // namespace

bool IsEvidencePath(std::string_view path) {
  if (path.empty() || path.size() > kPathMax || path.front() == '/' || path.back() == '/') {
    return false;
  }
  bool at_start = true;
  for (const char c : path) {
    if ((c != '/' && !IsNameByte(c)) || (at_start && (c == '.' || c == '/'))) {
      return false;
    }
    at_start = c == '/';
  }
  return true;
}

bool IsSeal(std::string_view path) {
  return path == kManifestName || path == kManifestSignatureName || path == kManifestProofName;
}

std::string ManifestDigest(const EvidenceFiles& files) {
  const auto found = files.find(std::string(kManifestName));
  return found == files.end() ? "" : Hex(crypto::Sha256(AsBytes(found->second)));
}

std::string MakeManifest(const EvidenceFiles& files) {
  std::string manifest;
  for (const auto& [path, bytes] : files) {
    if (!IsSeal(path)) {
      manifest += Hex(crypto::Sha256(AsBytes(bytes))) + "  " + path + "\n";
    }
  }
  return manifest;
}

Result<std::map<std::string, std::string>> ParseManifest(std::string_view text) {
  std::map<std::string, std::string> digests;
  std::string_view last;
  std::size_t line_number = 0;
  while (!text.empty()) {
    ++line_number;
    const std::size_t end = text.find('\n');
    const std::string_view line = text.substr(0, end);
    const auto wrong = [&](std::string_view what) {
      return Error{Code::kCorrupt, std::string(kManifestName) + ":" + std::to_string(line_number) +
                                       ": " + std::string(what)};
    };
    if (end == std::string_view::npos) {
      return wrong("cut short");
    }
    if (line.size() < 67 || line.substr(64, 2) != "  " ||
        line.find_first_not_of("0123456789abcdef") != 64) {
      return wrong("not a SHA-256 and a path");
    }
    const std::string_view path = line.substr(66);
    if (!IsEvidencePath(path) || IsSeal(path)) {
      return wrong("not a path of a package");
    }
    if (!last.empty() && path <= last) {
      return wrong("not in order");
    }
    if (digests.size() >= kEvidenceFilesMax) {
      return TooMuch();
    }
    last = path;
    digests.emplace(std::string(path), std::string(line.substr(0, 64)));
    text.remove_prefix(end + 1);
  }
  return digests;
}

void SealEvidence(const crypto::SigningKey* key, EvidenceFiles& files) {
  if (key != nullptr) {
    files[std::string(kSignerName)] = crypto::PublicKeyPem(key->public_key());
  }
  const std::string manifest = MakeManifest(files);
  files[std::string(kManifestName)] = manifest;
  if (key != nullptr) {
    files[std::string(kManifestSignatureName)] = ToText(key->Sign(AsBytes(manifest)));
  }
}

Status WriteEvidenceFolder(const std::string& folder, const EvidenceFiles& files) {
  if (os::Exists(folder)) {
    RINGFENCE_ASSIGN(const auto names, os::ListDir(folder));
    if (!names.empty()) {
      return Error{Code::kConflict, folder + " is not empty",
                   "name a new folder: a package holds nothing but itself"};
    }
  }
  for (const auto& [path, bytes] : files) {
    const std::string full = folder + "/" + path;
    RINGFENCE_TRY(os::MakeDirs(full.substr(0, full.rfind('/')), 0700));
    RINGFENCE_TRY(os::WriteFile(full, AsBytes(bytes), 0600));
  }
  return {};
}

Result<EvidenceFiles> ReadEvidence(const std::string& path) {
  if (!os::IsDirectory(path)) {
    RINGFENCE_ASSIGN(const std::string bytes, os::ReadText(path, kEvidenceBytesMax));
    return ReadTar(bytes);
  }
  RINGFENCE_ASSIGN(const os::RootFolder root, os::RootFolder::Open(path));
  EvidenceFiles files;
  std::size_t total = 0;
  RINGFENCE_TRY(ReadFolder(root, "", 0, total, files));
  return files;
}

}  // namespace ringfence::assure
