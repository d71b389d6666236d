// `ringfence policy compile`: what the folder comes to, as Cedar.

#include "base/code.h"
#include "cedar/entities.h"
#include "cli/commands.h"
#include "cli/console.h"
#include "cli/policy_folder.h"
#include "policy/permissions.h"
#include "policy/rulebook.h"

namespace ringfence::cli {
namespace {

Result<int> Compile(Invocation& invocation) {
  const Parsed& parsed = invocation.parsed;
  RINGFENCE_ASSIGN(const auto policy, LoadPolicyFolder(invocation, parsed.Argument(0)));
  const policy::Rulebook& book = policy->rulebook();
  const bool schema = parsed.Has("schema");
  const bool entities = parsed.Has("entities");
  if (schema && entities) {
    return Error{Code::kInvalidArgument, "--schema and --entities are two files",
                 "ask for one at a time"};
  }
  Console& console = invocation.console;
  WarnOfRules(console, *policy);
  if (!console.table()) {
    console.Show(JsonObject{{"digest", policy->digest()},
                            {"policies", book.Text()},
                            {"schema", policy::CedarSchemaText()},
                            {"policy_count", book.rules().size()},
                            {"entity_count", book.engine().store().entities().all().size()}});
    return kExitOk;
  }
  console.out() << (schema     ? policy::CedarSchemaText()
                    : entities ? cedar::ToJsonText(book.engine().store().entities()) + "\n"
                               : book.Text());
  return kExitOk;
}

Result<int> Permissions(Invocation& invocation) {
  invocation.console.out() << policy::PermissionsMarkdown();
  return kExitOk;
}

}  // namespace

CommandTable PolicyCompileCommands() {
  return {{.path = "policy compile",
           .group = Group::kAccess,
           .summary = "Show what a policy folder comes to in Cedar.",
           .details =
               "Prints the policies, each with @id and @source; those of *.cedar files are among "
               "them. With the schema and the entities, which say who holds which role where, any "
               "Cedar engine decides as Ringfence does.",
           .options = {{.name = "schema", .help = "print the types, actions and context instead"},
                       {.name = "entities", .help = "print the entities as JSON instead"}},
           .arguments = {{.name = "DIR",
                          .help = "the folder (default: policy.folder)",
                          .required = false,
                          .completes = Completes::kFolder}},
           .examples = {{"ringfence policy compile policy/", "the policies"},
                        {"ringfence policy compile --schema policy/ > policy.cedarschema",
                         "what *.cedar files may name"}},
           .handler = Compile},
          {.path = "__permissions",
           .summary = "Print docs/permissions.md.",
           .handler = Permissions,
           .hidden = true}};
}

}  // namespace ringfence::cli
