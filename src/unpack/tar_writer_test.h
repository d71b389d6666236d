#pragma once

// Test support: tar files as an attacker writes them, byte by byte, and images around them.

#include <array>
#include <cstdio>
#include <string>
#include <vector>

#include "base/encoding.h"
#include "crypto/sha256.h"

namespace ringfence::image {

inline std::string DigestText(const std::string& bytes) {
  return "sha256:" + Hex(crypto::Sha256(AsBytes(bytes)));
}

class TarWriter {
 public:
  TarWriter& File(const std::string& path, const std::string& data, unsigned mode = 0644) {
    return Add(path, '0', data, mode, "");
  }
  TarWriter& Folder(const std::string& path) { return Add(path, '5', "", 0755, ""); }
  TarWriter& Link(const std::string& path, const std::string& target) {
    return Add(path, '2', "", 0777, target);
  }
  TarWriter& HardLink(const std::string& path, const std::string& target) {
    return Add(path, '1', "", 0644, target);
  }
  TarWriter& Special(const std::string& path, char type) { return Add(path, type, "", 0644, ""); }
  // A header that promises `bytes`, without them.
  TarWriter& Promise(const std::string& path, std::uint64_t bytes) {
    Header(path, '0', bytes, 0644, "");
    return *this;
  }
  // An old GNU sparse file of `bytes` without any data.
  TarWriter& Sparse(const std::string& path, std::uint64_t bytes) {
    Header(path, 'S', 0, 0644, "", bytes);
    return *this;
  }
  // A path of any length, by a pax header.
  TarWriter& LongFile(const std::string& path, const std::string& data) {
    std::string record = " path=" + path + "\n";
    std::size_t length = record.size() + 1;
    while (std::to_string(length).size() + record.size() != length) {
      ++length;
    }
    Add("pax", 'x', std::to_string(length) + record, 0644, "");
    return Add(path.substr(0, 90), '0', data, 0644, "");
  }
  std::string Take() const { return bytes_ + std::string(1024, '\0'); }
  const std::string& raw() const { return bytes_; }

 private:
  TarWriter& Add(const std::string& path, char type, const std::string& data, unsigned mode,
                 const std::string& target) {
    Header(path, type, data.size(), mode, target);
    bytes_ += data;
    bytes_.resize((bytes_.size() + 511) / 512 * 512, '\0');
    return *this;
  }
  void Header(const std::string& path, char type, std::uint64_t bytes, unsigned mode,
              const std::string& target, std::uint64_t real_bytes = 0) {
    std::string block(512, '\0');
    const auto put = [&block](std::size_t at, const std::string& text) {
      block.replace(at, text.size(), text);
    };
    const auto octal = [](std::uint64_t value, int digits) {
      std::array<char, 32> text{};
      (void)std::snprintf(text.data(), text.size(), "%0*llo", digits,
                          static_cast<unsigned long long>(value));
      return std::string(text.data());
    };
    put(0, path.substr(0, 100));
    put(100, octal(mode, 7));
    put(108, octal(0, 7));
    put(116, octal(0, 7));
    put(124, octal(bytes, 11));
    put(136, octal(0, 11));
    put(148, "        ");
    block[156] = type;
    put(157, target.substr(0, 100));
    if (type == 'S') {
      put(257, "ustar  ");
      put(386, octal(real_bytes, 11));  // one piece of no bytes, at the end
      put(398, octal(0, 11));
      put(483, octal(real_bytes, 11));
    } else {
      put(257, "ustar");
      put(263, "00");
      put(329, octal(1, 7));
      put(337, octal(3, 7));
    }
    unsigned sum = 0;
    for (const char c : block) {
      sum += static_cast<unsigned char>(c);
    }
    put(148, octal(sum, 6) + std::string(1, '\0') + " ");
    bytes_ += block;
  }
  std::string bytes_;
};

}  // namespace ringfence::image
