#include "cli/log_copy.h"

#include <charconv>

#include "net/client.h"
#include "os/file.h"

namespace ringfence::cli {
namespace {

constexpr std::uint64_t kTileWidth = 256;
constexpr int kAttempts = 5;

// 1234067 -> "x001/x234/067".
std::string TileNumber(std::uint64_t number) {
  const auto three = [](std::uint64_t part) {
    const std::string digits = std::to_string(part);
    return std::string(3 - digits.size(), '0') + digits;
  };
  std::string name = three(number % 1000);
  for (number /= 1000; number > 0; number /= 1000) {
    name = "x" + three(number % 1000) + "/" + name;
  }
  return name;
}

void AddLevel(std::vector<std::string>& files, const std::string& level, std::uint64_t count) {
  for (std::uint64_t tile = 0; tile < count / kTileWidth; ++tile) {
    files.push_back("tile/" + level + "/" + TileNumber(tile));
  }
  if (count % kTileWidth != 0) {
    files.push_back("tile/" + level + "/" + TileNumber(count / kTileWidth) + ".p/" +
                    std::to_string(count % kTileWidth));
  }
}

// The second line of a checkpoint. It is only a guide to what to fetch: the verifier judges it.
Result<std::uint64_t> SizeOf(std::string_view checkpoint) {
  const std::size_t first = checkpoint.find('\n');
  const std::size_t second =
      first == std::string_view::npos ? first : checkpoint.find('\n', first + 1);
  std::uint64_t size = 0;
  if (second != std::string_view::npos) {
    const auto [end, wrong] =
        std::from_chars(checkpoint.data() + first + 1, checkpoint.data() + second, size);
    if (wrong == std::errc{} && end == checkpoint.data() + second && size <= kLogEntriesMax) {
      return size;
    }
  }
  return Error{Code::kCorrupt, "the server's checkpoint is not one"};
}

Status Fetch(Api& api, const std::string& folder, const std::string& file) {
  RINGFENCE_ASSIGN(const std::string bytes, api.Raw("/v1/audit/log/" + net::UrlEncode(file, true)));
  const std::string path = folder + "/" + file;
  RINGFENCE_TRY(os::MakeDirs(path.substr(0, path.rfind('/')), 0700));
  return os::WriteFile(path, AsBytes(bytes), 0600);
}

}  // namespace

std::vector<std::string> LogFiles(std::uint64_t size) {
  std::vector<std::string> files;
  AddLevel(files, "entries", size);
  std::uint64_t count = size;
  for (int level = 0; count > 0; ++level, count /= kTileWidth) {
    AddLevel(files, std::to_string(level), count);
  }
  return files;
}

Status CopyLog(Api& api, const std::string& folder,
               const std::function<void(std::size_t done, std::size_t total)>& progress) {
  Status last;
  for (int attempt = 0; attempt < kAttempts; ++attempt) {
    RINGFENCE_ASSIGN(const std::string checkpoint, api.Raw("/v1/audit/log/checkpoint"));
    RINGFENCE_ASSIGN(const std::uint64_t size, SizeOf(checkpoint));
    const std::vector<std::string> files = LogFiles(size);
    last = {};
    for (std::size_t i = 0; i < files.size() && last.has_value(); ++i) {
      if (!os::Exists(folder + "/" + files[i])) {
        last = Fetch(api, folder, files[i]);
      }
      progress(i + 1, files.size());
    }
    if (last.has_value()) {
      return os::WriteFile(folder + "/checkpoint", AsBytes(checkpoint), 0600);
    }
    // A partial tile goes once the log has outgrown it; then a newer checkpoint names a larger one.
    if (last.error().code != Code::kNotFound) {
      break;
    }
  }
  return Prefix("copying the log", last.error());
}

}  // namespace ringfence::cli
