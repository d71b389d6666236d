#include "detect/indicator_json.h"

#include <algorithm>

namespace ringfence::detect {
namespace {

constexpr Kind kKinds[] = {Kind::kPattern, Kind::kIp,   Kind::kDomain,
                           Kind::kUrl,     Kind::kHash, Kind::kEmail};
constexpr int kSure = 80;
constexpr int kLikely = 50;

std::string TimeText(Moment moment) {
  return FormatTime(Timestamp(Milliseconds(moment.us / 1000)));
}

Result<std::optional<Moment>> ReadTime(JsonReader& reader, std::string_view name) {
  RINGFENCE_ASSIGN(const std::string text, reader.StringOr(name, "", 64));
  if (text.empty()) {
    return std::optional<Moment>();
  }
  const auto time = ParseTime(text);
  if (!time.has_value()) {
    return Error{Code::kInvalidArgument, "\"" + text + "\" is no time",
                 "write it as 2026-11-16T12:00:00Z", reader.Path(name)};
  }
  return std::optional(Moment{time->time_since_epoch().count() * 1000});
}

// A value that is not what its kind says would never match, or match what nobody meant.
Status CheckValue(const Indicator& indicator, const std::string& path) {
  if (indicator.kind == Kind::kPattern) {
    RINGFENCE_TRY(ParsePattern(indicator.value));
    return {};
  }
  std::string usual = indicator.value;
  if (KindOf(usual) != indicator.kind || usual != indicator.value) {
    return Error{Code::kInvalidArgument,
                 "\"" + indicator.value.substr(0, 100) + "\" is no " +
                     std::string(Name(indicator.kind)) + " in its usual form",
                 {},
                 path};
  }
  return {};
}

Severity SeverityOf(int confidence) {
  if (confidence < 0) {
    return Severity::kMedium;
  }
  if (confidence >= kSure) {
    return Severity::kHigh;
  }
  return confidence >= kLikely ? Severity::kMedium : Severity::kLow;
}

}  // namespace

JsonObject IndicatorToJson(const Indicator& indicator) {
  JsonObject json{{"id", indicator.id},
                  {"kind", std::string(Name(indicator.kind))},
                  {"value", indicator.value},
                  {"source", indicator.source}};
  if (!indicator.name.empty()) {
    json["name"] = indicator.name;
  }
  if (indicator.confidence >= 0) {
    json["confidence"] = indicator.confidence;
  }
  if (indicator.valid_from) {
    json["valid_from"] = TimeText(*indicator.valid_from);
  }
  if (indicator.valid_until) {
    json["valid_until"] = TimeText(*indicator.valid_until);
  }
  if (!indicator.techniques.empty()) {
    JsonArray techniques;
    for (const std::string& technique : indicator.techniques) {
      techniques.emplace_back(technique);
    }
    json["techniques"] = std::move(techniques);
  }
  return json;
}

Result<Indicator> IndicatorFromJson(const Json& json) {
  Indicator indicator;
  RINGFENCE_ASSIGN(auto reader, JsonReader::Open(json));
  RINGFENCE_ASSIGN(indicator.id, reader.String("id", 1024));
  RINGFENCE_ASSIGN(const std::string kind, reader.String("kind", 32));
  RINGFENCE_ASSIGN(indicator.value, reader.String("value", kIndicatorValueBytesMax));
  RINGFENCE_ASSIGN(indicator.source, reader.StringOr("source", "", 1024));
  RINGFENCE_ASSIGN(indicator.name, reader.StringOr("name", "", 1024));
  RINGFENCE_ASSIGN(const std::int64_t confidence, reader.IntOr("confidence", -1, -1, 100));
  indicator.confidence = static_cast<int>(confidence);
  RINGFENCE_ASSIGN(indicator.valid_from, ReadTime(reader, "valid_from"));
  RINGFENCE_ASSIGN(indicator.valid_until, ReadTime(reader, "valid_until"));
  if (reader.Has("techniques")) {
    RINGFENCE_ASSIGN(indicator.techniques, reader.Strings("techniques", 64, 64));
  }
  RINGFENCE_TRY(reader.Finish());
  const auto* const known = std::find_if(std::begin(kKinds), std::end(kKinds),
                                         [&](Kind one) { return Name(one) == kind; });
  if (known == std::end(kKinds)) {
    return Error{Code::kInvalidArgument,
                 "\"" + kind + "\" is no kind of indicator",
                 {},
                 reader.Path("kind")};
  }
  indicator.kind = *known;
  RINGFENCE_TRY(CheckValue(indicator, reader.Path("value")));
  return indicator;
}

Match MatchOf(const Indicator& indicator) {
  Match match;
  const std::string what = indicator.kind == Kind::kPattern && !indicator.name.empty()
                               ? indicator.name.substr(0, 200)
                               : indicator.value.substr(0, 200);
  match.rule = "indicator/" + std::string(Name(indicator.kind)) + "/" + what;
  match.title = "Known-bad " + std::string(Name(indicator.kind)) + ": " + what;
  match.description = indicator.source + " (" + indicator.id + ") says that this is bad" +
                      (indicator.name.empty() ? "." : ": " + indicator.name + ".");
  match.severity = SeverityOf(indicator.confidence);
  match.false_positives = {"an address or name that is shared with harmless use",
                           "an indicator that is old"};
  for (std::string technique : indicator.techniques) {
    std::transform(technique.begin(), technique.end(), technique.begin(),
                   [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; });
    match.tags.push_back("attack." + technique);
  }
  return match;
}

}  // namespace ringfence::detect
