#include "audit/proof.h"

#include "base/encoding.h"
#include "base/json.h"

namespace ringfence::audit {

std::string MakeProofJson(const EntryProof& proof) {
  JsonArray path;
  for (const Digest& hash : proof.path) {
    path.emplace_back(Base64(hash));
  }
  return CanonicalJson(JsonObject{{"origin", proof.origin},
                                  {"index", proof.index},
                                  {"entry", Base64(proof.entry)},
                                  {"proof", std::move(path)},
                                  {"checkpoint", proof.checkpoint}});
}

Result<std::string> ProveEntry(const std::string& folder, std::uint64_t index,
                               const std::string& origin, std::uint64_t tree_size,
                               std::string checkpoint) {
  EntryProof proof{origin, index, {}, {}, std::move(checkpoint)};
  RINGFENCE_ASSIGN(proof.entry, ReadEntry(folder, index, tree_size));
  RINGFENCE_ASSIGN(proof.path, InclusionProof(folder, index, tree_size));
  return MakeProofJson(proof);
}

}  // namespace ringfence::audit
