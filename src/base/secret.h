#pragma once

// Bytes that must not leak: wiped when dropped, compared in constant time, not printable, not
// copied by accident.

#include <utility>

#include "base/bytes.h"

namespace ringfence {

class SecretBytes {
 public:
  SecretBytes() = default;
  explicit SecretBytes(Bytes bytes) : bytes_(std::move(bytes)) {}
  explicit SecretBytes(ByteView bytes) : bytes_(bytes.begin(), bytes.end()) {}
  SecretBytes(const SecretBytes&) = delete;
  SecretBytes& operator=(const SecretBytes&) = delete;
  SecretBytes(SecretBytes&& other) noexcept : bytes_(std::exchange(other.bytes_, {})) {}
  SecretBytes& operator=(SecretBytes&& other) noexcept {
    if (this != &other) {
      Wipe();
      bytes_ = std::exchange(other.bytes_, {});
    }
    return *this;
  }
  ~SecretBytes() { Wipe(); }

  // The word to search for when reviewing where secrets go.
  ByteView Reveal() const { return bytes_; }
  std::size_t size() const { return bytes_.size(); }
  bool Equals(ByteView other) const {
    if (other.size() != bytes_.size()) {
      return false;
    }
    unsigned difference = 0;
    for (std::size_t i = 0; i < other.size(); ++i) {
      difference |= std::to_integer<unsigned>(bytes_[i] ^ other[i]);
    }
    return difference == 0;
  }

 private:
  void Wipe() {
    volatile std::byte* at = bytes_.data();
    for (std::size_t i = 0; i < bytes_.size(); ++i) {
      at[i] = std::byte{0};
    }
    bytes_.clear();
  }

  Bytes bytes_;
};

}  // namespace ringfence
