#pragma once

// What an image says of itself: OCI index, manifest and configuration, or docker's. Pure: bytes in,
// values out; unknown members are passed over, as these formats grow.

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"

namespace ringfence::image {

inline constexpr std::string_view kOs = "linux";
inline constexpr std::string_view kArchitecture =
#if defined(__aarch64__)
    "arm64";
#else
    "amd64";
#endif

struct Descriptor {
  std::string digest;
  std::string media_type;
  std::string name;  // annotation org.opencontainers.image.ref.name or io.containerd.image.name
  std::string os;    // empty: not said
  std::string architecture;
};

struct Index {
  std::vector<Descriptor> manifests;
};
Result<Index> ParseIndex(std::string_view text);

struct LayerName {
  std::string digest;  // of the bytes as they are stored; empty where the format has none
  std::string place;   // name in the source
};
struct Manifest {
  std::string config;  // name in the source
  std::string config_digest;
  std::vector<LayerName> layers;
};
Result<Manifest> ParseManifest(std::string_view text);

// One of the images of docker's manifest.json.
struct DockerImage {
  Manifest manifest;
  std::vector<std::string> names;
};
Result<std::vector<DockerImage>> ParseDockerManifest(std::string_view text);

struct Config {
  std::vector<std::string> diff_ids;  // digest of each layer, uncompressed
  std::vector<std::pair<std::string, std::string>> environment;
  std::vector<std::string> command;  // entry point and arguments
  std::string working_folder;        // absolute; may be empty
};
// Refuses an image for another system or processor.
Result<Config> ParseConfig(std::string_view text);

}  // namespace ringfence::image
