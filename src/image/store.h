#pragma once

// The images of a node, by digest, in a folder that only root can enter:
//   lock             held by whoever imports or removes
//   sha256-HEX/      image.json, document, lock (held by boxes that use it), tree/
//   .new-...         an import that has not finished
// Docs: docs/formats/images.md.

#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/time.h"
#include "image/report.h"
#include "os/unique_fd.h"

namespace ringfence::image {

inline constexpr std::size_t kImagesMax = 256;

struct StoredImage {
  Report report;  // without `document`
  std::vector<std::string> names;
  std::string source;    // what was imported, for people
  std::string verifier;  // "sha256:..." of the program that vouched for it; empty: none was asked
  Timestamp imported;
  std::string folder;
  std::string tree() const { return folder + "/tree"; }
};
// As `image show` prints it.
Json StoredImageToJson(const StoredImage& image);

// One thread; several processes may use the same folder.
class Store {
 public:
  explicit Store(std::string folder) : folder_(std::move(folder)) {}

  std::vector<std::string> Digests() const;  // sorted; whether they can be read is not looked at
  // Sorted by digest. An image that cannot be read is an error that names it.
  Result<std::vector<StoredImage>> List() const;
  // kNotFound says what to do. The stored document is held against the digest.
  Result<StoredImage> Find(const std::string& digest) const;
  // By name, digest, or the first 12 or more digits of one.
  Result<StoredImage> FindByText(const std::string& text) const;
  // It cannot be removed as long as this is held.
  Result<os::UniqueFd> Hold(const std::string& digest) const;

  // An import: from Begin to the end of the object nobody else imports or removes.
  class Import {
   public:
    const std::string& folder() const { return folder_; }
    std::string tree() const { return folder_ + "/tree"; }
    // The image is in the store, whole, or not at all. Its names are taken from others that had
    // them.
    Result<StoredImage> Keep(const Report& report, StoredImage facts);
    ~Import();
    Import(const Import&) = delete;
    Import& operator=(const Import&) = delete;

   private:
    friend class Store;
    Import(const Store& store, std::string folder, os::UniqueFd lock)
        : store_(store), folder_(std::move(folder)), lock_(std::move(lock)) {}
    const Store& store_;
    std::string folder_;
    os::UniqueFd lock_;
  };
  // `owner` is the user that unpacks. Removes what earlier imports left. The store must outlive it.
  Result<std::unique_ptr<Import>> Begin(unsigned owner);
  // kConflict while a box uses it.
  Status Remove(const std::string& digest);

 private:
  std::string FolderOf(const std::string& digest) const;
  Status Write(const StoredImage& image) const;
  Result<os::UniqueFd> Lock() const;

  std::string folder_;
};

}  // namespace ringfence::image
