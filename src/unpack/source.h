#pragma once

// The files of an image as it comes: of an OCI layout folder, or of a tar of one, or of what
// `docker save` writes. By name: "index.json", "blobs/sha256/HEX", "manifest.json".

#include <map>
#include <memory>
#include <string>
#include <string_view>

#include "base/result.h"
#include "os/unique_fd.h"
#include "unpack/archive.h"

namespace ringfence::image {

class Source {
 public:
  Source() = default;
  Source(const Source&) = delete;
  Source& operator=(const Source&) = delete;
  virtual ~Source() = default;

  // A stream of its bytes, and what must live as long; kNotFound when it is not there.
  struct Stream {
    std::shared_ptr<void> holder;  // shared with the function, which must be copyable
    Pull pull;
  };
  virtual Result<Stream> Open(const std::string& name) = 0;
  // The whole of a small one.
  Result<std::string> Read(const std::string& name, std::size_t bytes_max);
};

// Open files by their name in the layout. The descriptors must outlive it.
std::unique_ptr<Source> SourceOfFiles(std::map<std::string, int> files);
// A tar, not compressed. The descriptor must outlive it, and only one stream is open at a time.
Result<std::unique_ptr<Source>> SourceOfTar(int fd);

}  // namespace ringfence::image
