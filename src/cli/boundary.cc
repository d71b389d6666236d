// `ringfence boundary show`

#include "policy/boundary.h"

#include "cli/api.h"
#include "cli/commands.h"
#include "cli/console.h"
#include "cli/fields.h"

namespace ringfence::cli {
namespace {

Result<Json> FromFolder(const std::string& folder, const Parsed& parsed) {
  RINGFENCE_ASSIGN(const auto policy, policy::Policy::Load(folder));
  std::vector<model::TenantPath> two;
  for (std::size_t i = 0; i < 2; ++i) {
    RINGFENCE_ASSIGN(model::TenantPath path, model::TenantPath::Create(parsed.Argument(i)));
    if (policy->FindTenant(path) == nullptr) {
      const auto closest = policy->ClosestTenant(path.text());
      return Error{Code::kNotFound, folder + " has no tenant \"" + path.text() + "\"",
                   closest ? "did you mean \"" + *closest + "\"?" : "declare it as a Tenant"};
    }
    two.push_back(std::move(path));
  }
  return Json(policy::ToJson(policy::Between(*policy, two[0], two[1]), two[0], two[1]));
}

void Print(Console& console, const Json& boundary) {
  FactList facts;
  facts.Add("Between", JoinOf(boundary, "between", " and "));
  facts.Add("Least", TextOf(boundary, "least"));
  facts.Add("Because", TextOf(boundary, "reason"));
  if (BoolOf(boundary, "never_together")) {
    facts.Add("Sharing", "never: no node holds both");
  }
  if (BoolOf(boundary, "nvlink_one_tenant")) {
    facts.Add("NVLink", "neighbours are of one tenant: " + TextOf(boundary, "nvlink_reason"));
  }
  if (const auto within = IntOf(boundary, "proven_within_ms")) {
    facts.Add("Proven", "within " + FormatDuration(Milliseconds(*within)) + ": " +
                            TextOf(boundary, "proven_reason"));
  }
  facts.Print(console);
  const JsonArray& rules = ArrayOf(boundary, "rules");
  if (rules.empty()) {
    return;
  }
  Table table({"", "RULE", "LEAST", "WHAT"});
  for (const Json& rule : rules) {
    table.Add({BoolOf(rule, "decides") ? "*" : " ", TextOf(rule, "name"), TextOf(rule, "least"),
               TextOf(rule, "what")});
  }
  table.Print(console);
}

Result<int> Show(Invocation& invocation) {
  const Parsed& parsed = invocation.parsed;
  Json boundary;
  if (const auto folder = parsed.Value("policy")) {
    RINGFENCE_ASSIGN(boundary, FromFolder(*folder, parsed));
  } else {
    RINGFENCE_ASSIGN(const auto api, Api::Open(invocation.settings));
    RINGFENCE_ASSIGN(
        boundary,
        api->Get(Target("/v1/boundary", {{"a", parsed.Argument(0)}, {"b", parsed.Argument(1)}})));
  }
  if (invocation.console.table()) {
    Print(invocation.console, boundary);
  } else {
    invocation.console.Show(boundary);
  }
  return 0;
}

}  // namespace

CommandTable BoundaryCommands() {
  const auto tenant = [](std::string_view name) {
    return ArgumentSpec{.name = name,
                        .help = "a tenant; `ringfence tenant list` shows them",
                        .completes = Completes::kTenant};
  };
  return {
      {.path = "boundary show",
       .group = Group::kAccess,
       .summary = "Show what must lie between two tenants, and which rule says so.",
       .details = "By the policy in force, or without a server by a folder.",
       .options = {{.name = "policy",
                    .value = "DIR",
                    .help = "ask this policy folder instead of the server",
                    .completes = Completes::kFolder}},
       .arguments = {tenant("A"), tenant("B")},
       .examples = {{"ringfence boundary show acme/research globex/trading",
                     "may they share a GPU, a node, or neither?"},
                    {"ringfence boundary show acme globex --policy policy/",
                     "before a change is committed"}},
       .handler = Show},
  };
}

}  // namespace ringfence::cli
