#pragma once

// What the published schemas of Kubernetes' NetworkPolicy (networking.k8s.io/v1), Calico's
// NetworkPolicy (projectcalico.org/v3) and CiliumNetworkPolicy (cilium.io/v2) demand of the parts
// that we write: each field's type and place, which must be there, and no other. And what no
// schema demands, but we do: that no object opens more than it names. For the tests and the fuzzer.

#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/json.h"
#include "policy/network_export.h"

namespace ringfence::policy::shape {

using Check = std::function<std::string(const Json&, const std::string&)>;  // "" when it is right

struct Field {
  std::string name;
  Check check;
  bool required = true;
};

inline Check Text(std::function<bool(std::string_view)> holds) {
  return [holds = std::move(holds)](const Json& value, const std::string& path) -> std::string {
    const auto* text = value.if_string();
    return text != nullptr && holds(std::string_view(text->data(), text->size()))
               ? ""
               : path + ": not the right text";
  };
}
inline Check OneOf(std::vector<std::string> words) {
  return Text([words = std::move(words)](std::string_view text) {
    return std::find(words.begin(), words.end(), text) != words.end();
  });
}
inline Check Int(std::int64_t least, std::int64_t most) {
  return [=](const Json& value, const std::string& path) -> std::string {
    return value.is_int64() && value.get_int64() >= least && value.get_int64() <= most
               ? ""
               : path + ": not a number in its bounds";
  };
}
inline Check Either(Check a, Check b) {
  return [a = std::move(a), b = std::move(b)](const Json& value, const std::string& path) {
    return a(value, path).empty() ? std::string() : b(value, path);
  };
}
inline Check ListOf(Check item, std::size_t least, std::size_t most = 64) {
  return [=, item = std::move(item)](const Json& value, const std::string& path) -> std::string {
    const JsonArray* list = value.if_array();
    if (list == nullptr || list->size() < least || list->size() > most) {
      return path + ": not a list of the right length";
    }
    for (const Json& one : *list) {
      if (std::string wrong = item(one, path + "[]"); !wrong.empty()) {
        return wrong;
      }
    }
    return "";
  };
}
inline Check MapOf(std::vector<Field> fields) {
  return [fields = std::move(fields)](const Json& value, const std::string& path) -> std::string {
    const JsonObject* object = value.if_object();
    if (object == nullptr) {
      return path + ": not an object";
    }
    std::size_t known = 0;
    for (const Field& field : fields) {
      const Json* member = object->if_contains(field.name);
      if (member == nullptr && field.required) {
        return path + "." + field.name + ": missing";
      }
      if (member != nullptr) {
        ++known;
        if (std::string wrong = field.check(*member, path + "." + field.name); !wrong.empty()) {
          return wrong;
        }
      }
    }
    return known == object->size() ? "" : path + ": a field that the schema does not have";
  };
}

inline bool IsLabelText(std::string_view text) {
  return !text.empty() && text.size() <= 63 && text.front() != '-' && text.back() != '-' &&
         text.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789-") == text.npos;
}
inline Check Label() { return Text(IsLabelText); }
inline Check Cidr() {
  return Text([](std::string_view text) { return model::Ipv4Network::Parse(text).has_value(); });
}
inline Check Port() { return Int(1, 65535); }

// A selector with no label would select every pod.
inline Check Labels() {
  return MapOf({{"ringfence.dev/department", Label()},
                {"ringfence.dev/team", Label(), false},
                {"ringfence.dev/project", Label(), false}});
}
inline Check AnyTenantSelector() {
  return MapOf({{"matchExpressions", ListOf(MapOf({{"key", OneOf({"ringfence.dev/department"})},
                                                   {"operator", OneOf({"Exists"})}}),
                                            1, 1)}});
}
inline Check Selector() { return Either(MapOf({{"matchLabels", Labels()}}), AnyTenantSelector()); }

inline Check Object(const std::string& api, const std::string& kind, Check spec) {
  return MapOf(
      {{"apiVersion", OneOf({api})},
       {"kind", OneOf({kind})},
       {"metadata",
        MapOf({{"name", Label()},
               {"namespace", Label()},
               {"labels", MapOf({{"app.kubernetes.io/managed-by", OneOf({"ringfence"})}})}})},
       {"spec", std::move(spec)}});
}

inline Check Kubernetes() {
  const Check peer =
      Either(MapOf({{"podSelector", MapOf({{"matchLabels", Labels()}})}}),
             MapOf({{"ipBlock", MapOf({{"cidr", Cidr()}, {"except", ListOf(Cidr(), 1), false}})}}));
  const Check ports = ListOf(
      MapOf({{"protocol", OneOf({"TCP", "UDP"})}, {"port", Port()}, {"endPort", Port(), false}}),
      1);
  return Object(
      "networking.k8s.io/v1", "NetworkPolicy",
      MapOf({{"podSelector", Selector()},
             {"policyTypes", ListOf(OneOf({"Ingress", "Egress"}), 1, 2)},
             {"egress", ListOf(MapOf({{"to", ListOf(peer, 1)}, {"ports", ports}}), 1), false},
             {"ingress", ListOf(MapOf({{"from", ListOf(peer, 1)}, {"ports", ports}}), 1), false}}));
}

inline Check Calico() {
  const Check expression = Text([](std::string_view text) {
    return text.starts_with("ringfence.dev/department == '") ||
           text == "has(ringfence.dev/department)";
  });
  const Check port =
      Either(Port(), Text([](std::string_view text) { return text.find(':') != text.npos; }));
  const Check entity = MapOf({{"selector", expression, false},
                              {"nets", ListOf(Cidr(), 1), false},
                              {"notNets", ListOf(Cidr(), 1), false},
                              {"ports", ListOf(port, 1), false}});
  const Check rule = MapOf({{"action", OneOf({"Allow"})},
                            {"protocol", OneOf({"TCP", "UDP", "ICMP"})},
                            {"ipVersion", Int(4, 4), false},
                            {"icmp", MapOf({{"type", Int(0, 254)}}), false},
                            {"source", entity, false},
                            {"destination", entity, false}});
  return Object("projectcalico.org/v3", "NetworkPolicy",
                MapOf({{"order", Int(1, 10000)},
                       {"selector", expression},
                       {"types", ListOf(OneOf({"Ingress", "Egress"}), 1, 2)},
                       {"egress", ListOf(rule, 1), false},
                       {"ingress", ListOf(rule, 1), false}}));
}

inline Check Cilium() {
  const Check name = Text(model::IsDnsName);
  const Check dns = MapOf({{"dns", ListOf(MapOf({{"matchName", name}}), 1)}});
  const Check any_map = [](const Json& value, const std::string& path) {
    return value.is_object() && !value.get_object().empty() ? std::string()
                                                            : path + ": selects everything";
  };
  const Check port = MapOf({{"port", Text([](std::string_view text) {
                               return !text.empty() && text.size() <= 5 &&
                                      text.find_first_not_of("0123456789") == text.npos;
                             })},
                            {"protocol", OneOf({"TCP", "UDP", "ANY"})},
                            {"endPort", Port(), false}});
  const Check endpoints = ListOf(MapOf({{"matchLabels", any_map}}), 1);
  const Check rule = MapOf(
      {{"toEndpoints", endpoints, false},
       {"fromEndpoints", endpoints, false},
       {"toCIDRSet", ListOf(MapOf({{"cidr", Cidr()}, {"except", ListOf(Cidr(), 1), false}}), 1),
        false},
       {"toFQDNs", ListOf(MapOf({{"matchName", name}}), 1), false},
       {"toPorts", ListOf(MapOf({{"ports", ListOf(port, 1, 40)}, {"rules", dns, false}}), 1),
        false},
       {"icmps",
        ListOf(MapOf({{"fields", ListOf(MapOf({{"family", OneOf({"IPv4"})}, {"type", Int(0, 255)}}),
                                        1, 40)}}),
               1),
        false}});
  return Object("cilium.io/v2", "CiliumNetworkPolicy",
                MapOf({{"endpointSelector", Selector()},
                       {"egress", ListOf(rule, 1), false},
                       {"ingress", ListOf(rule, 1), false}}));
}

// What is wrong with an export; empty when nothing is.
inline std::string Wrong(const NetworkExport& exported, ExportFormat format) {
  const Check check = format == ExportFormat::kKubernetes ? Kubernetes()
                      : format == ExportFormat::kCalico   ? Calico()
                                                          : Cilium();
  if (exported.objects.empty()) {
    return "nothing closes what no rule opens";
  }
  for (const Json& object : exported.objects) {
    if (std::string wrong = check(object, ""); !wrong.empty()) {
      return wrong + " in " + PrettyJson(object);
    }
  }
  return "";
}

}  // namespace ringfence::policy::shape
