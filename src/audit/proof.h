#pragma once

// A proof file: one entry, and all that is needed to check offline that a signed checkpoint
// covers it. What `ringfence audit prove` prints and VerifyProof (verify.h) reads.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "audit/log.h"
#include "base/bytes.h"
#include "base/result.h"

namespace ringfence::audit {

struct EntryProof {
  std::string origin;
  std::uint64_t index = 0;
  Bytes entry;
  std::vector<Digest> path;  // InclusionProof(index, size of the checkpoint)
  std::string checkpoint;    // the signed note, cosignatures and all
};

// {"checkpoint":note,"entry":base64,"index":n,"origin":name,"proof":[base64,...]}, canonical.
std::string MakeProofJson(const EntryProof& proof);

// Reads all of it from a log's folder, against `checkpoint`, a note that the caller has opened and
// which the log's files are known to cover.
Result<std::string> ProveEntry(const std::string& folder, std::uint64_t index,
                               const std::string& origin, std::uint64_t tree_size,
                               std::string checkpoint);

}  // namespace ringfence::audit
