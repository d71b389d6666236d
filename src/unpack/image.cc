#include "unpack/image.h"

#include <algorithm>

#include "base/encoding.h"
#include "crypto/sha256.h"
#include "image/reference.h"
#include "unpack/layer.h"

namespace ringfence::image {
namespace {

constexpr int kIndexDepthMax = 3;

std::string DigestOf(std::string_view text) {
  return "sha256:" + Hex(crypto::Sha256(AsBytes(text)));
}

std::string BlobName(const std::string& digest) { return "blobs/sha256/" + digest.substr(7); }

Result<std::string> ReadBlob(Source& source, const std::string& name, const std::string& digest) {
  RINGFENCE_ASSIGN(std::string text, source.Read(name, kJsonBytesMax));
  if (const std::string found = DigestOf(text); found != digest) {
    return Error{Code::kCorrupt, name.substr(0, 200) + " is " + found + ", and should be " + digest,
                 "the image is damaged or was changed: fetch it again from where it is trusted"};
  }
  return text;
}

bool IsIndex(const Descriptor& descriptor) {
  return descriptor.media_type == "application/vnd.oci.image.index.v1+json" ||
         descriptor.media_type == "application/vnd.docker.distribution.manifest.list.v2+json";
}

bool FitsMachine(const Descriptor& descriptor) {
  return (descriptor.os.empty() || descriptor.os == kOs) &&
         (descriptor.architecture.empty() || descriptor.architecture == kArchitecture);
}

bool HasTag(const std::string& name, const std::string& tag) {
  return name == tag || name.ends_with(":" + tag);
}

Error Several(const std::vector<std::string>& names) {
  std::string list;
  for (const std::string& name : names) {
    if (list.size() > 500) {
      list += ", ...";
      break;
    }
    list += (list.empty() ? "" : ", ") + (name.empty() ? std::string("(no name)") : name);
  }
  return Error{
      Code::kInvalidArgument,
      names.empty() ? "no image like that is in it" : "there are several images in it: " + list,
      names.empty() ? "look at its index.json or manifest.json for what is there"
                    : "say which: oci:DIR:TAG, or add @sha256:HEX"};
}

class Finder {
 public:
  Finder(Source& source, const Wanted& wanted) : source_(source), wanted_(wanted) {}

  Result<Found> FromIndex() {
    RINGFENCE_ASSIGN(const std::string text, source_.Read("index.json", kJsonBytesMax));
    RINGFENCE_ASSIGN(const Index index, ParseIndex(text));
    return Choose(index, false, 0);
  }

  Result<Found> FromDocker() {
    RINGFENCE_ASSIGN(const std::string text, source_.Read("manifest.json", kJsonBytesMax));
    RINGFENCE_ASSIGN(const auto images, ParseDockerManifest(text));
    std::vector<Found> fit;
    std::vector<std::string> names;
    for (const DockerImage& image : images) {
      const bool tagged = std::any_of(image.names.begin(), image.names.end(),
                                      [&](const auto& name) { return HasTag(name, wanted_.tag); });
      if (!wanted_.tag.empty() && !tagged) {
        continue;
      }
      Found found;
      RINGFENCE_ASSIGN(found.document, source_.Read(image.manifest.config, kJsonBytesMax));
      found.digest = DigestOf(found.document);
      if (!wanted_.digest.empty() && wanted_.digest != found.digest) {
        continue;
      }
      found.manifest = image.manifest;
      found.manifest.config_digest = found.digest;
      found.names = image.names;
      names.push_back(image.names.empty() ? "" : image.names.front());
      fit.push_back(std::move(found));
    }
    if (fit.size() != 1) {
      return fit.empty() && !wanted_.digest.empty() ? WrongDigest() : Several(names);
    }
    RINGFENCE_ASSIGN(fit[0].config, ParseConfig(fit[0].document));
    return std::move(fit[0]);
  }

 private:
  Error WrongDigest() const {
    return Error{Code::kCorrupt, "no image in it has the digest " + wanted_.digest,
                 "this is not the image that was pinned: fetch that one, or pin this one if it is "
                 "right"};
  }

  // `pinned`: an index above has the digest that was asked for.
  Result<Found> Choose(const Index& index, bool pinned, int depth) {
    std::vector<const Descriptor*> fit;
    std::vector<std::string> names;
    for (const Descriptor& one : index.manifests) {
      const bool tagged = depth > 0 || wanted_.tag.empty() || HasTag(one.name, wanted_.tag);
      const bool asked = pinned || wanted_.digest.empty() || one.digest == wanted_.digest ||
                         IsIndex(one);  // the one that is pinned may be in it
      if (FitsMachine(one) && tagged && asked) {
        fit.push_back(&one);
        names.push_back(one.name);
      }
    }
    if (fit.size() != 1) {
      return fit.empty() && !wanted_.digest.empty() ? WrongDigest() : Several(names);
    }
    const Descriptor& chosen = *fit[0];
    const bool found_pin = pinned || chosen.digest == wanted_.digest;
    RINGFENCE_ASSIGN(std::string text, ReadBlob(source_, BlobName(chosen.digest), chosen.digest));
    if (IsIndex(chosen)) {
      if (depth + 1 >= kIndexDepthMax) {
        return Error{Code::kInvalidArgument, "the image's index is nested too deep",
                     "save the image again, for one machine only"};
      }
      RINGFENCE_ASSIGN(const Index inner, ParseIndex(text));
      RINGFENCE_ASSIGN(Found found, Choose(inner, found_pin, depth + 1));
      if (found.names.empty() && !chosen.name.empty()) {
        found.names.push_back(chosen.name);
      }
      return found;
    }
    if (!wanted_.digest.empty() && !found_pin) {
      return WrongDigest();
    }
    Found found;
    found.digest = chosen.digest;
    RINGFENCE_ASSIGN(found.manifest, ParseManifest(text));
    found.document = std::move(text);
    if (!chosen.name.empty()) {
      found.names.push_back(chosen.name);
    }
    RINGFENCE_ASSIGN(const std::string config,
                     ReadBlob(source_, found.manifest.config, found.manifest.config_digest));
    RINGFENCE_ASSIGN(found.config, ParseConfig(config));
    return found;
  }

  Source& source_;
  const Wanted& wanted_;
};

// Where the image's own configuration wants to start, if the tree has it as a plain folder.
std::string WorkingFolder(const os::Tree& tree, const std::string& wanted) {
  if (wanted.size() < 2 || wanted[0] != '/') {
    return {};
  }
  std::string path = wanted.substr(1);
  while (path.ends_with('/')) {
    path.pop_back();
  }
  const auto kind = tree.KindOf(path);
  return kind.has_value() && *kind == os::TreeKind::kFolder ? "/" + path : std::string();
}

}  // namespace

Result<Found> FindImage(Source& source, const Wanted& wanted) {
  Finder finder(source, wanted);
  auto found = finder.FromIndex();
  if (!found.has_value() && found.error().code == Code::kNotFound &&
      source.Open("manifest.json").has_value()) {
    found = finder.FromDocker();
  }
  if (!found.has_value()) {
    return found.error();
  }
  if (found->manifest.layers.size() != found->config.diff_ids.size()) {
    return Error{Code::kInvalidArgument,
                 "the image has " + std::to_string(found->manifest.layers.size()) +
                     " layers, and its configuration names " +
                     std::to_string(found->config.diff_ids.size()),
                 "save the image again"};
  }
  // Names are for people and policies; one that could not be asked for is none.
  std::erase_if(found->names, [](const std::string& name) {
    const auto parsed = ParseReference(name);
    return !parsed.has_value() || parsed->pinned();
  });
  return found;
}

Result<Report> UnpackImage(Source& source, const Found& found, os::Tree& tree,
                           const Limits& limits) {
  Unpacked sum;
  for (std::size_t i = 0; i < found.manifest.layers.size(); ++i) {
    const LayerName& layer = found.manifest.layers[i];
    const std::string which =
        "layer " + std::to_string(i + 1) + " of " + std::to_string(found.manifest.layers.size());
    const auto stream = source.Open(layer.place);
    if (!stream.has_value()) {
      return Prefix(which, stream.error());
    }
    const Status done =
        UnpackLayer(stream->pull, layer.digest, found.config.diff_ids[i], limits, tree, sum);
    if (!done.has_value()) {
      return Prefix(which, done.error());
    }
  }
  Report report;
  report.digest = found.digest;
  report.document = found.document;
  report.names = found.names;
  report.environment = found.config.environment;
  std::erase_if(report.environment, [](const auto& pair) { return !IsVariable(pair.first); });
  report.command = found.config.command;
  report.working_folder = WorkingFolder(tree, found.config.working_folder);
  RINGFENCE_ASSIGN(report.tree_digest, TreeDigest(tree));
  report.layers = sum.layers;
  report.entries = sum.entries;
  report.bytes = sum.bytes;
  report.privileged_bits = sum.privileged_bits;
  return report;
}

}  // namespace ringfence::image
