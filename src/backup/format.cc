#include "backup/format.h"

#include <algorithm>

#include "base/encoding.h"

namespace ringfence::backup {
namespace {

constexpr std::size_t kNoteBytesMax = 64 * 1024;
constexpr std::int64_t kCountMax = std::int64_t{1} << 53U;
constexpr std::size_t kColumnsMax = 64;

enum Tag : std::uint8_t { kNull = 0, kInt = 1, kText = 2, kBlob = 3 };

Error Bad(std::string_view what) {
  return Error{Code::kCorrupt, "the backup holds " + std::string(what) + " that is not one"};
}

void AppendSized(Bytes& to, Tag tag, ByteView bytes) {
  to.push_back(std::byte{tag});
  Append(to, PutBigEndian(static_cast<std::uint32_t>(bytes.size())));
  Append(to, bytes);
}

JsonObject AboutObject(const About& about) {
  return {{"format", kFormat},
          {"version", about.version},
          {"schema", about.schema},
          {"created", FormatTime(about.created)},
          {"origin", about.origin},
          {"vkey", about.vkey},
          {"checkpoint", about.checkpoint},
          {"has_output", about.has_output}};
}

Result<About> ReadAbout(JsonReader& reader) {
  RINGFENCE_ASSIGN(const std::int64_t format, reader.Int("format", 0, INT32_MAX));
  if (format != kFormat) {
    return Error{Code::kFailedPrecondition,
                 "the backup's records have format " + std::to_string(format) +
                     ", this version reads " + std::to_string(kFormat),
                 "a later Ringfence wrote it: use that one"};
  }
  About about;
  RINGFENCE_ASSIGN(about.version, reader.String("version", 64));
  RINGFENCE_ASSIGN(const std::int64_t schema, reader.Int("schema", 1, INT32_MAX));
  about.schema = static_cast<int>(schema);
  RINGFENCE_ASSIGN(const std::string created, reader.String("created", 32));
  RINGFENCE_ASSIGN(about.created, ParseTime(created));
  RINGFENCE_ASSIGN(about.origin, reader.String("origin", 512));
  RINGFENCE_ASSIGN(about.vkey, reader.String("vkey", 1024));
  RINGFENCE_ASSIGN(about.checkpoint, reader.String("checkpoint", kNoteBytesMax));
  RINGFENCE_ASSIGN(about.has_output, reader.Bool("has_output"));
  return about;
}

Result<PartFacts> ReadPart(const Json& json) {
  RINGFENCE_ASSIGN(auto reader, JsonReader::Open(json, "parts"));
  PartFacts part;
  RINGFENCE_ASSIGN(part.name, reader.String("name", 32));
  RINGFENCE_ASSIGN(const std::int64_t records, reader.Int("records", 0, kCountMax));
  part.records = static_cast<std::uint64_t>(records);
  RINGFENCE_ASSIGN(const std::int64_t bytes, reader.Int("bytes", 0, kCountMax));
  part.bytes = static_cast<std::uint64_t>(bytes);
  RINGFENCE_ASSIGN(part.sha256, reader.String("sha256", 64));
  RINGFENCE_TRY(reader.Finish());
  return part;
}

}  // namespace

Json AboutToJson(const About& about) { return AboutObject(about); }

Result<About> AboutFromJson(const Json& json) {
  RINGFENCE_ASSIGN(auto reader, JsonReader::Open(json));
  RINGFENCE_ASSIGN(About about, ReadAbout(reader));
  RINGFENCE_TRY(reader.Finish());
  return about;
}

Json ManifestToJson(const Manifest& manifest) {
  JsonObject object = AboutObject(manifest.about);
  JsonArray parts;
  for (const PartFacts& part : manifest.parts) {
    parts.emplace_back(JsonObject{{"name", part.name},
                                  {"records", static_cast<std::int64_t>(part.records)},
                                  {"bytes", static_cast<std::int64_t>(part.bytes)},
                                  {"sha256", part.sha256}});
  }
  object["parts"] = std::move(parts);
  object["log_size"] = static_cast<std::int64_t>(manifest.log_size);
  object["log_root"] = manifest.log_root;
  object["entries"] = static_cast<std::int64_t>(manifest.entries);
  return object;
}

Result<Manifest> ManifestFromJson(const Json& json) {
  RINGFENCE_ASSIGN(auto reader, JsonReader::Open(json));
  Manifest manifest;
  RINGFENCE_ASSIGN(manifest.about, ReadAbout(reader));
  RINGFENCE_ASSIGN(const auto parts, reader.Array("parts", std::size(kParts)));
  for (const Json* part : parts) {
    RINGFENCE_ASSIGN(PartFacts facts, ReadPart(*part));
    manifest.parts.push_back(std::move(facts));
  }
  RINGFENCE_ASSIGN(const std::int64_t size, reader.Int("log_size", 0, kCountMax));
  manifest.log_size = static_cast<std::uint64_t>(size);
  RINGFENCE_ASSIGN(manifest.log_root, reader.String("log_root", 64));
  RINGFENCE_ASSIGN(const std::int64_t entries, reader.Int("entries", 0, kCountMax));
  manifest.entries = static_cast<std::uint64_t>(entries);
  RINGFENCE_TRY(reader.Finish());
  return manifest;
}

Json FileHeadToJson(const FileHead& head) {
  return JsonObject{{"path", head.path}, {"mode", static_cast<std::int64_t>(head.mode)}};
}

Result<FileHead> FileHeadFromJson(const Json& json) {
  RINGFENCE_ASSIGN(auto reader, JsonReader::Open(json));
  FileHead head;
  RINGFENCE_ASSIGN(head.path, reader.String("path", kPathBytesMax));
  RINGFENCE_ASSIGN(const std::int64_t mode, reader.Int("mode", 0, 0777));
  head.mode = static_cast<unsigned>(mode);
  RINGFENCE_TRY(reader.Finish());
  if (!IsPlainPath(head.path)) {
    return Bad("a file name");
  }
  return head;
}

Json TableHeadToJson(const TableHead& head) {
  JsonArray columns;
  for (const std::string& column : head.columns) {
    columns.emplace_back(column);
  }
  return JsonObject{{"table", head.table}, {"columns", std::move(columns)}};
}

Result<TableHead> TableHeadFromJson(const Json& json) {
  RINGFENCE_ASSIGN(auto reader, JsonReader::Open(json));
  TableHead head;
  RINGFENCE_ASSIGN(head.table, reader.String("table", 64));
  RINGFENCE_ASSIGN(head.columns, reader.Strings("columns", kColumnsMax, 64));
  RINGFENCE_TRY(reader.Finish());
  return head;
}

Bytes EncodeRow(const store::Row& row) {
  Bytes bytes;
  for (const store::Value& value : row) {
    if (const auto* number = std::get_if<std::int64_t>(&value)) {
      bytes.push_back(std::byte{kInt});
      Append(bytes, PutBigEndian(static_cast<std::uint64_t>(*number)));
    } else if (const auto* text = std::get_if<std::string>(&value)) {
      AppendSized(bytes, kText, AsBytes(*text));
    } else if (const auto* blob = std::get_if<Bytes>(&value)) {
      AppendSized(bytes, kBlob, *blob);
    } else {
      bytes.push_back(std::byte{kNull});
    }
  }
  return bytes;
}

Result<store::Row> DecodeRow(ByteView bytes, std::size_t columns) {
  store::Row row;
  while (!bytes.empty() && row.size() < columns) {
    const auto tag = std::to_integer<std::uint8_t>(bytes[0]);
    bytes = bytes.subspan(1);
    if (tag == kNull) {
      row.emplace_back(std::monostate{});
    } else if (tag == kInt && bytes.size() >= 8) {
      row.emplace_back(static_cast<std::int64_t>(GetBigEndian<std::uint64_t>(bytes)));
      bytes = bytes.subspan(8);
    } else if ((tag == kText || tag == kBlob) && bytes.size() >= 4 &&
               GetBigEndian<std::uint32_t>(bytes) <= bytes.size() - 4) {
      const ByteView value = bytes.subspan(4, GetBigEndian<std::uint32_t>(bytes));
      bytes = bytes.subspan(4 + value.size());
      if (tag == kText) {
        row.emplace_back(ToText(value));
      } else {
        row.emplace_back(Bytes(value.begin(), value.end()));
      }
    } else {
      return Bad("a row");
    }
  }
  if (!bytes.empty() || row.size() != columns) {
    return Bad("a row");
  }
  return row;
}

bool IsPlainPath(std::string_view path) {
  if (path.empty() || path.size() > kPathBytesMax || path.find('\0') != std::string_view::npos ||
      !IsUtf8(path)) {
    return false;
  }
  for (std::size_t at = 0; at <= path.size();) {
    const std::size_t slash = std::min(path.find('/', at), path.size());
    const std::string_view part = path.substr(at, slash - at);
    if (part.empty() || part.starts_with('.') || part.size() > 255) {
      return false;
    }
    at = slash + 1;
  }
  return true;
}

}  // namespace ringfence::backup
