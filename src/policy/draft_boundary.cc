// Reads a Boundary; declared in policy/draft.h.

#include "policy/draft.h"

namespace ringfence::policy {
namespace {

using wire::YamlNode;
using wire::YamlReader;
using wire::YamlText;

constexpr Milliseconds kProvenWithinMin = std::chrono::minutes(1);
constexpr Milliseconds kProvenWithinMax = std::chrono::hours(24 * 366);

DraftTenantRef ReadTenantField(YamlReader& spec, std::string_view field, const YamlText& text) {
  Result<model::TenantPath> path = model::TenantPath::Create(text.text);
  if (!path.has_value()) {
    spec.Problem(field, text.line, path.error().message, path.error().hint);
    return {std::nullopt, text.line};
  }
  return {std::move(path).value(), text.line};
}

void ReadLevel(YamlReader& spec, const YamlText& word, DraftBoundary& boundary) {
  if (word.text == "departments") {
    boundary.scope = BoundaryScope::kDepartments;
  } else if (word.text == "teams") {
    boundary.scope = BoundaryScope::kTeams;
  } else if (word.text == "projects") {
    boundary.scope = BoundaryScope::kProjects;
  } else {
    spec.Problem("between", word.line, "\"" + word.text + "\" is nothing to lie between",
                 "write two tenants in brackets, or departments, teams or projects");
    return;
  }
  boundary.scope_known = true;
}

// Exactly one of between, tenant and classification.
void ReadScope(YamlReader& spec, DraftBoundary& boundary) {
  const YamlNode* const between = spec.Any("between");
  const auto tenant = spec.TextIfGiven("tenant");
  const auto classification = spec.TextIfGiven("classification", kClassificationBytesMax);
  const int given = (between != nullptr ? 1 : 0) + (tenant ? 1 : 0) + (classification ? 1 : 0);
  if (given > 1) {
    spec.Problem("", spec.line(), "names more than one of between, tenant and classification",
                 "keep one; several are several boundaries");
  } else if (tenant) {
    boundary.scope = BoundaryScope::kTenant;
    boundary.a = ReadTenantField(spec, "tenant", *tenant);
    boundary.scope_known = boundary.a.path.has_value();
  } else if (classification) {
    boundary.scope = BoundaryScope::kClassification;
    boundary.classification = classification;
    boundary.scope_known = true;
  } else if (between != nullptr && between->kind == YamlNode::Kind::kText) {
    if (const auto word = spec.Text("between")) {
      ReadLevel(spec, *word, boundary);
    }
  } else if (const auto pair = spec.Texts("between", 2, 2); pair.size() == 2) {
    boundary.a = ReadTenantField(spec, "between", pair[0]);
    boundary.b = ReadTenantField(spec, "between", pair[1]);
    boundary.scope_known = boundary.a.path.has_value() && boundary.b.path.has_value();
  }
}

std::optional<model::IsolationClass> ReadLeast(YamlReader& spec, const YamlText& least) {
  Result<model::IsolationClass> parsed = model::ParseIsolationClass(least.text);
  if (!parsed.has_value()) {
    spec.Problem("least", least.line, parsed.error().message, parsed.error().hint);
  } else if (*parsed == model::IsolationClass::kMps) {
    spec.Problem("least", least.line,
                 "mps keeps no memory private, so it is no boundary between two tenants",
                 "write time or stronger");
  } else {
    return *parsed;
  }
  return std::nullopt;
}

// A field that has one word or is not there.
bool ReadWord(YamlReader& spec, std::string_view field, std::string_view word) {
  const auto text = spec.TextIfGiven(field);
  if (text && text->text != word) {
    spec.Problem(field, text->line, "\"" + text->text + "\" is nothing that can be said here",
                 "write " + std::string(word) + ", or leave it out");
  }
  return text && text->text == word;
}

void ReadProven(YamlReader& spec, DraftBoundary& boundary) {
  const auto text = spec.TextIfGiven("provenWithin");
  if (!text) {
    return;
  }
  const auto time = ParseDuration(text->text);
  if (!time.has_value() || *time < kProvenWithinMin || *time > kProvenWithinMax) {
    spec.Problem("provenWithin", text->line, "\"" + text->text + "\" is no time from 1m to 366d",
                 "write 24h or 30d: how long after `ringfence prove` a node counts as proven");
    return;
  }
  boundary.proven_within = *time;
}

}  // namespace

void ReadBoundary(DraftHead head, YamlReader& spec, Draft& draft) {
  DraftBoundary boundary;
  boundary.head = std::move(head);
  ReadScope(spec, boundary);
  const auto least = spec.TextIfGiven("least");
  if (least) {
    boundary.least = ReadLeast(spec, *least);
  }
  boundary.never_together = ReadWord(spec, "sharing", "never");
  boundary.nvlink_one_tenant = ReadWord(spec, "nvlink", "one-tenant");
  ReadProven(spec, boundary);
  if (boundary.never_together) {
    if (boundary.scope != BoundaryScope::kPair) {
      spec.Problem("sharing", spec.LineOf("sharing"), "is for two tenants that are named",
                   "write between: [A, B]; for everybody else: least: node");
    }
    if (boundary.least.has_value() && *boundary.least != model::IsolationClass::kNode) {
      spec.Problem("least", spec.LineOf("least"),
                   std::string(Name(*boundary.least)) +
                       " contradicts sharing: never, which keeps them on different nodes",
                   "leave it out");
    }
    boundary.least = model::IsolationClass::kNode;
  }
  const bool says = least || boundary.never_together || boundary.nvlink_one_tenant ||
                    spec.Any("provenWithin") != nullptr;
  if (!says && spec.is_map()) {
    (void)spec.Text("least");  // says that it is missing
  }
  draft.boundaries.push_back(std::move(boundary));
}

Boundary BoundaryOf(DraftBoundary&& draft) {
  Boundary boundary;
  boundary.scope = draft.scope;
  boundary.a = draft.a.path.value_or(model::TenantPath::Root());
  boundary.b = draft.b.path.value_or(model::TenantPath::Root());
  boundary.classification = draft.classification.has_value() ? draft.classification->text : "";
  boundary.least = draft.least.value_or(model::IsolationClass::kMps);
  boundary.never_together = draft.never_together;
  boundary.nvlink_one_tenant = draft.nvlink_one_tenant;
  boundary.proven_within = draft.proven_within;
  boundary.name = std::move(draft.head.name);
  boundary.source = std::move(draft.head.source);
  return boundary;
}

}  // namespace ringfence::policy
