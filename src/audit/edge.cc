#include <algorithm>

#include "audit/log_writer.h"
#include "os/file.h"

namespace ringfence::audit {
namespace {

Error Damaged(const std::string& path, std::string_view why) {
  return {Code::kCorrupt, path + " " + std::string(why),
          "run `ringfence audit verify` on the log, and restore the file from a copy"};
}

Result<Bytes> ReadPiece(const std::string& folder, const std::string& path, std::size_t bytes_max) {
  Result<Bytes> bytes = os::ReadFile(folder + "/" + path, bytes_max);
  if (!bytes.has_value() &&
      (bytes.error().code == Code::kNotFound || bytes.error().code == Code::kExhausted)) {
    return Damaged(path, "is missing or too long, though the signed checkpoint covers it");
  }
  return bytes;
}

Status ReadEdgeTile(const std::string& folder, unsigned level, Edge& edge) {
  const std::uint64_t count = HashesAt(edge.size, level);
  const std::uint64_t width = count % kTileWidth;
  if (width == 0) {
    return {};
  }
  const std::string path = TilePath(level, count / kTileWidth, width);
  RINGFENCE_ASSIGN(const Bytes bytes, ReadPiece(folder, path, kTileBytesMax));
  if (bytes.size() != width * sizeof(Digest)) {
    return Damaged(path, "has the wrong length");
  }
  std::vector<Digest>& tile = edge.tiles[level];
  tile.reserve(kTileWidth);
  tile.resize(width);
  for (std::size_t i = 0; i < width; ++i) {
    std::copy_n(bytes.begin() + static_cast<std::ptrdiff_t>(i * sizeof(Digest)), sizeof(Digest),
                tile[i].begin());
  }
  // From the left: one perfect subtree for each bit of the width, the largest first.
  std::size_t at = 0;
  for (unsigned bit = kTileHeight; bit-- > 0;) {
    const std::size_t span = std::size_t{1} << bit;
    if ((width & span) != 0) {
      edge.peaks[level * kTileHeight + bit] =
          PerfectRoot(std::span<const Digest>(tile).subspan(at, span));
      at += span;
    }
  }
  return {};
}

Status ReadEdgeBundle(const std::string& folder, Edge& edge) {
  const std::uint64_t width = edge.size % kTileWidth;
  if (width == 0) {
    return {};
  }
  const std::string path = BundlePath(edge.size / kTileWidth, width);
  RINGFENCE_ASSIGN(edge.bundle, ReadPiece(folder, path, kBundleBytesMax));
  ByteView rest = edge.bundle;
  for (std::size_t i = 0; i < width; ++i) {
    const std::size_t length = rest.size() < 2 ? 0 : GetBigEndian<std::uint16_t>(rest);
    if (rest.size() < 2 + length) {
      return Damaged(path, "is cut short");
    }
    if (LeafHash(rest.subspan(2, length)) != edge.tiles[0][i]) {
      return Damaged(path, "holds an entry " + std::to_string(edge.size - width + i) +
                               " that is not the one in its tile");
    }
    rest = rest.subspan(2 + length);
  }
  return rest.empty() ? Status() : Damaged(path, "is too long");
}

}  // namespace

Digest Edge::Root() const {
  if (size == 0) {
    return EmptyRoot();
  }
  bool have = false;
  Digest root{};
  for (unsigned height = 0; height < 64; ++height) {
    if (((size >> height) & 1U) != 0) {
      root = have ? NodeHash(peaks[height], root) : peaks[height];
      have = true;
    }
  }
  return root;
}

Result<Edge> ReadEdge(const std::string& folder, const TreeHead& head) {
  Edge edge;
  edge.size = head.size;
  for (unsigned level = 0; level < kTileLevels; ++level) {
    RINGFENCE_TRY(ReadEdgeTile(folder, level, edge));
  }
  if (edge.Root() != head.root) {
    return Damaged("the log's last tiles", "do not lead to the root that the checkpoint signs");
  }
  RINGFENCE_TRY(ReadEdgeBundle(folder, edge));
  return edge;
}

}  // namespace ringfence::audit
