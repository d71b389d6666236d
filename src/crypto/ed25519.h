#pragma once

// Ed25519 signatures (RFC 8032).

#include <array>
#include <string>

#include "base/bytes.h"
#include "base/result.h"
#include "base/secret.h"

namespace ringfence::crypto {

using Signature = std::array<std::byte, 64>;

class PublicKey {
 public:
  static Result<PublicKey> FromRaw(ByteView raw);  // 32 bytes
  const std::array<std::byte, 32>& raw() const { return raw_; }
  // The first 16 hex digits of the key's SHA-256: how people and records name it.
  std::string Id() const;
  bool Verify(ByteView message, ByteView signature) const;
  bool operator==(const PublicKey&) const = default;

 private:
  std::array<std::byte, 32> raw_{};
};

// Any thread.
class SigningKey {
 public:
  static SigningKey Generate();
  static Result<SigningKey> FromSeed(SecretBytes seed);  // 32 bytes
  const PublicKey& public_key() const { return public_; }
  const SecretBytes& seed() const { return seed_; }
  Signature Sign(ByteView message) const;

 private:
  SigningKey(SecretBytes seed, const PublicKey& key) : seed_(std::move(seed)), public_(key) {}
  SecretBytes seed_;
  PublicKey public_;
};

}  // namespace ringfence::crypto
