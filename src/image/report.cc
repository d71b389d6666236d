#include "image/report.h"

#include <algorithm>

#include "base/encoding.h"
#include "crypto/sha256.h"
#include "image/reference.h"
#include "os/tree.h"

namespace ringfence::image {
namespace {

constexpr std::int64_t kCountMost = std::int64_t{1} << 53U;

std::string DigestOf(std::string_view text) {
  return "sha256:" + Hex(crypto::Sha256(AsBytes(text)));
}

JsonArray ToArray(const std::vector<std::string>& texts) {
  JsonArray array;
  for (const std::string& text : texts) {
    array.emplace_back(text);
  }
  return array;
}

}  // namespace

bool IsVariable(std::string_view name) {
  return !name.empty() && name.size() <= 128 && !(name[0] >= '0' && name[0] <= '9') &&
         std::all_of(name.begin(), name.end(), [](char c) {
           return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                  c == '_';
         });
}

Json ReportToJson(const Report& report) {
  JsonArray environment;
  for (const auto& [name, value] : report.environment) {
    environment.push_back(JsonObject{{"name", name}, {"value", value}});
  }
  return JsonObject{{"digest", report.digest},
                    {"document", Base64(AsBytes(report.document))},
                    {"names", ToArray(report.names)},
                    {"environment", std::move(environment)},
                    {"command", ToArray(report.command)},
                    {"working_folder", report.working_folder},
                    {"tree_digest", report.tree_digest},
                    {"layers", static_cast<std::int64_t>(report.layers)},
                    {"entries", static_cast<std::int64_t>(report.entries)},
                    {"bytes", static_cast<std::int64_t>(report.bytes)},
                    {"privileged_bits", static_cast<std::int64_t>(report.privileged_bits)}};
}

Result<Report> ReportFromJson(const Json& json) {
  RINGFENCE_ASSIGN(auto reader, JsonReader::Open(json, "image"));
  const auto bad = [](const char* what) {
    return Error{Code::kCorrupt, std::string("the worker's report: ") + what};
  };
  Report report;
  RINGFENCE_ASSIGN(report.digest, reader.String("digest", 80));
  RINGFENCE_ASSIGN(const std::string document, reader.String("document", 2 * kJsonBytesMax));
  RINGFENCE_ASSIGN(const Bytes bytes, FromBase64(document));
  report.document = AsText(bytes);
  RINGFENCE_ASSIGN(report.names, reader.Strings("names", kNamesMax, kReferenceBytesMax));
  RINGFENCE_ASSIGN(const auto environment, reader.Array("environment", kEnvironmentMax));
  for (const Json* one : environment) {
    RINGFENCE_ASSIGN(auto fields, JsonReader::Open(*one, "image.environment"));
    RINGFENCE_ASSIGN(std::string name, fields.String("name", 128));
    RINGFENCE_ASSIGN(std::string value, fields.String("value", kEnvironmentBytesMax));
    RINGFENCE_TRY(fields.Finish());
    if (!IsVariable(name) || value.find('\0') != std::string::npos) {
      return bad("a variable that is none");
    }
    report.environment.emplace_back(std::move(name), std::move(value));
  }
  RINGFENCE_ASSIGN(report.command,
                   reader.Strings("command", 2 * kCommandWordsMax, kEnvironmentBytesMax));
  RINGFENCE_ASSIGN(report.working_folder, reader.String("working_folder", kTextBytesMax));
  RINGFENCE_ASSIGN(report.tree_digest, reader.String("tree_digest", 80));
  for (auto [name, into] : {std::pair("layers", &report.layers),
                            {"entries", &report.entries},
                            {"bytes", &report.bytes},
                            {"privileged_bits", &report.privileged_bits}}) {
    RINGFENCE_ASSIGN(const std::int64_t value, reader.Int(name, 0, kCountMost));
    *into = static_cast<std::uint64_t>(value);
  }
  RINGFENCE_TRY(reader.Finish());
  if (!IsDigest(report.digest) || !IsDigest(report.tree_digest) ||
      DigestOf(report.document) != report.digest) {
    return bad("its manifest does not have its digest");
  }
  for (const std::string& name : report.names) {
    RINGFENCE_TRY(ParseReference(name));
  }
  if (!report.working_folder.empty() &&
      (report.working_folder[0] != '/' ||
       !os::CheckTreePath(report.working_folder.substr(1), {}).has_value())) {
    return bad("its working folder is no path");
  }
  return report;
}

}  // namespace ringfence::image
