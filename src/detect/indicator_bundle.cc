// STIX 2.1 bundles: indicators with what is said about them, and the techniques they point to.

#include <algorithm>
#include <charconv>
#include <map>
#include <unordered_map>

#include "detect/indicator.h"
#include "os/file.h"

namespace ringfence::detect {
namespace {

std::string_view Text(const JsonObject& object, std::string_view name) {
  const Json* value = object.if_contains(name);
  return value != nullptr && value->is_string() ? std::string_view(value->get_string())
                                                : std::string_view();
}

bool IsTrue(const JsonObject& object, std::string_view name) {
  const Json* value = object.if_contains(name);
  return value != nullptr && value->is_bool() && value->get_bool();
}

// "T1496.001" of an attack-pattern's references.
std::string TechniqueOf(const JsonObject& object) {
  const Json* references = object.if_contains("external_references");
  if (references == nullptr || !references->is_array()) {
    return {};
  }
  for (const Json& reference : references->get_array()) {
    if (reference.is_object() &&
        Text(reference.get_object(), "source_name").starts_with("mitre-")) {
      return std::string(Text(reference.get_object(), "external_id"));
    }
  }
  return {};
}

class BundleReader {
 public:
  explicit BundleReader(const std::string& path) : path_(path) {}

  Result<IndicatorFile> Read(const Json& json) {
    const Json* objects = json.is_object() ? json.get_object().if_contains("objects") : nullptr;
    if (objects == nullptr || !objects->is_array() || Text(json.get_object(), "type") != "bundle") {
      return Error{Code::kInvalidArgument, path_ + " is not a STIX bundle",
                   "a bundle is {\"type\": \"bundle\", \"id\": ..., \"objects\": [...]}"};
    }
    const JsonArray& items = objects->get_array();
    for (std::size_t i = 0; i < items.size(); ++i) {
      Look(items[i], i);
    }
    for (std::size_t i = 0; i < items.size(); ++i) {
      const bool one = items[i].is_object();
      if (one && Text(items[i].get_object(), "type") == "indicator") {
        AddIndicator(items[i].get_object(), i);
      }
    }
    return std::move(file_);
  }

 private:
  std::string Where(std::size_t index, std::string_view member) const {
    return path_ + ": objects[" + std::to_string(index) + "]" +
           (member.empty() ? "" : "." + std::string(member));
  }

  // First everything that indicators refer to; an object may come after what names it.
  void Look(const Json& item, std::size_t index) {
    if (!item.is_object()) {
      file_.Add({Where(index, ""), "is not an object"});
      return;
    }
    const JsonObject& object = item.get_object();
    const std::string_view type = Text(object, "type");
    const std::string_view id = Text(object, "id");
    if (type.empty()) {
      file_.Add({Where(index, "type"), "is missing"});
    } else if (!id.starts_with(std::string(type) + "--")) {
      file_.Add({Where(index, "id"),
                 "is missing, or does not begin with \"" + std::string(type) + "--\""});
    } else if (type == "identity") {
      names_.emplace(id, Text(object, "name"));
    } else if (type == "attack-pattern") {
      if (std::string technique = TechniqueOf(object);
          !technique.empty() && !IsTrue(object, "revoked")) {
        techniques_.emplace(id, technique);
        file_.techniques.push_back({technique, std::string(Text(object, "name"))});
      }
    } else if (type == "relationship" && Text(object, "relationship_type") == "indicates") {
      indicates_.emplace(Text(object, "source_ref"), Text(object, "target_ref"));
    }
  }

  bool Time(const JsonObject& object, std::string_view name, std::size_t index, bool required,
            std::optional<Moment>& into) {
    const Json* value = object.if_contains(name);
    if (value == nullptr && !required) {
      return true;
    }
    into = value != nullptr && value->is_string()
               ? ParseMoment(std::string_view(value->get_string()))
               : std::nullopt;
    if (!into) {
      file_.Add({Where(index, name), value == nullptr ? "is missing" : "is not a time in UTC"});
    }
    return into.has_value();
  }

  void AddIndicator(const JsonObject& object, std::size_t index) {
    const std::string_view language = Text(object, "pattern_type");
    if (IsTrue(object, "revoked") || (!language.empty() && language != "stix")) {
      ++file_.skipped;
      return;
    }
    Indicator indicator;
    indicator.id = Text(object, "id");
    indicator.name = Text(object, "name");
    indicator.value = Text(object, "pattern");
    const auto parsed = ParsePattern(indicator.value);
    if (!parsed.has_value()) {
      file_.Add({Where(index, "pattern"),
                 indicator.value.empty() ? "is missing" : parsed.error().message});
      return;
    }
    if (!Time(object, "valid_from", index, true, indicator.valid_from) ||
        !Time(object, "valid_until", index, false, indicator.valid_until)) {
      return;
    }
    if (const Json* confidence = object.if_contains("confidence")) {
      if (!confidence->is_int64() || confidence->get_int64() < 0 || confidence->get_int64() > 100) {
        file_.Add({Where(index, "confidence"), "is not a number from 0 to 100"});
        return;
      }
      indicator.confidence = static_cast<int>(confidence->get_int64());
    }
    const auto name = names_.find(Text(object, "created_by_ref"));
    indicator.source = name != names_.end() ? name->second : path_;
    const auto [first, last] = indicates_.equal_range(Text(object, "id"));
    for (auto at = first; at != last; ++at) {
      if (const auto technique = techniques_.find(at->second); technique != techniques_.end()) {
        indicator.techniques.push_back(technique->second);
      }
    }
    std::sort(indicator.techniques.begin(), indicator.techniques.end());
    file_.indicators.push_back(std::move(indicator));
  }

  const std::string& path_;
  IndicatorFile file_;
  std::unordered_map<std::string_view, std::string> names_;
  std::unordered_map<std::string_view, std::string> techniques_;
  std::unordered_multimap<std::string_view, std::string_view> indicates_;
};

// base::ParseJson tells the byte; people look for a line.
std::string LineOf(std::string_view text, const std::string& message) {
  constexpr std::string_view kNear = "near byte ";
  const std::size_t at = message.find(kNear);
  std::size_t byte = 0;
  if (at == std::string::npos ||
      std::from_chars(message.data() + at + kNear.size(), message.data() + message.size(), byte)
              .ec != std::errc()) {
    return {};
  }
  const auto lines =
      std::count(text.begin(), text.begin() + static_cast<long>(std::min(byte, text.size())), '\n');
  return ":" + std::to_string(lines + 1);
}

}  // namespace

Result<IndicatorFile> ParseBundle(std::string_view text, const std::string& path) {
  const auto json = ParseJson(text, kIndicatorFileBytesMax);
  if (!json.has_value()) {
    return Prefix(path + LineOf(text, json.error().message), json.error());
  }
  return BundleReader(path).Read(*json);
}

Result<IndicatorFile> ReadIndicators(const std::string& path) {
  RINGFENCE_ASSIGN(const std::string text, os::ReadText(path, kIndicatorFileBytesMax));
  const std::size_t begin = text.find_first_not_of(" \t\r\n");
  const bool bundle = begin != std::string::npos && text[begin] == '{';
  return bundle ? ParseBundle(text, path) : ParseList(text, path);
}

}  // namespace ringfence::detect
