#include "assure/baseline.h"

#include <algorithm>

#include "crypto/dsse.h"

namespace ringfence::assure {
namespace {

constexpr std::string_view kType = "application/vnd.ringfence.baseline.v1+json";
constexpr std::size_t kValueMax = 512;

}  // namespace

std::string SignBaseline(const Baseline& baseline, const crypto::SigningKey& key) {
  JsonObject facts;
  for (const auto& [name, value] : baseline.facts) {
    facts[name] = value;
  }
  const Json payload = JsonObject{
      {"node", baseline.node}, {"when", FormatTime(baseline.when)}, {"facts", std::move(facts)}};
  return crypto::SignEnvelope(key, kType, CanonicalJson(payload)) + "\n";
}

Result<Baseline> OpenBaseline(std::string_view signed_text, const crypto::PublicKey& key) {
  if (signed_text.ends_with('\n')) {
    signed_text.remove_suffix(1);
  }
  RINGFENCE_ASSIGN(const std::string payload, crypto::OpenEnvelope(key, kType, signed_text));
  RINGFENCE_ASSIGN(const Json json, ParseJson(payload, crypto::kEnvelopeBytesMax));
  RINGFENCE_ASSIGN(auto reader, JsonReader::Open(json));
  Baseline baseline;
  RINGFENCE_ASSIGN(baseline.node, reader.String("node", 256));
  RINGFENCE_ASSIGN(const std::string when, reader.String("when", 40));
  RINGFENCE_ASSIGN(baseline.when, ParseTime(when));
  RINGFENCE_ASSIGN(const Json* facts, reader.Any("facts"));
  RINGFENCE_TRY(reader.Finish());
  const JsonObject* object = facts->if_object();
  if (object == nullptr || object->size() > kBaselineFactsMax) {
    return Error{Code::kCorrupt, "facts: a map of at most 2000"};
  }
  for (const auto& member : *object) {
    const auto* text = member.value().if_string();
    if (text == nullptr || text->size() > kValueMax) {
      return Error{Code::kCorrupt, "facts." + std::string(member.key()) + ": no text"};
    }
    baseline.facts.emplace(std::string(member.key()), std::string(text->data(), text->size()));
  }
  return baseline;
}

std::string Drift::what() const {
  return was.empty() ? "new: " + is : is.empty() ? "gone: was " + was : was + " became " + is;
}

std::vector<Drift> CompareBaseline(const BaselineFacts& recorded, const BaselineFacts& now,
                                   const std::vector<std::string>& ignored) {
  std::vector<Drift> drifts;
  const auto note = [&](const std::string& fact, const std::string& was, const std::string& is) {
    if (was != is && std::none_of(ignored.begin(), ignored.end(), [&](const std::string& pattern) {
          return GlobMatches(pattern, fact);
        })) {
      drifts.push_back({fact, was, is});
    }
  };
  for (const auto& [fact, was] : recorded) {
    const auto is = now.find(fact);
    note(fact, was, is == now.end() ? "" : is->second);
  }
  for (const auto& [fact, is] : now) {
    if (!recorded.contains(fact)) {
      note(fact, "", is);
    }
  }
  std::stable_sort(drifts.begin(), drifts.end(),
                   [](const Drift& a, const Drift& b) { return a.fact < b.fact; });
  return drifts;
}

}  // namespace ringfence::assure
