#pragma once

// Bearer tokens: "rf_<id>_<secret>". The secret is a MAC of the id under a key that only the
// server holds, so nothing that could be stolen from the database opens a door, and a repeated
// request for the same token can be answered again without having stored it.

#include <string>
#include <string_view>

#include "base/result.h"
#include "base/secret.h"

namespace ringfence::identity {

inline constexpr std::size_t kTokenBytesMax = 256;

// Any thread.
class TokenMint {
 public:
  explicit TokenMint(SecretBytes key) : key_(std::move(key)) {}

  std::string Mint(std::string_view id) const;
  // The id, if this mint made the token; compared in constant time. Whether it is still in force
  // is for the store to say.
  Result<std::string> Open(std::string_view token) const;

 private:
  SecretBytes key_;
};

}  // namespace ringfence::identity
