// Evidence from the server's answers.

#include "assure/control_status.h"

namespace ringfence::assure {
namespace {

constexpr std::size_t kProbesMax = 10'000;

const Json* Member(const Json& value, std::string_view name) {
  const JsonObject* const object = value.if_object();
  return object == nullptr ? nullptr : object->if_contains(name);
}

std::string TextOr(const Json& value, std::string_view name) {
  const Json* const member = Member(value, name);
  const auto* const text = member == nullptr ? nullptr : member->if_string();
  return text == nullptr ? std::string() : std::string(text->data(), text->size());
}

bool TrueOr(const Json& value, std::string_view name, bool fallback) {
  const Json* const member = Member(value, name);
  const bool* const truth = member == nullptr ? nullptr : member->if_bool();
  return truth == nullptr ? fallback : *truth;
}

}  // namespace

Status AddProofs(const Json& document, Evidence& evidence) {
  const std::string node = TextOr(document, "node");
  const Json* const probes = Member(document, "probes");
  if (node.empty() || probes == nullptr || !probes->is_object() ||
      probes->get_object().size() > kProbesMax) {
    return Error{Code::kInvalidArgument, "no results of probes: needs \"node\" and \"probes\"",
                 "`ringfence prove --last -o json` prints such a file"};
  }
  // Where it does not say, the GPUs count as simulated: a claim less, not one more.
  const bool simulated = TrueOr(document, "simulated", true);
  evidence.simulated[node] = simulated;
  for (const auto& member : probes->get_object()) {
    const Json& result = member.value();
    const auto time = ParseTime(TextOr(result, "time"));
    if (!time.has_value()) {
      return Prefix("probe " + std::string(member.key()), time.error());
    }
    ProbeEvidence one{.node = node,
                      .result = TextOr(result, "result"),
                      .why = TextOr(result, "why"),
                      .time = *time,
                      .attack = TextOr(result, "attack"),
                      .control = TextOr(result, "control"),
                      .simulated = simulated};
    evidence.probes[std::string(member.key())].push_back(std::move(one));
  }
  return {};
}

Status AddAuditItems(const JsonArray& items, Evidence& evidence) {
  for (const Json& item : items) {
    const Json* const entry = Member(item, "entry");
    const Json* const index = Member(item, "index");
    if (entry == nullptr || index == nullptr || !index->is_int64()) {
      return Error{Code::kInvalidArgument, "an audit item without index or entry"};
    }
    const auto time = ParseTime(TextOr(*entry, "time"));
    if (!time.has_value()) {
      return Prefix("audit entry " + std::to_string(index->get_int64()), time.error());
    }
    const std::string action = TextOr(*entry, "action");
    const Json* const gpus = Member(*entry, "gpus");
    if (action.ends_with(".scrub") &&
        (gpus == nullptr || !gpus->is_array() || gpus->get_array().empty())) {
      continue;  // of a lease without GPUs: nothing was scrubbed
    }
    const Json* const actor = Member(*entry, "actor");
    AuditEvidence& newest = evidence.audit[action];
    ++newest.count;
    // An entry that is proven says more than a newer one that is not yet.
    const bool proven = TrueOr(item, "proven", false);
    if (newest.count == 1 || (proven && !newest.proven) ||
        (proven == newest.proven && index->get_int64() > newest.index)) {
      newest.index = index->get_int64();
      newest.time = *time;
      newest.proven = proven;
      newest.node = TextOr(*entry, "node");
      newest.principal = actor == nullptr ? "" : TextOr(*actor, "principal");
    }
  }
  return {};
}

}  // namespace ringfence::assure
