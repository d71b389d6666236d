// `ringfence tenant ...`

#include "cli/api.h"
#include "cli/commands.h"
#include "cli/console.h"
#include "cli/fields.h"
#include "cli/settings.h"

namespace ringfence::cli {
namespace {

Result<int> List(Invocation& invocation) {
  RINGFENCE_ASSIGN(const std::size_t limit, LimitOf(invocation.parsed, kListMax));
  RINGFENCE_ASSIGN(const auto api, Api::Open(invocation.settings));
  RINGFENCE_ASSIGN(const JsonArray tenants, api->List("/v1/tenants", {}, limit));
  Console& console = invocation.console;
  if (!console.table()) {
    console.Show(tenants);
    return 0;
  }
  if (tenants.empty()) {
    console.Note("no tenants that you may see; `ringfence whoami` shows your roles");
    return 0;
  }
  Table table({"TENANT", "KIND", "GPUS LEASED", "QUOTA", "NAME"});
  for (const Json& tenant : tenants) {
    table.Add({TextOf(tenant, "path"), TextOf(tenant, "kind"), TextOf(tenant, "gpus_leased"),
               TextOf(tenant, "gpus_max"), TextOf(tenant, "display_name")});
  }
  table.Print(console);
  return 0;
}

}  // namespace

CommandTable TenantCommands() {
  OptionSpec limit = LimitOption();
  limit.help = "show at most N";
  return {{.path = "tenant list",
           .group = Group::kCluster,
           .summary = "List the tenants that you may see, with their quotas.",
           .options = {limit},
           .examples = {{"ringfence tenant list", "departments, teams and projects"}},
           .handler = List}};
}

}  // namespace ringfence::cli
