#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace ringfence {

using Bytes = std::vector<std::byte>;
using ByteView = std::span<const std::byte>;
using Digest = std::array<std::byte, 32>;

inline ByteView AsBytes(std::string_view text) { return std::as_bytes(std::span(text)); }
inline Bytes ToBytes(std::string_view text) {
  const ByteView view = AsBytes(text);
  return {view.begin(), view.end()};
}
inline std::string_view AsText(ByteView bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}
inline std::string ToText(ByteView bytes) { return std::string(AsText(bytes)); }

inline void Append(Bytes& to, ByteView more) { to.insert(to.end(), more.begin(), more.end()); }

// Big-endian, as in every format of ours.
template <typename Unsigned>
std::array<std::byte, sizeof(Unsigned)> PutBigEndian(Unsigned value) {
  std::array<std::byte, sizeof(Unsigned)> bytes{};
  for (std::size_t i = 0; i < sizeof(Unsigned); ++i) {
    bytes[sizeof(Unsigned) - 1 - i] = static_cast<std::byte>((value >> (8 * i)) & 0xffU);
  }
  return bytes;
}

// `bytes` must hold at least sizeof(Unsigned).
template <typename Unsigned>
Unsigned GetBigEndian(ByteView bytes) {
  std::uint64_t value = 0;
  for (const std::byte byte : bytes.first(sizeof(Unsigned))) {
    value = (value << 8U) | std::to_integer<std::uint64_t>(byte);
  }
  return static_cast<Unsigned>(value);
}

}  // namespace ringfence
