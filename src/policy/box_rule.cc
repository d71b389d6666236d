#include "policy/box_rule.h"

#include <algorithm>

#include "policy/draft.h"
#include "policy/policy.h"

namespace ringfence::policy {
namespace {

using wire::YamlReader;
using wire::YamlText;

constexpr std::size_t kMountsPerRuleMax = 64;
constexpr std::uint64_t kMiBMost = std::uint64_t{4} << 20U;  // 4 TiB

std::string Where(const Source& source) {
  return " (" + source.file + ":" + std::to_string(source.line) + ")";
}

Error Denied(std::string message, std::string hint, std::string field) {
  return Error{Code::kPermissionDenied, std::move(message), std::move(hint), std::move(field)};
}

bool ReadFlag(YamlReader& spec, std::string_view name) {
  const auto text = spec.TextIfGiven(name);
  if (!text.has_value()) {
    return false;
  }
  if (text->text != "required" && text->text != "free") {
    spec.Problem(name, text->line, "\"" + text->text + "\" is neither required nor free",
                 "write required or free");
  }
  return text->text == "required";
}

std::optional<std::uint64_t> ReadMiB(YamlReader& spec, std::string_view name) {
  if (spec.Any(name) == nullptr) {
    return std::nullopt;
  }
  const auto number = spec.Number(name, kMiBMost);
  if (!number.has_value()) {
    return std::nullopt;
  }
  return *number << 20U;
}

struct Limit {
  std::uint64_t asked;
  std::optional<std::uint64_t> BoxRule::* most;
  const char* what;
  const char* field;
  bool must_be_stated;
};

Status CheckLimit(const std::vector<BoxRule>& rules, const Limit& limit) {
  if (limit.asked == 0) {
    return {};
  }
  bool stated = false;
  for (const BoxRule& rule : rules) {
    const auto& most = rule.*limit.most;
    stated = stated || most.has_value();
    if (most.has_value() && limit.asked > *most) {
      return Denied(std::string(limit.what) + ": " + std::to_string(limit.asked) +
                        " bytes, and boxes of " + rule.tenant.text() + " may have " +
                        std::to_string(*most) + Where(rule.source),
                    "ask for less", limit.field);
    }
  }
  if (limit.must_be_stated && !stated) {
    return Denied(std::string(limit.what) + " are for tenants to whom a BoxRule gives some",
                  "ask whoever keeps the policy for a BoxRule with " + std::string(limit.field),
                  limit.field);
  }
  return {};
}

Status CheckMounts(const std::vector<BoxRule>& rules, const model::TenantPath& tenant,
                   const model::BoxRequest& box) {
  for (const model::MountRequest& mount : box.mounts) {
    const auto named = [&](const std::vector<std::string>& names) {
      return std::find(names.begin(), names.end(), mount.name) != names.end();
    };
    const bool readable = std::any_of(rules.begin(), rules.end(), [&](const BoxRule& rule) {
      return named(rule.mounts) || named(rule.writable_mounts);
    });
    const bool writable = std::any_of(rules.begin(), rules.end(), [&](const BoxRule& rule) {
      return named(rule.writable_mounts);
    });
    if (!readable || (mount.writable && !writable)) {
      return Denied("boxes of " + tenant.text() + " may not " + (readable ? "write to" : "have") +
                        " the mount " + mount.name,
                    readable ? "ask for it without :rw"
                             : "a BoxRule of the policy must name it for this tenant",
                    "mounts");
    }
  }
  return {};
}

Status CheckDevices(const std::vector<BoxRule>& rules, const model::TenantPath& tenant,
                    const model::BoxRequest& box) {
  for (const std::string& device : box.devices) {
    const bool named = std::any_of(rules.begin(), rules.end(), [&](const BoxRule& rule) {
      return std::find(rule.devices.begin(), rule.devices.end(), device) != rule.devices.end();
    });
    if (!named) {
      return Denied("boxes of " + tenant.text() + " may not have the devices " + device +
                        ": they pass the firewall, and no BoxRule over this tenant names them",
                    "a BoxRule of the policy must say devices: [" + device + "]", "devices");
    }
  }
  return {};
}

void ReadDevices(YamlReader& spec, BoxRule& rule) {
  if (spec.Any("devices") == nullptr) {
    return;
  }
  for (const YamlText& text : spec.Texts("devices", 1, std::size(model::kFabricDevices))) {
    if (!model::IsFabricDevice(text.text)) {
      spec.Problem("devices", text.line, "\"" + text.text + "\" is no device of a fabric",
                   "write rdma or imex; GPUs are given by leases");
      continue;
    }
    rule.devices.push_back(text.text);
  }
}

}  // namespace

void ReadBoxRule(DraftHead head, DraftTenantRef tenant, YamlReader& spec, Draft& draft) {
  DraftBoxRule rule;
  rule.head = std::move(head);
  rule.tenant = std::move(tenant);
  rule.rule.images_pinned = ReadFlag(spec, "pinnedImages");
  rule.rule.images_only = ReadFlag(spec, "images");
  if (spec.Any("mounts") != nullptr) {
    for (const YamlText& text : spec.Texts("mounts", 1, kMountsPerRuleMax)) {
      const bool writable = text.text.ends_with(":rw");
      std::string name = writable ? text.text.substr(0, text.text.size() - 3) : text.text;
      if (!model::CheckMount({name, "/mnt/x", false}).has_value()) {
        spec.Problem(
            "mounts", text.line, "\"" + text.text + "\" is no mount's name",
            "write a name of a-z, 0-9 and '-', with :rw behind it where it may be written");
        continue;
      }
      (writable ? rule.rule.writable_mounts : rule.rule.mounts).push_back(std::move(name));
    }
  }
  rule.rule.shm_bytes_max = ReadMiB(spec, "shmMiB");
  rule.rule.tmp_bytes_max = ReadMiB(spec, "tmpMiB");
  rule.rule.huge_bytes_max = ReadMiB(spec, "hugepagesMiB");
  ReadDevices(spec, rule.rule);
  draft.box_rules.push_back(std::move(rule));
}

Status CheckBox(const Policy& policy, const model::TenantPath& tenant, const model::BoxRequest& box,
                bool pinned) {
  const std::vector<BoxRule> rules = policy.BoxRulesOver(tenant);
  for (const BoxRule& rule : rules) {
    if (rule.images_only && box.image.empty()) {
      return Denied("boxes of " + rule.tenant.text() + " need an image" + Where(rule.source),
                    "name one: --image REF", "image");
    }
    if (rule.images_pinned && !box.image.empty() && !pinned) {
      return Denied(
          "images of " + rule.tenant.text() + " must be named by digest" + Where(rule.source),
          "write --image NAME@sha256:HEX; `ringfence image list` on a node shows digests", "image");
    }
  }
  RINGFENCE_TRY(CheckMounts(rules, tenant, box));
  RINGFENCE_TRY(CheckDevices(rules, tenant, box));
  for (const Limit& limit :
       {Limit{box.shm_bytes_max, &BoxRule::shm_bytes_max, "/dev/shm", "shm_bytes", false},
        {box.tmp_bytes_max, &BoxRule::tmp_bytes_max, "/tmp", "tmp_bytes", false},
        {box.huge_bytes_max, &BoxRule::huge_bytes_max, "huge pages", "hugepagesMiB", true}}) {
    RINGFENCE_TRY(CheckLimit(rules, limit));
  }
  return {};
}

}  // namespace ringfence::policy
