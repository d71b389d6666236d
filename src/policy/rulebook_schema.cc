// What a request looks like to policies; declared in policy/rulebook.h.

#include "base/check.h"
#include "policy/roles.h"
#include "policy/rulebook.h"

namespace ringfence::policy {
namespace {

constexpr std::string_view kTypes =
    R"(// Who holds a role: Holders::"developer@acme/research" at a tenant, Holders::"developer" anywhere.
entity Holders in [Holders];
entity User in [Holders] { name: String };
entity Service in [Holders] { name: String };
// Tenant::"/" is the cluster; every other tenant is in it.
entity Tenant in [Tenant] { path: String };

type Circumstances = {
  now: datetime,
  weekday: String, // "mon" to "sun", in UTC
  network?: ipaddr, // where the request came from
  mfa?: { age: duration, kind: String }, // the second factor: how long ago, and "totp" or "webauthn"
  class?: String, // the isolation class that is asked for
  purpose?: String,
  classification?: String, // of the asset
  node?: { attested: Bool, patched: Bool },
};

)";

std::string MakeSchemaText() {
  std::string text(kTypes);
  text += "action\n";
  for (const Action action : AllActions()) {
    text += "  " + cedar::Quoted(Name(action)) + (action == AllActions().back() ? "\n" : ",\n");
  }
  return text +
         "  appliesTo { principal: [User, Service], resource: [Tenant], context: Circumstances "
         "};\n";
}

}  // namespace

const std::string& CedarSchemaText() {
  static const std::string text = MakeSchemaText();
  return text;
}

const cedar::Schema& CedarSchema() {
  static const cedar::Schema schema = [] {
    auto parsed = cedar::ParseSchema(CedarSchemaText(), cedar::SchemaFormat::kCedar);
    RINGFENCE_CHECK(parsed.has_value());
    return std::move(parsed).value();
  }();
  return schema;
}

}  // namespace ringfence::policy
