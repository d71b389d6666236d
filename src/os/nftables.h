#pragma once

// The only door to libnftables. docs/decisions/0012 says why the library and not netlink.

#include <memory>
#include <string>

#include "base/json.h"
#include "base/result.h"

namespace ringfence::os {

// Speaks to the network namespace that it was opened in, wherever the thread goes later. One
// thread. A table made with the flag "owner" goes when this does, also by SIGKILL.
class Nftables {
 public:
  static Result<Nftables> Open();
  Nftables(Nftables&&) noexcept;
  Nftables& operator=(Nftables&&) noexcept;
  ~Nftables();

  // Commands as nft(8) reads them, a line each, as one transaction: all of them hold, or none. The
  // text must be made of checked values only: never of words from outside.
  Status Apply(const std::string& commands);
  // What "list ..." prints, as JSON.
  Result<Json> List(const std::string& what);

 private:
  struct Library;
  explicit Nftables(std::unique_ptr<Library> library);
  std::unique_ptr<Library> library_;
};

}  // namespace ringfence::os
