#include "policy/network_export.h"

#include <algorithm>

#include "wire/yaml.h"

namespace ringfence::policy {
namespace {

using model::PortRange;
using model::Protocol;

constexpr const char* kDenyName = "ringfence-default-deny";
constexpr const char* kLabels[] = {"ringfence.dev/department", "ringfence.dev/team",
                                   "ringfence.dev/project"};
constexpr std::int64_t kIcmpEchoRequest = 8;
constexpr std::int64_t kCalicoOrder = 1000;
constexpr std::int64_t kCalicoDenyOrder = 2000;

// {"ringfence.dev/department": "acme", ...}, as deep as the path.
JsonObject LabelsOf(const model::TenantPath& tenant) {
  JsonObject labels;
  std::string_view rest = tenant.text();
  for (const char* label : kLabels) {
    const std::size_t slash = rest.find('/');
    labels[label] = std::string(rest.substr(0, slash));
    if (slash == std::string_view::npos) {
      break;
    }
    rest.remove_prefix(slash + 1);
  }
  return labels;
}

JsonObject MatchLabels(const model::TenantPath& tenant) {
  return JsonObject{{"matchLabels", LabelsOf(tenant)}};
}

JsonObject AnyTenant() {
  return JsonObject{
      {"matchExpressions", JsonArray{JsonObject{{"key", kLabels[0]}, {"operator", "Exists"}}}}};
}

// Those of NeverReachable that lie in the network.
JsonArray Exceptions(const model::Ipv4Network& network) {
  JsonArray except;
  for (const model::Ipv4Network& never : model::NeverReachable()) {
    if (network.Contains(never)) {
      except.emplace_back(never.text());
    }
  }
  return except;
}

std::string Upper(Protocol protocol) {
  return protocol == Protocol::kTcp ? "TCP" : protocol == Protocol::kUdp ? "UDP" : "ICMP";
}

bool HasIcmp(const NetworkRule& rule) {
  return std::any_of(rule.ports.begin(), rule.ports.end(),
                     [](const PortRange& ports) { return ports.protocol() == Protocol::kIcmp; });
}

class Writer {
 public:
  Writer(std::string name_space, const char* api, const char* kind)
      : name_space_(std::move(name_space)), api_(api), kind_(kind) {}
  virtual ~Writer() = default;
  Writer(const Writer&) = delete;
  Writer& operator=(const Writer&) = delete;

  virtual void Deny() = 0;
  virtual void Add(const NetworkRule& rule) = 0;
  NetworkExport Take() { return std::move(export_); }

 protected:
  // A label of DNS, as the names of rules are one with room to spare.
  static std::string ObjectName(const NetworkRule& rule, const char* suffix) {
    return "ringfence-" + rule.name + suffix;
  }
  void Put(std::string name, JsonObject spec) {
    export_.objects.emplace_back(JsonObject{
        {"apiVersion", api_},
        {"kind", kind_},
        {"metadata",
         JsonObject{{"name", std::move(name)},
                    {"namespace", name_space_},
                    {"labels", JsonObject{{"app.kubernetes.io/managed-by", "ringfence"}}}}},
        {"spec", std::move(spec)}});
  }
  void LeaveOut(const NetworkRule& rule, const std::string& why) {
    export_.left_out.push_back("rule " + rule.name + " (" + rule.Where() + "): " + why);
  }
  // False when the rule cannot be said at all.
  bool CanSay(const NetworkRule& rule, bool names) {
    if (rule.target == NetworkTarget::kLease) {
      LeaveOut(rule, "\"the same lease\" is not a selector of this format");
      return false;
    }
    if (rule.target == NetworkTarget::kName && !names) {
      LeaveOut(rule, "this format has no rules for DNS names");
      return false;
    }
    return true;
  }

 private:
  std::string name_space_;
  const char* api_;
  const char* kind_;
  NetworkExport export_;
};

class Kubernetes final : public Writer {
 public:
  explicit Kubernetes(std::string name_space)
      : Writer(std::move(name_space), "networking.k8s.io/v1", "NetworkPolicy") {}

  void Deny() override {
    Put(kDenyName,
        JsonObject{{"podSelector", AnyTenant()}, {"policyTypes", JsonArray{"Ingress", "Egress"}}});
  }

  void Add(const NetworkRule& rule) override {
    if (!CanSay(rule, false)) {
      return;
    }
    const JsonArray ports = Ports(rule);
    if (HasIcmp(rule)) {
      LeaveOut(rule, "NetworkPolicy has no icmp");
    }
    if (ports.empty()) {
      return;  // a rule without ports would open all of them
    }
    JsonObject peer;
    if (rule.target == NetworkTarget::kTenant) {
      peer["podSelector"] = MatchLabels(rule.to_tenant);
    } else {
      JsonObject block{{"cidr", rule.to_cidr->text()}};
      if (const JsonArray except = Exceptions(*rule.to_cidr); !except.empty()) {
        block["except"] = except;
      }
      peer["ipBlock"] = std::move(block);
    }
    Put(ObjectName(rule, "-out"),
        JsonObject{{"podSelector", MatchLabels(rule.from)},
                   {"policyTypes", JsonArray{"Egress"}},
                   {"egress",
                    JsonArray{JsonObject{{"to", JsonArray{std::move(peer)}}, {"ports", ports}}}}});
    if (rule.target == NetworkTarget::kTenant) {
      const JsonObject from{{"podSelector", MatchLabels(rule.from)}};
      Put(ObjectName(rule, "-in"),
          JsonObject{
              {"podSelector", MatchLabels(rule.to_tenant)},
              {"policyTypes", JsonArray{"Ingress"}},
              {"ingress", JsonArray{JsonObject{{"from", JsonArray{from}}, {"ports", ports}}}}});
    }
  }

 private:
  static JsonArray Ports(const NetworkRule& rule) {
    JsonArray ports;
    for (const PortRange& range : rule.ports) {
      if (range.protocol() == Protocol::kIcmp) {
        continue;
      }
      JsonObject port{{"protocol", Upper(range.protocol())},
                      {"port", static_cast<std::int64_t>(range.first())}};
      if (range.first() != range.last()) {
        port["endPort"] = static_cast<std::int64_t>(range.last());
      }
      ports.push_back(std::move(port));
    }
    return ports;
  }
};

class Calico final : public Writer {
 public:
  explicit Calico(std::string name_space)
      : Writer(std::move(name_space), "projectcalico.org/v3", "NetworkPolicy") {}

  void Deny() override {
    Put(kDenyName, JsonObject{{"order", kCalicoDenyOrder},
                              {"selector", std::string("has(") + kLabels[0] + ")"},
                              {"types", JsonArray{"Ingress", "Egress"}}});
  }

  void Add(const NetworkRule& rule) override {
    if (!CanSay(rule, false)) {
      return;
    }
    JsonObject to;
    if (rule.target == NetworkTarget::kTenant) {
      to["selector"] = Selector(rule.to_tenant);
    } else {
      to["nets"] = JsonArray{rule.to_cidr->text()};
      if (const JsonArray except = Exceptions(*rule.to_cidr); !except.empty()) {
        to["notNets"] = except;
      }
    }
    Put(ObjectName(rule, "-out"), JsonObject{{"order", kCalicoOrder},
                                             {"selector", Selector(rule.from)},
                                             {"types", JsonArray{"Egress"}},
                                             {"egress", Rules(rule, "destination", to, {})}});
    if (rule.target == NetworkTarget::kTenant) {
      const JsonObject from{{"selector", Selector(rule.from)}};
      Put(ObjectName(rule, "-in"), JsonObject{{"order", kCalicoOrder},
                                              {"selector", Selector(rule.to_tenant)},
                                              {"types", JsonArray{"Ingress"}},
                                              {"ingress", Rules(rule, "source", from, {})}});
    }
  }

 private:
  static std::string Selector(const model::TenantPath& tenant) {
    std::string text;
    for (const auto& label : LabelsOf(tenant)) {
      const auto& value = label.value().get_string();
      text += (text.empty() ? "" : " && ") + std::string(label.key()) + " == '" +
              std::string(value.data(), value.size()) + "'";
    }
    return text;
  }

  // A rule for each protocol. Ports are always the destination's.
  static JsonArray Rules(const NetworkRule& rule, const char* side, const JsonObject& entity,
                         JsonArray rules) {
    for (const Protocol protocol : {Protocol::kTcp, Protocol::kUdp, Protocol::kIcmp}) {
      JsonArray ports;
      bool any = false;
      for (const PortRange& range : rule.ports) {
        if (range.protocol() != protocol) {
          continue;
        }
        any = true;
        if (range.first() == range.last()) {
          ports.emplace_back(static_cast<std::int64_t>(range.first()));
        } else {
          ports.emplace_back(std::to_string(range.first()) + ":" + std::to_string(range.last()));
        }
      }
      if (!any) {
        continue;
      }
      JsonObject one{{"action", "Allow"}, {"protocol", Upper(protocol)}, {side, entity}};
      if (protocol == Protocol::kIcmp) {
        one["ipVersion"] = 4;
        one["icmp"] = JsonObject{{"type", kIcmpEchoRequest}};
      } else {
        JsonObject destination = std::string_view(side) == "destination" ? entity : JsonObject();
        destination["ports"] = std::move(ports);
        one["destination"] = std::move(destination);
      }
      rules.push_back(std::move(one));
    }
    return rules;
  }
};

class Cilium final : public Writer {
 public:
  explicit Cilium(std::string name_space)
      : Writer(std::move(name_space), "cilium.io/v2", "CiliumNetworkPolicy") {}

  // An empty rule selects nobody and turns the default to deny.
  void Deny() override {
    Put(kDenyName, JsonObject{{"endpointSelector", AnyTenant()},
                              {"ingress", JsonArray{JsonObject()}},
                              {"egress", JsonArray{JsonObject()}}});
  }

  void Add(const NetworkRule& rule) override {
    if (!CanSay(rule, true)) {
      return;
    }
    JsonObject to;
    if (rule.target == NetworkTarget::kTenant) {
      to["toEndpoints"] = JsonArray{MatchLabels(rule.to_tenant)};
    } else if (rule.target == NetworkTarget::kCidr) {
      JsonObject set{{"cidr", rule.to_cidr->text()}};
      if (const JsonArray except = Exceptions(*rule.to_cidr); !except.empty()) {
        set["except"] = except;
      }
      to["toCIDRSet"] = JsonArray{std::move(set)};
    } else {
      to["toFQDNs"] = JsonArray{JsonObject{{"matchName", rule.to_name}}};
      if (HasIcmp(rule)) {
        LeaveOut(rule, "Cilium has no icmp to a name");
      }
    }
    JsonArray egress = Rules(rule, to);
    if (egress.empty()) {
      return;
    }
    if (rule.target == NetworkTarget::kName) {
      egress.push_back(AskDns(rule.to_name));
    }
    Put(ObjectName(rule, "-out"),
        JsonObject{{"endpointSelector", MatchLabels(rule.from)}, {"egress", std::move(egress)}});
    if (rule.target == NetworkTarget::kTenant) {
      const JsonObject from{{"fromEndpoints", JsonArray{MatchLabels(rule.from)}}};
      Put(ObjectName(rule, "-in"), JsonObject{{"endpointSelector", MatchLabels(rule.to_tenant)},
                                              {"ingress", Rules(rule, from)}});
    }
  }

 private:
  // Ports and icmp cannot stand in one rule.
  static JsonArray Rules(const NetworkRule& rule, const JsonObject& peer) {
    JsonArray ports;
    for (const PortRange& range : rule.ports) {
      if (range.protocol() == Protocol::kIcmp) {
        continue;
      }
      JsonObject port{{"port", std::to_string(range.first())},
                      {"protocol", Upper(range.protocol())}};
      if (range.first() != range.last()) {
        port["endPort"] = static_cast<std::int64_t>(range.last());
      }
      ports.push_back(std::move(port));
    }
    JsonArray rules;
    if (!ports.empty()) {
      JsonObject one = peer;
      one["toPorts"] = JsonArray{JsonObject{{"ports", std::move(ports)}}};
      rules.push_back(std::move(one));
    }
    if (HasIcmp(rule) && rule.target != NetworkTarget::kName) {
      JsonObject one = peer;
      one["icmps"] = JsonArray{JsonObject{
          {"fields", JsonArray{JsonObject{{"family", "IPv4"}, {"type", kIcmpEchoRequest}}}}}};
      rules.push_back(std::move(one));
    }
    return rules;
  }

  // Cilium learns a name's addresses from the answers that pass its DNS proxy.
  static JsonObject AskDns(const std::string& name) {
    const JsonObject dns{
        {"matchLabels", JsonObject{{"k8s:io.kubernetes.pod.namespace", "kube-system"},
                                   {"k8s:k8s-app", "kube-dns"}}}};
    const JsonObject port{{"port", "53"}, {"protocol", "ANY"}};
    return JsonObject{
        {"toEndpoints", JsonArray{dns}},
        {"toPorts",
         JsonArray{JsonObject{
             {"ports", JsonArray{port}},
             {"rules", JsonObject{{"dns", JsonArray{JsonObject{{"matchName", name}}}}}}}}}};
  }
};

template <typename Format>
NetworkExport Write(const Policy& policy, const std::string& name_space) {
  Format writer(name_space);
  writer.Deny();
  for (const NetworkRule& rule : policy.network_rules()) {
    writer.Add(rule);
  }
  return writer.Take();
}

}  // namespace

std::optional<ExportFormat> ParseExportFormat(std::string_view text) {
  return text == "k8s"      ? std::optional(ExportFormat::kKubernetes)
         : text == "calico" ? std::optional(ExportFormat::kCalico)
         : text == "cilium" ? std::optional(ExportFormat::kCilium)
                            : std::nullopt;
}

NetworkExport ExportNetwork(const Policy& policy, ExportFormat format,
                            const std::string& name_space) {
  switch (format) {
    case ExportFormat::kKubernetes:
      return Write<Kubernetes>(policy, name_space);
    case ExportFormat::kCalico:
      return Write<Calico>(policy, name_space);
    case ExportFormat::kCilium:
      return Write<Cilium>(policy, name_space);
  }
  return {};
}

std::string ToYamlStream(const std::vector<Json>& objects) {
  std::string text;
  for (const Json& object : objects) {
    text += (text.empty() ? "" : "---\n") + wire::JsonToYaml(object);
  }
  return text;
}

}  // namespace ringfence::policy
