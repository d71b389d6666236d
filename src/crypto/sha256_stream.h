#pragma once

#include <memory>

#include "base/bytes.h"

namespace ringfence::crypto {

// SHA-256 of what comes in pieces. One thread. Aborts if the library itself fails.
class Sha256Stream {
 public:
  Sha256Stream();
  Sha256Stream(Sha256Stream&&) noexcept;
  Sha256Stream& operator=(Sha256Stream&&) noexcept;
  ~Sha256Stream();

  void Add(ByteView bytes);
  Digest Finish();  // and begins anew

 private:
  struct Context;
  std::unique_ptr<Context> context_;
};

}  // namespace ringfence::crypto
