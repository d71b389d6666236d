// Checking RFC 6962 proofs, in the way of RFC 9162 sections 2.1.3.2 and 2.1.4.2.

#include <array>

#include "audit/note.h"
#include "audit/tiles.h"
#include "crypto/sha256.h"

namespace ringfence::audit {
namespace {

Error BadProof(std::string_view kind, std::string_view why) {
  return {Code::kCorrupt, std::string(kind) + " proof: " + std::string(why)};
}

}  // namespace

Digest LeafHash(ByteView entry) {
  constexpr std::array<std::byte, 1> kLeafPrefix = {std::byte{0}};
  return crypto::Sha256({kLeafPrefix, entry});
}

Status VerifyInclusion(const Digest& leaf, std::uint64_t index, const TreeHead& head,
                       const std::vector<Digest>& proof) {
  if (index >= head.size) {
    return BadProof("inclusion", "entry " + std::to_string(index) + " is beyond the tree of " +
                                     std::to_string(head.size));
  }
  std::uint64_t at = index;
  std::uint64_t last = head.size - 1;
  Digest hash = leaf;
  for (const Digest& sibling : proof) {
    if (last == 0) {
      return BadProof("inclusion", "too long");
    }
    if ((at & 1U) != 0 || at == last) {
      hash = NodeHash(sibling, hash);
      while ((at & 1U) == 0 && at != 0) {
        at >>= 1U;
        last >>= 1U;
      }
    } else {
      hash = NodeHash(hash, sibling);
    }
    at >>= 1U;
    last >>= 1U;
  }
  if (last != 0) {
    return BadProof("inclusion", "too short");
  }
  return hash == head.root ? Status() : BadProof("inclusion", "it leads to another root");
}

Status VerifyConsistency(const TreeHead& old_head, const TreeHead& new_head,
                         const std::vector<Digest>& proof) {
  if (old_head.size > new_head.size) {
    return BadProof("consistency", "the newer tree is smaller");
  }
  if (old_head.size == new_head.size || old_head.size == 0) {
    const bool same =
        old_head.size == 0 ? old_head.root == EmptyRoot() : old_head.root == new_head.root;
    const bool empty_same = new_head.size != 0 || new_head.root == EmptyRoot();
    return same && empty_same && proof.empty()
               ? Status()
               : BadProof("consistency", proof.empty() ? "the roots differ" : "too long");
  }
  std::uint64_t at = old_head.size - 1;
  std::uint64_t last = new_head.size - 1;
  while ((at & 1U) != 0) {
    at >>= 1U;
    last >>= 1U;
  }
  std::size_t next = 0;
  // The old tree is one perfect subtree of the new one: its root itself starts the proof.
  const bool starts_with_old_root = at == 0;
  if (!starts_with_old_root && proof.empty()) {
    return BadProof("consistency", "too short");
  }
  Digest old_hash = starts_with_old_root ? old_head.root : proof[next++];
  Digest new_hash = old_hash;
  for (; next < proof.size(); ++next) {
    const Digest& sibling = proof[next];
    if (last == 0) {
      return BadProof("consistency", "too long");
    }
    if ((at & 1U) != 0 || at == last) {
      old_hash = NodeHash(sibling, old_hash);
      new_hash = NodeHash(sibling, new_hash);
      while ((at & 1U) == 0 && at != 0) {
        at >>= 1U;
        last >>= 1U;
      }
    } else {
      new_hash = NodeHash(new_hash, sibling);
    }
    at >>= 1U;
    last >>= 1U;
  }
  if (last != 0) {
    return BadProof("consistency", "too short");
  }
  return old_hash == old_head.root && new_hash == new_head.root
             ? Status()
             : BadProof("consistency", "it leads to other roots");
}

}  // namespace ringfence::audit
