// What an image may hold: its JSON documents, the tar around it, and its layers. Parsers must
// neither crash nor put anything outside their tree. The first byte chooses what the rest is.

#include <stdlib.h>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>

#include "base/check.h"
#include "base/encoding.h"
#include "crypto/sha256.h"
#include "image/reference.h"
#include "image/report.h"
#include "os/memory_file.h"
#include "os/tree.h"
#include "unpack/image.h"
#include "unpack/layer.h"

namespace {

using namespace ringfence;         // NOLINT(google-build-using-namespace)
using namespace ringfence::image;  // NOLINT(google-build-using-namespace)

// A folder of this process, with a file beside the tree that must stay as it is.
struct Place {
  Place() {
    std::string name = "/tmp/ringfence-fuzz.XXXXXX";
    RINGFENCE_CHECK(mkdtemp(name.data()) != nullptr);
    folder = name;
    std::filesystem::create_directories(folder + "/tree");
  }
  ~Place() { std::filesystem::remove_all(folder); }
  std::string folder;
};

void FuzzDocuments(std::string_view text) {
  (void)ParseIndex(text).has_value();
  (void)ParseManifest(text).has_value();
  (void)ParseDockerManifest(text).has_value();
  (void)ParseConfig(text).has_value();
  if (const auto reference = ParseReference(text); reference.has_value()) {
    RINGFENCE_CHECK(reference->text() == text);
  }
  (void)ParseSource(text, false).has_value();
  if (const auto json = ParseJson(text, kReportBytesMax); json.has_value()) {
    (void)ReportFromJson(*json).has_value();
  }
}

Limits SmallLimits() {
  Limits limits;
  limits.entries_max = 200;
  limits.bytes_max = 1 << 20;
  limits.layer_stream_bytes_max = 4 << 20;
  limits.ratio_free_bytes = 1 << 20;
  return limits;
}

void FuzzLayer(os::Tree& tree, ByteView bytes) {
  bool given = false;
  Unpacked sum;
  const Pull pull = [&]() -> Result<ByteView> {
    const ByteView next = given ? ByteView() : bytes;
    given = true;
    return next;
  };
  (void)UnpackLayer(pull, "", "sha256:" + Hex(crypto::Sha256(bytes)), SmallLimits(), tree, sum)
      .has_value();
}

void FuzzArchive(os::Tree& tree, ByteView bytes) {
  const auto file = os::MakeMemoryFile("fuzz", bytes);
  RINGFENCE_CHECK(file.has_value());
  const auto source = SourceOfTar(file->get());
  if (!source.has_value()) {
    return;
  }
  const auto found = FindImage(**source, {});
  if (found.has_value()) {
    (void)UnpackImage(**source, *found, tree, SmallLimits()).has_value();
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) {
    return 0;
  }
  static Place place;
  const ByteView rest = std::as_bytes(std::span(data, size)).subspan(1);
  if (data[0] == 'd') {
    FuzzDocuments(AsText(rest));
    return 0;
  }
  auto tree = os::Tree::Open(place.folder + "/tree");
  RINGFENCE_CHECK(tree.has_value());
  data[0] == 'l' ? FuzzLayer(*tree, rest) : FuzzArchive(*tree, rest);
  RINGFENCE_CHECK(tree->Clear("", {}).has_value());
  std::size_t beside = 0;
  for (const auto& entry : std::filesystem::directory_iterator(place.folder)) {
    (void)entry;
    ++beside;
  }
  RINGFENCE_CHECK(beside == 1);
  return 0;
}
