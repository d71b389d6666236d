#include "store/event_block.h"

#include <zstd.h>

#include <array>
#include <memory>

#include "base/check.h"

namespace ringfence::store {
namespace {

constexpr std::byte kVersion{1};
constexpr int kLevel = 1;
constexpr std::size_t kRawBytesMax = std::size_t{64} << 20U;
constexpr std::string_view kUnnumbered = "\"sequence\":0";
constexpr std::size_t kTexts = 6;
constexpr std::size_t kHeadBytes = 8 * 4 + 2 * 8;

template <typename Unsigned>
void Put(std::string& to, Unsigned value) {
  for (std::size_t i = 0; i < sizeof(Unsigned); ++i) {
    to += static_cast<char>((value >> (8 * i)) & 0xffU);
  }
}

// Where the 0 is that stands for the number.
std::size_t NumberPlace(std::string_view json) {
  const std::size_t at = json.find(kUnnumbered);
  RINGFENCE_CHECK(at != std::string_view::npos);
  return at + kUnnumbered.size() - 1;
}

class Reader {
 public:
  explicit Reader(std::string_view text) : text_(text) {}
  bool done() const { return text_.empty(); }
  bool Has(std::size_t bytes) const { return text_.size() >= bytes; }
  std::string_view Text(std::size_t bytes) {
    const std::string_view taken = text_.substr(0, bytes);
    text_.remove_prefix(bytes);
    return taken;
  }
  template <typename Unsigned>
  Unsigned Number() {
    const std::string_view bytes = Text(sizeof(Unsigned));
    Unsigned value = 0;
    for (std::size_t i = sizeof(Unsigned); i-- > 0;) {
      value = static_cast<Unsigned>((std::uint64_t{value} << 8U) |
                                    static_cast<unsigned char>(bytes[i]));
    }
    return value;
  }

 private:
  std::string_view text_;
};

Error Damaged() { return Error{Code::kCorrupt, "a block of events is damaged"}; }

Result<std::string> Inflate(ByteView block) {
  if (block.size() < 2 || block[0] != kVersion) {
    return Damaged();
  }
  const ByteView frame = block.subspan(1);
  const unsigned long long size = ZSTD_getFrameContentSize(frame.data(), frame.size());
  if (size == ZSTD_CONTENTSIZE_ERROR || size == ZSTD_CONTENTSIZE_UNKNOWN || size > kRawBytesMax) {
    return Damaged();
  }
  std::string raw(size, '\0');
  const std::size_t got = ZSTD_decompress(raw.data(), raw.size(), frame.data(), frame.size());
  if (ZSTD_isError(got) != 0 || got != raw.size()) {
    return Damaged();
  }
  return raw;
}

Status ReadEvent(Reader& reader, EventRow& row) {
  if (!reader.Has(kHeadBytes)) {
    return Damaged();
  }
  row.class_uid = reader.Number<std::uint32_t>();
  const std::size_t place = reader.Number<std::uint32_t>();
  std::array<std::size_t, kTexts> lengths{};
  std::size_t whole = 0;
  for (std::size_t& length : lengths) {
    length = reader.Number<std::uint32_t>();
    whole += length;
  }
  const std::uint64_t json_bytes = reader.Number<std::uint64_t>();
  row.time = Timestamp(Milliseconds(static_cast<std::int64_t>(reader.Number<std::uint64_t>())));
  if (json_bytes > kRawBytesMax || !reader.Has(whole + json_bytes) || place >= json_bytes) {
    return Damaged();
  }
  for (std::size_t i = 0; i < 5; ++i) {
    *std::array{&row.log, &row.tenant, &row.lease, &row.node, &row.principal}[i] =
        reader.Text(lengths[i]);
  }
  row.gpus = Unspaced(reader.Text(lengths[5]));
  const std::string_view json = reader.Text(json_bytes);
  const std::string number = std::to_string(row.seq);
  row.event.reserve(json.size() + number.size());
  row.event.append(json.substr(0, place)).append(number).append(json.substr(place + 1));
  return {};
}

}  // namespace

std::string Spaced(const std::vector<std::string>& names) {
  std::string text = names.empty() ? "" : " ";
  for (const std::string& name : names) {
    text += name + " ";
  }
  return text;
}

std::vector<std::string> Unspaced(std::string_view text) {
  std::vector<std::string> names;
  while (!text.empty()) {
    const std::size_t space = text.find(' ');
    if (space != 0) {
      names.emplace_back(text.substr(0, space));
    }
    text.remove_prefix(space == std::string_view::npos ? text.size() : space + 1);
  }
  return names;
}

void NumberEvent(EventRow& row, std::int64_t number) {
  row.seq = number;
  row.event.replace(NumberPlace(row.event), 1, std::to_string(number));
}

Bytes PackEvents(const std::vector<EventRow>& rows) {
  RINGFENCE_CHECK(rows.size() <= kBlockEventsMax);
  std::string raw;
  std::size_t bytes = 0;
  for (const EventRow& row : rows) {
    bytes += row.event.size() + 256;
  }
  raw.reserve(bytes);
  for (const EventRow& row : rows) {
    const std::string gpus = Spaced(row.gpus);
    const std::array<std::string_view, kTexts> texts = {row.log,  row.tenant,    row.lease,
                                                        row.node, row.principal, gpus};
    Put(raw, static_cast<std::uint32_t>(row.class_uid));
    Put(raw, static_cast<std::uint32_t>(NumberPlace(row.event)));
    for (const std::string_view text : texts) {
      Put(raw, static_cast<std::uint32_t>(text.size()));
    }
    Put(raw, std::uint64_t{row.event.size()});
    Put(raw, static_cast<std::uint64_t>(row.time.time_since_epoch().count()));
    for (const std::string_view text : texts) {
      raw += text;
    }
    raw += row.event;
  }
  Bytes block(1 + ZSTD_compressBound(raw.size()));
  block[0] = kVersion;
  const std::unique_ptr<ZSTD_CCtx, decltype(&ZSTD_freeCCtx)> context(ZSTD_createCCtx(),
                                                                     &ZSTD_freeCCtx);
  RINGFENCE_CHECK(context != nullptr);
  (void)ZSTD_CCtx_setParameter(context.get(), ZSTD_c_compressionLevel, kLevel);
  (void)ZSTD_CCtx_setParameter(context.get(), ZSTD_c_checksumFlag, 1);
  const std::size_t packed =
      ZSTD_compress2(context.get(), block.data() + 1, block.size() - 1, raw.data(), raw.size());
  RINGFENCE_CHECK(ZSTD_isError(packed) == 0);  // only for want of room, and there is enough
  block.resize(1 + packed);
  return block;
}

Result<std::vector<EventRow>> UnpackEvents(ByteView block, std::int64_t first) {
  RINGFENCE_ASSIGN(const std::string raw, Inflate(block));
  Reader reader(raw);
  std::vector<EventRow> rows;
  while (!reader.done()) {
    if (rows.size() >= kBlockEventsMax) {
      return Damaged();
    }
    EventRow& row = rows.emplace_back();
    row.seq = first + static_cast<std::int64_t>(rows.size()) - 1;
    RINGFENCE_TRY(ReadEvent(reader, row));
  }
  return rows;
}

}  // namespace ringfence::store
