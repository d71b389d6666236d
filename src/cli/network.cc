// `ringfence network ...`: the network rules of a policy folder, without a server.

#include "policy/network.h"

#include <algorithm>

#include "base/code.h"
#include "cli/commands.h"
#include "cli/console.h"
#include "cli/settings.h"
#include "cli/text.h"
#include "policy/network_export.h"

namespace ringfence::cli {
namespace {

constexpr int kExitClosed = 3;  // policy denies it
constexpr const char* kNamespace = "ringfence";
constexpr std::size_t kNamespaceBytesMax = 63;

Result<std::unique_ptr<policy::Policy>> LoadPolicy(const Invocation& invocation) {
  std::string folder = invocation.parsed.Argument(0);
  if (folder.empty()) {
    folder = invocation.settings.Text(Setting::kPolicyFolder);
  }
  return policy::Policy::Load(folder);
}

Result<model::TenantPath> TenantIn(const policy::Policy& policy, const std::string& text) {
  RINGFENCE_ASSIGN(model::TenantPath tenant, model::TenantPath::Create(text));
  if (policy.FindTenant(tenant) == nullptr) {
    const auto closest = policy.ClosestTenant(text);
    return Error{Code::kNotFound, "there is no tenant \"" + text + "\" in this policy",
                 closest ? "did you mean \"" + *closest + "\"?" : "ringfence tenant list"};
  }
  return tenant;
}

std::string PortsText(const policy::NetworkRule& rule) {
  std::string text;
  for (const model::PortRange& ports : rule.ports) {
    text += (text.empty() ? "" : ", ") + ports.text();
  }
  return text;
}

JsonObject RuleJson(const policy::NetworkRule& rule) {
  JsonArray ports;
  for (const model::PortRange& range : rule.ports) {
    ports.emplace_back(range.text());
  }
  JsonObject to;
  switch (rule.target) {
    case policy::NetworkTarget::kTenant:
      to["tenant"] = rule.to_tenant.text();
      break;
    case policy::NetworkTarget::kCidr:
      to["cidr"] = rule.to_cidr->text();
      break;
    case policy::NetworkTarget::kName:
      to["name"] = rule.to_name;
      if (rule.allow_private) {
        to["private"] = true;
      }
      break;
    case policy::NetworkTarget::kLease:
      to["lease"] = "own";
      break;
  }
  return JsonObject{{"name", rule.name},
                    {"from", rule.from.text()},
                    {"to", std::move(to)},
                    {"ports", std::move(ports)},
                    {"source", rule.Where()}};
}

Result<int> Show(Invocation& invocation) {
  RINGFENCE_ASSIGN(const auto policy, LoadPolicy(invocation));
  std::vector<const policy::NetworkRule*> rules;
  if (const auto text = invocation.parsed.Value("tenant")) {
    RINGFENCE_ASSIGN(const model::TenantPath tenant, TenantIn(*policy, *text));
    rules = policy::RulesFrom(*policy, tenant);
    for (const policy::NetworkRule* rule : policy::RulesTo(*policy, tenant)) {
      if (std::find(rules.begin(), rules.end(), rule) == rules.end()) {
        rules.push_back(rule);
      }
    }
  } else {
    for (const policy::NetworkRule& rule : policy->network_rules()) {
      rules.push_back(&rule);
    }
  }
  Console& console = invocation.console;
  if (!console.table()) {
    JsonArray list;
    for (const policy::NetworkRule* rule : rules) {
      list.emplace_back(RuleJson(*rule));
    }
    console.Show(list);
    return kExitOk;
  }
  if (rules.empty()) {
    console.Note("no network rules: boxes have no network at all");
    return kExitOk;
  }
  Table table({"RULE", "FROM", "TO", "PORTS", "WRITTEN AT"});
  for (const policy::NetworkRule* rule : rules) {
    table.Add({rule->name, rule->from.text(), rule->To(), PortsText(*rule), rule->Where()});
  }
  table.Print(console);
  return kExitOk;
}

Result<std::string> Needed(const Parsed& parsed, std::string_view option) {
  const auto value = parsed.Value(option);
  if (!value.has_value()) {
    return Error{Code::kInvalidArgument, "--" + std::string(option) + " must be given",
                 "ringfence " + parsed.path + " --help has examples"};
  }
  return *value;
}

Result<int> Check(Invocation& invocation) {
  const Parsed& parsed = invocation.parsed;
  RINGFENCE_ASSIGN(const std::string from, Needed(parsed, "from"));
  RINGFENCE_ASSIGN(const std::string to, Needed(parsed, "to"));
  RINGFENCE_ASSIGN(const std::string port_text, Needed(parsed, "port"));
  const auto port = model::PortRange::Parse(port_text);
  if (!port.has_value()) {
    return Prefix("--port", port.error());
  }
  RINGFENCE_ASSIGN(const auto policy, LoadPolicy(invocation));
  RINGFENCE_ASSIGN(const model::TenantPath tenant, TenantIn(*policy, from));
  RINGFENCE_ASSIGN(const policy::FlowAnswer answer,
                   policy::AskFlow(*policy, policy::FlowQuery{tenant, to, *port}));
  Console& console = invocation.console;
  if (!console.table()) {
    console.Show(JsonObject{{"allowed", answer.allowed}, {"reason", answer.reason}});
  } else {
    console.out() << (answer.allowed ? console.Good("open: ") : console.Bad("closed: "))
                  << Safe(answer.reason) << '\n';
  }
  return answer.allowed ? kExitOk : kExitClosed;
}

bool IsNamespace(std::string_view text) {
  return !text.empty() && text.size() <= kNamespaceBytesMax && text.front() != '-' &&
         text.back() != '-' && std::all_of(text.begin(), text.end(), [](char c) {
           return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-';
         });
}

Result<int> Export(Invocation& invocation) {
  RINGFENCE_ASSIGN(const std::string to, Needed(invocation.parsed, "to"));
  const auto format = policy::ParseExportFormat(to);
  if (!format.has_value()) {
    return Error{Code::kInvalidArgument, "--to: unknown format \"" + to + "\"",
                 "the formats are k8s, calico and cilium"};
  }
  const std::string name_space = invocation.parsed.Value("namespace").value_or(kNamespace);
  if (!IsNamespace(name_space)) {
    return Error{Code::kInvalidArgument, "--namespace: \"" + name_space + "\" is no namespace",
                 "use up to 63 of a-z, 0-9 and '-'"};
  }
  RINGFENCE_ASSIGN(const auto policy, LoadPolicy(invocation));
  const policy::NetworkExport exported = policy::ExportNetwork(*policy, *format, name_space);
  Console& console = invocation.console;
  for (const std::string& line : exported.left_out) {
    console.Warn("left out, so closed there: " + line);
  }
  if (console.format() == Format::kJson) {
    // What `kubectl apply -f` takes as one document.
    JsonArray items(exported.objects.begin(), exported.objects.end());
    console.Show(JsonObject{{"apiVersion", "v1"}, {"kind", "List"}, {"items", std::move(items)}});
  } else {
    console.out() << policy::ToYamlStream(exported.objects);
  }
  return kExitOk;
}

ArgumentSpec FolderArgument() {
  return {.name = "DIR",
          .help = "the policy's folder (default: policy.folder)",
          .required = false,
          .completes = Completes::kFolder};
}

}  // namespace

CommandTable NetworkCommands() {
  return {
      {.path = "network show",
       .group = Group::kAccess,
       .summary = "List the network rules of a policy folder, without a server.",
       .options = {{.name = "tenant",
                    .letter = 't',
                    .value = "TENANT",
                    .help = "only those that hold for this tenant's boxes",
                    .completes = Completes::kTenant}},
       .arguments = {FolderArgument()},
       .examples = {{"ringfence network show policy/ -t acme/research/vision",
                     "who this tenant may talk to, and who to it"}},
       .handler = Show},
      {.path = "network check",
       .group = Group::kAccess,
       .summary = "Say whether a policy folder lets a flow through, and by which rule.",
       .options = {{.name = "from",
                    .value = "TENANT",
                    .help = "who begins it",
                    .completes = Completes::kTenant},
                   {.name = "to", .value = "WHOM", .help = "a tenant, an address or a DNS name"},
                   {.name = "port", .value = "PORT", .help = "tcp/443, udp/5000-5100 or icmp"}},
       .arguments = {FolderArgument()},
       .examples = {{"ringfence network check --from acme/research --to 10.0.0.7 --port tcp/443",
                     "would it be let through?"}},
       .exit_codes = "0 open, 3 closed",
       .handler = Check},
      {.path = "network export",
       .group = Group::kAccess,
       .summary = "Print the network rules as objects of Kubernetes, Calico or Cilium.",
       .details = "What the format cannot say is left out, so it stays closed there, and is named "
                  "on standard error. docs/network.md says which labels pods must carry.",
       .options = {{.name = "to",
                    .value = "FORMAT",
                    .help = "k8s, calico or cilium",
                    .completes = Completes::kWords,
                    .words = "k8s calico cilium"},
                   {.name = "namespace",
                    .value = "NAME",
                    .help = "namespace of the pods (default ringfence)"}},
       .arguments = {FolderArgument()},
       .examples = {{"ringfence network export --to k8s | kubectl apply -f -",
                     "the same walls for pods"},
                    {"ringfence network export --to cilium --namespace jobs policy/",
                     "for Cilium, from a folder"}},
       .handler = Export},
  };
}

}  // namespace ringfence::cli
