#include "policy/case.h"

#include <algorithm>

#include "policy/draft.h"
#include "policy/query.h"

namespace ringfence::policy {
namespace {

using wire::YamlReader;
using wire::YamlText;

constexpr std::size_t kContextMax = 16;

std::optional<Timestamp> ReadAt(YamlReader& spec) {
  const auto text = spec.TextIfGiven("at");
  if (!text.has_value()) {
    return std::nullopt;
  }
  const auto time = ParseTimeOrDay(text->text);
  if (!time.has_value()) {
    spec.Problem("at", text->line, "\"" + text->text + "\" is no time",
                 "write it in UTC, as 2026-11-16T08:00:00Z or 2026-11-16");
    return std::nullopt;
  }
  return *time;
}

void ReadGiven(YamlReader& spec, PolicyCase& one) {
  if (spec.Any("context") == nullptr) {
    return;
  }
  for (const YamlText& text : spec.Texts("context", 1, kContextMax)) {
    one.context.push_back(text.text);
  }
  const auto read = ReadContext(one.context, {.at = one.at, .usual = Timestamp()});
  if (!read.has_value()) {
    spec.Problem("context", spec.LineOf("context"), read.error().message, read.error().hint);
  }
}

}  // namespace

void ReadCase(DraftHead head, DraftTenantRef tenant, YamlReader& spec, Draft& draft) {
  DraftCase one{std::move(head), spec.Text("principal"), std::move(tenant), {}};
  if (const auto action = spec.Text("action")) {
    const auto found = FindAction(action->text);
    if (found.has_value()) {
      one.given.query.action = *found;
    } else {
      spec.Problem("action", action->line, found.error().message, found.error().hint);
    }
  }
  one.given.at = ReadAt(spec);
  ReadGiven(spec, one.given);
  if (const auto expect = spec.Text("expect")) {
    one.given.allow = expect->text == "allow";
    if (expect->text != "allow" && expect->text != "deny") {
      spec.Problem("expect", expect->line, "\"" + expect->text + "\" is no answer",
                   "write allow or deny");
    }
  }
  if (const auto rule = spec.TextIfGiven("rule")) {
    one.given.rule = rule->text;
  }
  draft.cases.push_back(std::move(one));
}

CaseResult RunCase(const Policy& policy, const PolicyCase& one, Timestamp now) {
  const auto context = ReadContext(one.context, {.at = one.at, .usual = now});
  if (!context.has_value()) {
    return {false, context.error().message};
  }
  const Explanation answer = Explain(policy, one.query, *context);
  if (answer.allowed != one.allow) {
    return {false, (answer.allowed ? "allowed: " : "denied: ") + answer.reason};
  }
  const bool decided =
      one.rule.empty() || std::any_of(answer.rules.begin(), answer.rules.end(),
                                      [&](const RuleInWords& rule) { return rule.id == one.rule; });
  if (decided) {
    return {true, {}};
  }
  std::string ids;
  for (const RuleInWords& rule : answer.rules) {
    ids += (ids.empty() ? "" : ", ") + rule.id;
  }
  return {false, "the rule " + one.rule + " did not decide, but " + (ids.empty() ? "none" : ids)};
}

}  // namespace ringfence::policy
