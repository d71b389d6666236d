#pragma once

// How an image is named: "NAME", "NAME:TAG", "sha256:HEX" or "NAME@sha256:HEX", and on a node
// where it is imported from.

#include <string>
#include <string_view>

#include "base/result.h"

namespace ringfence::image {

bool IsDigest(std::string_view text);  // "sha256:" and 64 hexadecimal digits in small letters

struct Reference {
  std::string name;    // empty when only a digest is given
  std::string digest;  // empty when not pinned
  bool pinned() const { return !digest.empty(); }
  std::string text() const;
};
// Letters, digits and ". _ - / :", beginning with a letter or digit; at most 512 bytes.
Result<Reference> ParseReference(std::string_view text);

enum class SourceKind { kLayout, kArchive, kContainersStorage };
struct SourceReference {
  SourceKind kind = SourceKind::kLayout;
  std::string place;   // a path; of containers-storage: the reference there
  std::string tag;     // of an OCI layout or archive with several images
  std::string digest;  // must be this one; may be empty
};
// "oci:DIR[:TAG]", "oci-archive:FILE", "docker-archive:FILE", "containers-storage:REF", each with
// "@sha256:HEX" behind it if it is pinned; also a plain path that begins with '/' or '.'.
// kNotFound: it is none of these, but perhaps an image's name.
Result<SourceReference> ParseSource(std::string_view text, bool is_folder);

}  // namespace ringfence::image
