#pragma once

// What an image may have at most. Each is a refusal that names the entry, never a cut.

#include <cstddef>
#include <cstdint>

namespace ringfence::image {

struct Limits {
  std::size_t layers_max = 128;
  std::size_t entries_max = 500'000;                   // of all layers together
  std::uint64_t bytes_max = std::uint64_t{64} << 30U;  // unpacked, holes counted as bytes
  std::uint64_t layer_stream_bytes_max = std::uint64_t{72} << 30U;  // of a layer, uncompressed
  // A layer may grow by this factor, after the first ratio_free_bytes.
  std::uint64_t ratio_max = 250;
  std::uint64_t ratio_free_bytes = std::uint64_t{64} << 20U;
};

inline constexpr std::size_t kJsonBytesMax = std::size_t{4} << 20U;  // of index, manifest, config
inline constexpr std::size_t kIndexEntriesMax = 1024;
inline constexpr std::size_t kArchiveEntriesMax = 100'000;  // of the tar around the layers
inline constexpr std::size_t kEnvironmentMax = 256;
inline constexpr std::size_t kEnvironmentBytesMax = 32 * 1024;  // in all
inline constexpr std::size_t kCommandWordsMax = 256;
inline constexpr std::size_t kTextBytesMax = 4096;
inline constexpr std::size_t kReferenceBytesMax = 512;
inline constexpr std::size_t kNamesMax = 32;  // of one image

}  // namespace ringfence::image
