#pragma once

// `ringfence image import` on a node: from a reference to an image in the store. Root opens files
// and names folders; only the worker looks into the bytes.

#include <string>
#include <vector>

#include "base/result.h"
#include "base/time.h"
#include "image/reference.h"
#include "image/store.h"
#include "isolate/worker.h"

namespace ringfence::isolate {

struct ImagePlace {
  std::string store;     // folder
  WorkerPlace worker;    // its uid is ImageUid's
  std::string verifier;  // program that must vouch for each image; empty: none
  Milliseconds worker_max = std::chrono::minutes(30);
  Milliseconds verifier_max = std::chrono::seconds(60);
};

// "sha256:..." of what `source` holds, without keeping it. Needs no root, nor a store.
Result<std::string> ResolveImage(const ImagePlace& place, const image::SourceReference& source);

// Unpacked, verified and vouched for, or not there at all. `names` are given to it besides those
// that it brings.
Result<image::StoredImage> ImportImage(const ImagePlace& place,
                                       const image::SourceReference& source,
                                       const std::vector<std::string>& names, const Clock& clock);

// Runs the verifier: "DIGEST\n" and the manifest on its standard input, nothing but a PATH in its
// environment, the worker's user. OK only when it exits with 0 in time.
Status AskVerifier(const ImagePlace& place, const std::string& digest, const std::string& document);
// "sha256:..." of the program; kPermissionDenied when somebody but root could change it.
Result<std::string> VerifierDigest(const std::string& program);

}  // namespace ringfence::isolate
