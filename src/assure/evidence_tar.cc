// POSIX ustar, as far as a package needs it.

#include <algorithm>
#include <array>
#include <cstring>

#include "assure/evidence_package.h"

namespace ringfence::assure {
namespace {

constexpr std::size_t kBlock = 512;
constexpr std::size_t kChecksumAt = 148;

using Header = std::array<char, kBlock>;

void Put(Header& header, std::size_t at, std::string_view text) {
  std::copy(text.begin(), text.end(), header.begin() + static_cast<std::ptrdiff_t>(at));
}

// Digits in base eight, with zeros before them and a zero byte after.
void PutOctal(Header& header, std::size_t at, std::size_t width, std::uint64_t value) {
  std::string digits;
  for (std::size_t i = 0; i + 1 < width; ++i) {
    digits.insert(digits.begin(), static_cast<char>('0' + (value & 7U)));
    value >>= 3U;
  }
  Put(header, at, digits);
}

unsigned ChecksumOf(const Header& header) {
  unsigned sum = 0;
  for (std::size_t i = 0; i < header.size(); ++i) {
    const bool own = i >= kChecksumAt && i < kChecksumAt + 8;
    sum += own ? static_cast<unsigned>(' ') : static_cast<unsigned char>(header[i]);
  }
  return sum;
}

Header HeaderOf(const std::string& path, std::size_t size, std::int64_t time_s) {
  Header header{};
  Put(header, 0, path);
  PutOctal(header, 100, 8, 0644);
  PutOctal(header, 108, 8, 0);
  PutOctal(header, 116, 8, 0);
  PutOctal(header, 124, 12, size);
  PutOctal(header, 136, 12, static_cast<std::uint64_t>(std::max<std::int64_t>(0, time_s)));
  header[156] = '0';
  Put(header, 257,
      std::string_view("ustar\0"
                       "00",
                       8));
  PutOctal(header, kChecksumAt, 7, ChecksumOf(header));
  header[kChecksumAt + 7] = ' ';
  return header;
}

Error Wrong(std::size_t at, std::string_view what) {
  return {Code::kCorrupt, "tar, byte " + std::to_string(at) + ": " + std::string(what),
          "`ringfence evidence export` writes what this reads"};
}

std::size_t Padded(std::size_t size) { return (size + kBlock - 1) / kBlock * kBlock; }

}  // namespace

std::string WriteTar(const EvidenceFiles& files, Timestamp when) {
  const std::int64_t time_s = when.time_since_epoch().count() / 1000;
  std::string tar;
  for (const auto& [path, bytes] : files) {
    const Header header = HeaderOf(path, bytes.size(), time_s);
    tar.append(header.data(), header.size());
    tar += bytes;
    tar.resize(Padded(tar.size()), '\0');
  }
  tar.append(2 * kBlock, '\0');
  return tar;
}

Result<EvidenceFiles> ReadTar(std::string_view bytes) {
  EvidenceFiles files;
  std::size_t at = 0;
  while (true) {
    if (bytes.size() - at < kBlock) {
      return Wrong(at, "ends without the two empty blocks of its end");
    }
    Header header{};
    std::memcpy(header.data(), bytes.data() + at, kBlock);
    if (std::all_of(header.begin(), header.end(), [](char c) { return c == '\0'; })) {
      break;
    }
    std::uint64_t size = 0;
    for (std::size_t i = 124; i < 135; ++i) {
      if (header[i] < '0' || header[i] > '7') {
        return Wrong(at, "a size that is no number");
      }
      size = size * 8 + static_cast<std::uint64_t>(header[i] - '0');
    }
    const std::string path(header.data(), strnlen(header.data(), 100));
    if (!IsEvidencePath(path)) {
      return Wrong(at, "a name that no package has");
    }
    const std::int64_t time_s = [&] {
      std::int64_t value = 0;
      for (std::size_t i = 136; i < 147; ++i) {
        value = value * 8 + (header[i] - '0');
      }
      return value;
    }();
    // One form: whatever else a tar can hold is refused with its checksum, owners and modes.
    if (time_s < 0 || HeaderOf(path, size, time_s) != header) {
      return Wrong(at, "a header that no package has (only plain files are taken)");
    }
    at += kBlock;
    if (size > bytes.size() - at || Padded(size) > bytes.size() - at) {
      return Wrong(at, path + " is cut short");
    }
    if (files.size() >= kEvidenceFilesMax ||
        !files.emplace(path, std::string(bytes.substr(at, size))).second) {
      return Wrong(at, path + " is there twice, or there are too many files");
    }
    const std::string_view padding = bytes.substr(at + size, Padded(size) - size);
    if (padding.find_first_not_of('\0') != std::string_view::npos) {
      return Wrong(at, path + " is followed by bytes of nobody");
    }
    at += Padded(size);
  }
  if (bytes.size() - at != 2 * kBlock ||
      bytes.substr(at).find_first_not_of('\0') != std::string_view::npos) {
    return Wrong(at, "more after its end");
  }
  return files;
}

}  // namespace ringfence::assure
