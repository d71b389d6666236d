// Reads a NetworkRule; declared in policy/draft.h.

#include <algorithm>

#include "policy/draft.h"

namespace ringfence::policy {
namespace {

using wire::YamlReader;
using wire::YamlText;

constexpr std::size_t kRuleNameBytesMax = 48;

DraftTenantRef ReadTenantField(YamlReader& reader, std::string_view field, const YamlText& text) {
  Result<model::TenantPath> path = model::TenantPath::Create(text.text);
  if (!path.has_value()) {
    reader.Problem(field, text.line, path.error().message, path.error().hint);
    return {std::nullopt, text.line};
  }
  return {std::move(path).value(), text.line};
}

void ReadCidr(YamlReader& to, const YamlText& text, DraftNetworkRule& rule) {
  const auto network = model::Ipv4Network::Parse(text.text);
  if (!network.has_value()) {
    to.Problem("cidr", text.line, network.error().message, network.error().hint);
    return;
  }
  for (const model::Ipv4Network& never : model::NeverReachable()) {
    if (never.Contains(*network)) {
      to.Problem("cidr", text.line,
                 network->text() + " lies in " + never.text() + ", which no rule opens",
                 "this machine, link-local (metadata services), multicast and reserved addresses "
                 "stay closed");
      return;
    }
  }
  rule.target = NetworkTarget::kCidr;
  rule.to_cidr = *network;
}

// Whether a name may stand for an address of a private network.
void ReadPrivate(YamlReader& to, DraftNetworkRule& rule) {
  const auto text = to.TextIfGiven("private");
  if (!text) {
    return;
  }
  if (rule.target != NetworkTarget::kName) {
    to.Problem("private", text->line, "is for rules to a name", "remove it");
  } else if (text->text != "true" && text->text != "false") {
    to.Problem("private", text->line, "\"" + text->text + "\" is neither true nor false",
               "write true where the name stands for addresses of your own networks");
  } else {
    rule.allow_private = text->text == "true";
  }
}

void ReadTarget(const wire::YamlNode* node, YamlReader& to, DraftNetworkRule& rule) {
  const auto tenant = to.TextIfGiven("tenant");
  const auto cidr = to.TextIfGiven("cidr");
  const auto name = to.TextIfGiven("name");
  const auto lease = to.TextIfGiven("lease");
  const int given = (tenant ? 1 : 0) + (cidr ? 1 : 0) + (name ? 1 : 0) + (lease ? 1 : 0);
  if (given != 1) {
    // A field of another name is said by Finish.
    if (to.is_map() && (given != 0 || node->members.empty())) {
      to.Problem("", to.line(), given == 0 ? "names nobody" : "names more than one",
                 "write exactly one of tenant, cidr, name and lease; several are several rules");
    }
  } else if (tenant) {
    rule.to_tenant = ReadTenantField(to, "tenant", *tenant);
    if (rule.to_tenant.path.has_value()) {
      rule.target = NetworkTarget::kTenant;
    }
  } else if (cidr) {
    ReadCidr(to, *cidr, rule);
  } else if (name) {
    if (model::IsDnsName(name->text)) {
      rule.target = NetworkTarget::kName;
      rule.to_name = name->text;
    } else {
      to.Problem("name", name->line, "\"" + name->text + "\" is no DNS name",
                 "write a whole name in small letters, without a dot at the end: pypi.org");
    }
  } else if (lease->text == "own") {
    rule.target = NetworkTarget::kLease;
  } else {
    to.Problem("lease", lease->line, "\"" + lease->text + "\" is not what a rule can name",
               "write own: the other boxes of the same lease");
  }
}

void ReadPorts(YamlReader& spec, DraftNetworkRule& rule) {
  for (const YamlText& text : spec.Texts("ports", 1, kPortsPerRuleMax)) {
    const auto ports = model::PortRange::Parse(text.text);
    if (!ports.has_value()) {
      spec.Problem("ports", text.line, ports.error().message, ports.error().hint);
    } else if (std::find(rule.ports.begin(), rule.ports.end(), *ports) != rule.ports.end()) {
      spec.Problem("ports", text.line, "\"" + text.text + "\" is there twice",
                   "keep one of the two");
    } else {
      rule.ports.push_back(*ports);
    }
  }
  std::sort(rule.ports.begin(), rule.ports.end());
}

// The name becomes part of other systems' names: a label of DNS with room for a prefix.
void CheckRuleName(DraftHead& head, wire::YamlProblems& problems) {
  if (head.name.empty()) {
    return;
  }
  if (head.name.size() > kRuleNameBytesMax || head.name.back() == '-' ||
      head.name.find('.') != std::string::npos) {
    problems.Add({head.source.file, head.name_line, "metadata.name",
                  "\"" + head.name + "\" is no name of a network rule",
                  "use up to " + std::to_string(kRuleNameBytesMax) +
                      " of a-z, 0-9 and '-', with a letter or digit at both ends"});
    head.name.clear();
  }
}

}  // namespace

void ReadNetworkRule(DraftHead head, YamlReader& spec, Draft& draft, wire::YamlProblems& problems) {
  DraftNetworkRule rule;
  CheckRuleName(head, problems);
  rule.head = std::move(head);
  if (const auto from = spec.Text("from")) {
    rule.from = ReadTenantField(spec, "from", *from);
  }
  ReadPorts(spec, rule);
  const wire::YamlNode* const node = spec.Any("to");
  if (spec.is_map()) {
    YamlReader to(node, "spec.to", YamlText{rule.head.source.file, spec.LineOf("to")}, problems);
    ReadTarget(node, to, rule);
    ReadPrivate(to, rule);
    to.Finish();
  }
  draft.network_rules.push_back(std::move(rule));
}

}  // namespace ringfence::policy
