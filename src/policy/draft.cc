#include "policy/draft.h"

#include <algorithm>

#include "base/closest.h"
#include "policy/roles.h"

namespace ringfence::policy {
namespace {

using wire::YamlNode;
using wire::YamlProblems;
using wire::YamlReader;
using wire::YamlText;

constexpr std::size_t kDisplayNameBytesMax = 128;
constexpr std::size_t kActionsPerRoleMax = 64;
constexpr std::size_t kApartFromMax = 16;
constexpr std::string_view kKinds[] = {"Tenant", "Principal",   "Role",    "Binding",   "Boundary",
                                       "Quota",  "NetworkRule", "BoxRule", "Exception", "Case"};

bool IsAlphanumeric(char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9'); }

bool IsNameOf(std::string_view name, std::string_view marks) {
  return !name.empty() && name.size() <= kNameBytesMax && IsAlphanumeric(name.front()) &&
         std::all_of(name.begin(), name.end(), [&](char c) {
           return IsAlphanumeric(c) || marks.find(c) != std::string_view::npos;
         });
}

std::string DidYouMean(const std::optional<std::string>& closest, std::string otherwise) {
  return closest.has_value() ? "did you mean \"" + *closest + "\"?" : std::move(otherwise);
}

// Characters that make a terminal or a page show another text than is there: C1 controls, marks of
// direction, separators of lines. `text` is UTF-8.
bool HasInvisibles(std::string_view text) {
  for (std::size_t i = 0; i + 1 < text.size(); ++i) {
    const auto at = [&](std::size_t k) {
      return k < text.size() ? static_cast<unsigned char>(text[k]) : 0U;
    };
    const bool c1 = at(i) == 0xc2 && at(i + 1) < 0xa0;
    const bool general =
        at(i) == 0xe2 && at(i + 1) == 0x80 &&
        ((at(i + 2) >= 0x8b && at(i + 2) <= 0x8f) || (at(i + 2) >= 0xa8 && at(i + 2) <= 0xae));
    const bool isolate = at(i) == 0xe2 && at(i + 1) == 0x81 && at(i + 2) >= 0xa0;
    const bool mark = at(i) == 0xef && at(i + 1) == 0xbb && at(i + 2) == 0xbf;
    if (c1 || general || isolate || mark) {
      return true;
    }
  }
  return text.find_first_of("\n\t") != std::string_view::npos;
}

std::string ReadDisplayName(YamlReader& spec) {
  const auto text = spec.TextIfGiven("displayName", kDisplayNameBytesMax);
  if (!text.has_value()) {
    return {};
  }
  if (HasInvisibles(text->text)) {
    spec.Problem("displayName", text->line, "must be one line of visible text",
                 "leave out control and direction marks");
    return {};
  }
  return text->text;
}

std::optional<model::TenantPath> ToPath(YamlReader& reader, std::string_view field,
                                        const YamlText& text) {
  Result<model::TenantPath> path = model::TenantPath::Create(text.text);
  if (!path.has_value()) {
    reader.Problem(field, text.line, path.error().message, path.error().hint);
    return std::nullopt;
  }
  return std::move(path).value();
}

DraftTenantRef ReadTenantRef(YamlReader& spec, bool root_allowed,
                             std::string_view field = "tenant") {
  const auto text = spec.Text(field);
  if (!text.has_value()) {
    return {};
  }
  if (root_allowed && text->text == "/") {
    return {model::TenantPath::Root(), text->line};
  }
  return {ToPath(spec, field, *text), text->line};
}

void ReadTenant(DraftHead head, YamlReader& metadata, YamlReader& spec, Draft& draft) {
  DraftTenant tenant{std::move(head), std::nullopt, ReadDisplayName(spec), {}};
  if (const auto text = spec.TextIfGiven("classification", kClassificationBytesMax)) {
    if (IsNameOf(text->text, "-")) {
      tenant.classification = text->text;
    } else {
      spec.Problem("classification", text->line, "\"" + text->text + "\" is no classification",
                   "use up to 40 of a-z, 0-9 and '-', such as restricted");
    }
  }
  if (!tenant.head.name.empty()) {
    tenant.path = ToPath(metadata, "name", YamlText{tenant.head.name, tenant.head.name_line});
  }
  draft.tenants.push_back(std::move(tenant));
}

void ReadPrincipal(DraftHead head, YamlReader& metadata, YamlReader& spec, Draft& draft) {
  DraftPrincipal principal{std::move(head), false, ReadDisplayName(spec)};
  if (const std::string& name = principal.head.name; !name.empty() && !IsPrincipalName(name)) {
    metadata.Problem("name", principal.head.name_line, "\"" + name + "\" is no name of a principal",
                     "use up to 128 of a-z, 0-9 and . _ @ + -, beginning with a letter or digit, "
                     "such as alice@acme.example");
    principal.head.name.clear();
  }
  if (const auto kind = spec.Text("kind")) {
    principal.service = kind->text == "service";
    if (kind->text != "user" && kind->text != "service") {
      spec.Problem("kind", kind->line, "unknown kind of principal \"" + kind->text + "\"",
                   "write user for a person, service for a program");
    }
  }
  draft.principals.push_back(std::move(principal));
}

void ReadRole(DraftHead head, YamlReader& spec, Draft& draft) {
  DraftRole role{std::move(head), {}, {}};
  if (spec.Any("apartFrom") != nullptr) {
    role.apart_from = spec.Texts("apartFrom", 1, kApartFromMax);
  }
  ActionBits seen = 0;
  for (const YamlText& label : spec.Texts("allows", 1, kActionsPerRoleMax)) {
    const auto action = ParseAction(label.text);
    if (!action.has_value()) {
      std::vector<std::string_view> labels;
      for (const Action known : AllActions()) {
        labels.push_back(Name(known));
      }
      spec.Problem(
          "allows", label.line, "unknown action \"" + label.text + "\"",
          DidYouMean(Closest(label.text, labels), "docs/permissions.md lists the actions"));
    } else if ((seen & BitOf(*action)) != 0) {
      spec.Problem("allows", label.line, "the action \"" + label.text + "\" is there twice",
                   "keep one of the two");
    } else {
      seen |= BitOf(*action);
      role.allows.push_back(*action);
    }
  }
  draft.roles.push_back(std::move(role));
}

void ReadBinding(DraftHead head, YamlReader& spec, Draft& draft, YamlProblems& problems) {
  DraftBinding binding{std::move(head), spec.Text("principal"), spec.Text("role"), {}, {}};
  binding.when = ReadCondition(spec, binding.head.source.file, problems);
  binding.tenant = ReadTenantRef(spec, true);
  draft.bindings.push_back(std::move(binding));
}

void ReadQuota(DraftHead head, YamlReader& spec, Draft& draft) {
  DraftQuota quota{std::move(head), ReadTenantRef(spec, false), std::nullopt, spec.LineOf("gpus")};
  if (const auto gpus = spec.Number("gpus", kQuotaGpusMax)) {
    quota.gpus = static_cast<std::uint32_t>(*gpus);
  }
  draft.quotas.push_back(std::move(quota));
}

// Names of what is neither a tenant nor a principal.
void CheckPlainName(DraftHead& head, YamlReader& metadata) {
  if (!head.name.empty() && !IsNameOf(head.name, ".-")) {
    metadata.Problem("name", head.name_line, "\"" + head.name + "\" is no name",
                     "use up to 128 of a-z, 0-9, '.' and '-', beginning with a letter or digit");
    head.name.clear();
  }
}

}  // namespace

bool IsPrincipalName(std::string_view name) { return IsNameOf(name, "._@+-"); }

void ReadDocument(const YamlNode& document, const std::string& file, Draft& draft,
                  YamlProblems& problems) {
  YamlReader top(&document, "", YamlText{file, document.line}, problems);
  if (!top.is_map()) {
    return;
  }
  const auto version = top.Text("apiVersion");
  if (version.has_value() && version->text != kApiVersion) {
    top.Problem("apiVersion", version->line, "unknown version \"" + version->text + "\"",
                "write " + std::string(kApiVersion));
  }
  const auto kind = top.Text("kind");
  const YamlNode* const metadata_node = top.Any("metadata");
  const YamlNode* const spec_node = top.Any("spec");
  top.Finish();
  if (!kind.has_value()) {
    return;  // without it, nothing can be said about the rest
  }
  const std::vector<std::string_view> kinds(std::begin(kKinds), std::end(kKinds));
  if (std::find(kinds.begin(), kinds.end(), kind->text) == kinds.end()) {
    top.Problem("kind", kind->line, "unknown kind \"" + kind->text + "\"",
                DidYouMean(Closest(kind->text, kinds),
                           "the kinds are Tenant, Principal, Role, Binding, Boundary, Quota, "
                           "NetworkRule, BoxRule, Exception, Case"));
    return;
  }
  YamlReader metadata(metadata_node, "metadata", YamlText{file, document.line}, problems);
  DraftHead head{{}, metadata.line(), Source{file, document.line}};
  if (const auto name = metadata.Text("name", kNameBytesMax)) {
    head.name = name->text;
    head.name_line = name->line;
  }
  metadata.Finish();
  YamlReader spec(spec_node, "spec", YamlText{file, document.line}, problems);
  if (kind->text == "Tenant") {
    ReadTenant(std::move(head), metadata, spec, draft);
  } else if (kind->text == "Principal") {
    ReadPrincipal(std::move(head), metadata, spec, draft);
  } else {
    CheckPlainName(head, metadata);
    if (kind->text == "Role") {
      ReadRole(std::move(head), spec, draft);
    } else if (kind->text == "Binding") {
      ReadBinding(std::move(head), spec, draft, problems);
    } else if (kind->text == "Boundary") {
      ReadBoundary(std::move(head), spec, draft);
    } else if (kind->text == "NetworkRule") {
      ReadNetworkRule(std::move(head), spec, draft, problems);
    } else if (kind->text == "BoxRule") {
      ReadBoxRule(std::move(head), ReadTenantRef(spec, true), spec, draft);
    } else if (kind->text == "Case") {
      ReadCase(std::move(head), ReadTenantRef(spec, true, "resource"), spec, draft);
    } else if (kind->text == "Exception") {
      ReadException(std::move(head), ReadTenantRef(spec, false), spec, draft);
    } else {
      ReadQuota(std::move(head), spec, draft);
    }
  }
  spec.Finish();
}

}  // namespace ringfence::policy
