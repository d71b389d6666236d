#include "unpack/manifest.h"

#include <algorithm>

#include "base/json.h"
#include "image/limits.h"
#include "image/reference.h"

namespace ringfence::image {
namespace {

constexpr const char* kHint = "save the image again, or build it with another tool";

Error Bad(const std::string& what) { return Error{Code::kInvalidArgument, what, kHint}; }

Result<const JsonObject*> ObjectOf(const Result<Json>& json, const std::string& what) {
  if (!json.has_value()) {
    return Bad(what + ": " + json.error().message);
  }
  const JsonObject* const object = json->if_object();
  if (object == nullptr) {
    return Bad(what + " is no JSON object");
  }
  return object;
}

// Absent, null and of another type count as empty: these are not what an image stands on.
std::string TextAt(const JsonObject& object, std::string_view name) {
  const Json* const value = object.if_contains(name);
  const auto* const text = value == nullptr ? nullptr : value->if_string();
  if (text == nullptr || text->size() > kTextBytesMax) {
    return {};
  }
  return {text->data(), text->size()};
}

const JsonObject* ObjectAt(const JsonObject& object, std::string_view name) {
  const Json* const value = object.if_contains(name);
  return value == nullptr ? nullptr : value->if_object();
}

Result<const JsonArray*> ArrayAt(const JsonObject& object, std::string_view name, std::size_t most,
                                 const std::string& what) {
  const Json* const value = object.if_contains(name);
  const JsonArray* const array = value == nullptr ? nullptr : value->if_array();
  if (array == nullptr || array->size() > most) {
    return Bad(what + ": " + std::string(name) + " must be a list of at most " +
               std::to_string(most));
  }
  return array;
}

Result<std::vector<std::string>> TextsAt(const JsonObject& object, std::string_view name,
                                         std::size_t most, const std::string& what) {
  std::vector<std::string> texts;
  const Json* const value = object.if_contains(name);
  if (value == nullptr || value->is_null()) {
    return texts;
  }
  RINGFENCE_ASSIGN(const JsonArray* const array, ArrayAt(object, name, most, what));
  for (const Json& one : *array) {
    const auto* const text = one.if_string();
    if (text == nullptr || text->size() > kEnvironmentBytesMax ||
        std::string_view(text->data(), text->size()).find('\0') != std::string_view::npos) {
      return Bad(what + ": " + std::string(name) + " must hold texts of at most " +
                 std::to_string(kEnvironmentBytesMax) + " bytes");
    }
    texts.emplace_back(text->data(), text->size());
  }
  return texts;
}

std::string BlobName(const std::string& digest) { return "blobs/sha256/" + digest.substr(7); }

Result<Descriptor> DescriptorOf(const Json& json, const std::string& what) {
  const JsonObject* const object = json.if_object();
  if (object == nullptr) {
    return Bad(what + " is no JSON object");
  }
  Descriptor descriptor;
  descriptor.digest = TextAt(*object, "digest");
  if (!IsDigest(descriptor.digest)) {
    return Bad(what + ": digest must be sha256: and 64 hexadecimal digits");
  }
  descriptor.media_type = TextAt(*object, "mediaType");
  if (const JsonObject* const annotations = ObjectAt(*object, "annotations")) {
    descriptor.name = TextAt(*annotations, "io.containerd.image.name");
    if (descriptor.name.empty()) {
      descriptor.name = TextAt(*annotations, "org.opencontainers.image.ref.name");
    }
  }
  if (const JsonObject* const platform = ObjectAt(*object, "platform")) {
    descriptor.os = TextAt(*platform, "os");
    descriptor.architecture = TextAt(*platform, "architecture");
  }
  return descriptor;
}

}  // namespace

Result<Index> ParseIndex(std::string_view text) {
  const auto json = ParseJson(text, kJsonBytesMax);
  RINGFENCE_ASSIGN(const JsonObject* const object, ObjectOf(json, "the image's index"));
  RINGFENCE_ASSIGN(const JsonArray* const manifests,
                   ArrayAt(*object, "manifests", kIndexEntriesMax, "the image's index"));
  Index index;
  for (const Json& one : *manifests) {
    RINGFENCE_ASSIGN(Descriptor descriptor, DescriptorOf(one, "an entry of the image's index"));
    index.manifests.push_back(std::move(descriptor));
  }
  return index;
}

Result<Manifest> ParseManifest(std::string_view text) {
  const auto json = ParseJson(text, kJsonBytesMax);
  RINGFENCE_ASSIGN(const JsonObject* const object, ObjectOf(json, "the image's manifest"));
  const Json* const config = object->if_contains("config");
  if (config == nullptr) {
    return Bad("the image's manifest has no config");
  }
  RINGFENCE_ASSIGN(const Descriptor described, DescriptorOf(*config, "the manifest's config"));
  Manifest manifest{BlobName(described.digest), described.digest, {}};
  RINGFENCE_ASSIGN(const JsonArray* const layers,
                   ArrayAt(*object, "layers", Limits().layers_max, "the image's manifest"));
  for (const Json& one : *layers) {
    RINGFENCE_ASSIGN(const Descriptor layer, DescriptorOf(one, "a layer of the manifest"));
    manifest.layers.push_back({layer.digest, BlobName(layer.digest)});
  }
  return manifest;
}

Result<std::vector<DockerImage>> ParseDockerManifest(std::string_view text) {
  const auto json = ParseJson(text, kJsonBytesMax);
  const JsonArray* const list = json.has_value() ? json->if_array() : nullptr;
  if (list == nullptr || list->size() > kIndexEntriesMax) {
    return Bad("manifest.json is no list of images");
  }
  std::vector<DockerImage> images;
  for (const Json& one : *list) {
    const JsonObject* const object = one.if_object();
    if (object == nullptr) {
      return Bad("manifest.json holds something that is no image");
    }
    DockerImage image;
    image.manifest.config = TextAt(*object, "Config");
    if (image.manifest.config.empty()) {
      return Bad("manifest.json has an image without Config");
    }
    RINGFENCE_ASSIGN(image.names, TextsAt(*object, "RepoTags", kNamesMax, "manifest.json"));
    RINGFENCE_ASSIGN(const auto layers,
                     TextsAt(*object, "Layers", Limits().layers_max, "manifest.json"));
    for (const std::string& layer : layers) {
      image.manifest.layers.push_back({"", layer});
    }
    images.push_back(std::move(image));
  }
  return images;
}

Result<Config> ParseConfig(std::string_view text) {
  const std::string what = "the image's configuration";
  const auto json = ParseJson(text, kJsonBytesMax);
  RINGFENCE_ASSIGN(const JsonObject* const object, ObjectOf(json, what));
  const std::string os = TextAt(*object, "os");
  const std::string architecture = TextAt(*object, "architecture");
  if (os != kOs || architecture != kArchitecture) {
    return Error{Code::kInvalidArgument,
                 "the image is for " + os + "/" + architecture + ", and this machine is " +
                     std::string(kOs) + "/" + std::string(kArchitecture),
                 "pull or build it for this machine: `podman pull --arch " +
                     std::string(kArchitecture) + "`"};
  }
  Config config;
  const JsonObject* const rootfs = ObjectAt(*object, "rootfs");
  if (rootfs == nullptr) {
    return Bad(what + " has no rootfs");
  }
  RINGFENCE_ASSIGN(config.diff_ids, TextsAt(*rootfs, "diff_ids", Limits().layers_max, what));
  if (!std::all_of(config.diff_ids.begin(), config.diff_ids.end(), IsDigest)) {
    return Bad(what + ": diff_ids must be digests");
  }
  const JsonObject* const process = ObjectAt(*object, "config");
  if (process == nullptr) {
    return config;
  }
  RINGFENCE_ASSIGN(const auto pairs, TextsAt(*process, "Env", kEnvironmentMax, what));
  std::size_t bytes = 0;
  for (const std::string& pair : pairs) {
    const std::size_t equals = pair.find('=');
    bytes += pair.size();
    if (equals == std::string::npos || equals == 0 || bytes > kEnvironmentBytesMax) {
      return Bad(what + ": Env must hold NAME=VALUE, at most " +
                 std::to_string(kEnvironmentBytesMax) + " bytes in all");
    }
    config.environment.emplace_back(pair.substr(0, equals), pair.substr(equals + 1));
  }
  RINGFENCE_ASSIGN(config.command, TextsAt(*process, "Entrypoint", kCommandWordsMax, what));
  RINGFENCE_ASSIGN(const auto arguments, TextsAt(*process, "Cmd", kCommandWordsMax, what));
  config.command.insert(config.command.end(), arguments.begin(), arguments.end());
  config.working_folder = TextAt(*process, "WorkingDir");
  return config;
}

}  // namespace ringfence::image
