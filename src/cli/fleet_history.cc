#include "cli/fleet_history.h"

#include <algorithm>
#include <iterator>
#include <map>

#include "cli/fields.h"

namespace ringfence::cli {
namespace {

constexpr std::size_t kNodesMax = 10'000;

Result<Timestamp> TimeAt(const Json& value, std::string_view name) {
  auto time = ParseTime(TextOf(value, name));
  if (!time.has_value()) {
    return Error{Code::kInternal,
                 "the server's answer has no time in \"" + std::string(name) + "\""};
  }
  return *time;
}

using Spans = std::map<std::string, std::vector<DriverSpan>>;

Status AddInventories(Api& api, Spans& nodes) {
  RINGFENCE_ASSIGN(
      const JsonArray items,
      api.List("/v1/audit/entries", {{"order", "newest"}, {"action", "node.inventory"}}, kListMax));
  for (auto item = items.rbegin(); item != items.rend(); ++item) {
    const Json* const entry = Field(*item, "entry");
    const Json* const detail = entry == nullptr ? nullptr : Field(*entry, "detail");
    if (detail == nullptr) {
      continue;
    }
    RINGFENCE_ASSIGN(const Timestamp when, TimeAt(*entry, "time"));
    const std::string version = TextOf(*detail, "driver");
    auto& spans = nodes[TextOf(*entry, "node")];
    if (!spans.empty() && spans.back().version == version) {
      continue;
    }
    if (!spans.empty()) {
      spans.back().span.to = when;
    }
    spans.push_back(
        {TextOf(*entry, "node"), version, BoolOf(*detail, "simulated"), {when, std::nullopt}});
  }
  return {};
}

Result<Span> SpanOf(const Json& lease) {
  Span span;
  RINGFENCE_ASSIGN(span.from, TimeAt(lease, "created"));
  for (const Json& step : ArrayOf(lease, "steps")) {
    if (TextOf(step, "state") == "placed") {
      RINGFENCE_ASSIGN(span.from, TimeAt(step, "time"));
    }
  }
  const std::string state = TextOf(lease, "state");
  if (state == "closed" || state == "quarantined") {
    RINGFENCE_ASSIGN(span.to,
                     TimeAt(lease, Field(lease, "ended") != nullptr ? "ended" : "updated"));
  }
  return span;
}

}  // namespace

Result<std::vector<DriverSpan>> DriverSpans(Api& api) {
  Spans nodes;
  RINGFENCE_TRY(AddInventories(api, nodes));
  RINGFENCE_ASSIGN(const JsonArray known, api.List("/v1/nodes", {}, kNodesMax));
  for (const Json& node : known) {
    const std::string name = TextOf(node, "name");
    const std::string version = TextOf(node, "driver_version");
    if (!version.empty() && nodes[name].empty()) {
      RINGFENCE_ASSIGN(const Timestamp joined, TimeAt(node, "joined"));
      nodes[name].push_back({name, version, BoolOf(node, "simulated"), {joined, std::nullopt}});
    }
  }
  std::vector<DriverSpan> all;
  for (auto& [name, spans] : nodes) {
    std::move(spans.begin(), spans.end(), std::back_inserter(all));
  }
  return all;
}

Result<std::vector<LeaseSpan>> LeaseSpans(Api& api) {
  RINGFENCE_ASSIGN(const JsonArray leases, api.List("/v1/leases", {}, kListMax));
  std::vector<LeaseSpan> all;
  for (const Json& lease : leases) {
    const std::string node = TextOf(lease, "node");
    const Json* const request = Field(lease, "request");
    if (node.empty() || request == nullptr || Field(*request, "probe") != nullptr) {
      continue;
    }
    RINGFENCE_ASSIGN(const Span span, SpanOf(lease));
    all.push_back({TextOf(lease, "id"), TextOf(*request, "tenant"), node, span});
  }
  if (leases.size() == kListMax) {
    return Error{Code::kExhausted, "there are more than " + std::to_string(kListMax) + " leases",
                 "an answer that leaves out the oldest would be wrong"};
  }
  return all;
}

}  // namespace ringfence::cli
