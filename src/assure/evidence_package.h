#pragma once

// An auditor's package: files, a manifest with their digests, a signature over the manifest. The
// bytes are in docs/formats/evidence.md.

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/time.h"
#include "crypto/ed25519.h"

namespace ringfence::assure {

inline constexpr std::size_t kEvidenceBytesMax = std::size_t{512} << 20U;  // of all files
inline constexpr std::size_t kEvidenceFilesMax = 10'000;
inline constexpr std::string_view kManifestName = "MANIFEST.sha256";
inline constexpr std::string_view kManifestSignatureName = "MANIFEST.sig";
inline constexpr std::string_view kManifestProofName = "MANIFEST.proof.json";
inline constexpr std::string_view kSignerName = "signer.pem";

using EvidenceFiles = std::map<std::string, std::string>;  // path to bytes

// A path of a package: names of letters, digits, '.', '_' and '-' with '/' between, none of them
// beginning with '.', at most 100 bytes.
bool IsEvidencePath(std::string_view path);

// Adds signer.pem (with a key), the manifest and its signature.
void SealEvidence(const crypto::SigningKey* key, EvidenceFiles& files);

// The manifest, and what vouches for it: these are not listed in it.
bool IsSeal(std::string_view path);
std::string ManifestDigest(const EvidenceFiles& files);  // hex

// What `sha256sum` writes: "<64 hex digits>  <path>\n", sorted by path.
std::string MakeManifest(const EvidenceFiles& files);
Result<std::map<std::string, std::string>> ParseManifest(std::string_view text);

// ustar; the same files and time give the same bytes.
std::string WriteTar(const EvidenceFiles& files, Timestamp when);
// Only what WriteTar writes: regular files with the paths above.
Result<EvidenceFiles> ReadTar(std::string_view bytes);

// A folder with the same files; the folder must be new or empty.
Status WriteEvidenceFolder(const std::string& folder, const EvidenceFiles& files);
// A folder or a tar.
Result<EvidenceFiles> ReadEvidence(const std::string& path);

// What the reader trusts, from elsewhere than the package.
struct EvidenceTrust {
  std::optional<crypto::PublicKey> signer;
  std::string log_vkey;
};

struct EvidenceReport {
  std::vector<std::string> problems;
  std::vector<std::string> notes;  // what was taken from the package itself, or is not there
  std::size_t files = 0;           // whose digest is right
  std::size_t proofs = 0;          // audit entries proven to be in the log
  std::size_t statements = 0;      // of nodes, with a good signature
  std::string signer;              // the key's id; empty: none signed
  std::string recorded;            // when and by whom, as the audit log has it; empty: not there
  bool ok() const { return problems.empty(); }
};
EvidenceReport VerifyEvidence(const EvidenceFiles& files, const EvidenceTrust& trust);

}  // namespace ringfence::assure
