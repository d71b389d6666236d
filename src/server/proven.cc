#include "server/proven.h"

#include <algorithm>

namespace ringfence::server {
namespace {

constexpr const char* kClass = "gpu";

const JsonObject* ObjectAt(const JsonObject& object, const char* name) {
  const Json* const found = object.if_contains(name);
  return found == nullptr ? nullptr : found->if_object();
}

std::string TextAt(const JsonObject& object, const char* name) {
  const Json* const found = object.if_contains(name);
  const auto* const text = found == nullptr ? nullptr : found->if_string();
  return text == nullptr ? "" : std::string(text->data(), text->size());
}

bool IsAboutClass(const JsonObject& probe) {
  const Json* const found = probe.if_contains("classes");
  const JsonArray* const classes = found == nullptr ? nullptr : found->if_array();
  return classes != nullptr &&
         std::find(classes->begin(), classes->end(), Json(kClass)) != classes->end();
}

}  // namespace

Proven ProvenOf(const JsonObject& document) {
  Proven proven;
  const JsonObject* const classes = ObjectAt(document, "classes");
  const JsonObject* const sum = classes == nullptr ? nullptr : ObjectAt(*classes, kClass);
  const JsonObject* const probes = ObjectAt(document, "probes");
  if (sum == nullptr || probes == nullptr || probes->empty()) {
    return proven;
  }
  proven.grade = TextAt(*sum, "grade");
  if (proven.grade != "held") {
    return proven;
  }
  for (const auto& member : *probes) {
    const JsonObject* const probe = member.value().if_object();
    if (probe == nullptr || !IsAboutClass(*probe) || TextAt(*probe, "result") != "held") {
      continue;
    }
    const auto time = ParseTime(TextAt(*probe, "time"));
    if (!time.has_value()) {
      return {};
    }
    proven.time = std::min(proven.time.value_or(*time), *time);
  }
  return proven;
}

std::string LeakTimeOf(const JsonObject& document, model::IsolationClass isolation) {
  const JsonObject* const classes = ObjectAt(document, "classes");
  const JsonObject* const sum =
      classes == nullptr ? nullptr : ObjectAt(*classes, std::string(Name(isolation)).c_str());
  return sum != nullptr && TextAt(*sum, "grade") == "leaked" ? TextAt(document, "time") : "";
}

}  // namespace ringfence::server
