// `ringfence policy test` and `ringfence policy plan`.

#include "base/code.h"
#include "cli/commands.h"
#include "cli/console.h"
#include "cli/human.h"
#include "cli/policy_folder.h"
#include "cli/settings.h"
#include "cli/text.h"
#include "policy/case.h"
#include "policy/plan.h"

namespace ringfence::cli {
namespace {

Result<int> Test(Invocation& invocation) {
  RINGFENCE_ASSIGN(const auto policy, LoadPolicyFolder(invocation, invocation.parsed.Argument(0)));
  Console& console = invocation.console;
  WarnOfRules(console, *policy);
  JsonArray items;
  std::size_t failed = 0;
  for (const policy::PolicyCase& one : policy->cases()) {
    const policy::CaseResult result = policy::RunCase(*policy, one, invocation.clock.Now());
    const std::string where = one.source.file + ":" + std::to_string(one.source.line);
    items.push_back(JsonObject{
        {"case", one.name}, {"where", where}, {"passed", result.passed}, {"why", result.why}});
    failed += result.passed ? 0 : 1;
    if (!result.passed && console.table()) {
      console.out() << console.Bad(console.Cross()) << ' ' << Safe(where) << ": " << Safe(one.name)
                    << ": expected " << (one.allow ? "allow" : "deny") << ", " << Safe(result.why)
                    << '\n';
    }
  }
  if (!console.table()) {
    console.Show(JsonObject{{"ok", failed == 0}, {"cases", std::move(items)}});
  } else if (items.empty()) {
    console.Warn("the folder has no cases; docs/policy.md shows how to write them");
  } else {
    console.out() << (failed == 0 ? console.Good(console.Tick()) : console.Bad(console.Cross()))
                  << ' ' << Count(items.size() - failed, "case") << " passed, " << failed
                  << " failed\n";
  }
  return failed == 0 ? kExitOk : kExitFindings;
}

std::string AnswerText(const policy::Point& point) {
  return std::string(policy::Name(point.answer)) +
         (point.condition.empty() ? "" : " " + point.condition);
}

Result<int> Plan(Invocation& invocation) {
  const Parsed& parsed = invocation.parsed;
  const bool two = !parsed.Argument(1).empty();
  if (two && parsed.Has("in-force")) {
    return Error{Code::kInvalidArgument, "--in-force takes the place of OLD", "name one folder"};
  }
  RINGFENCE_ASSIGN(const auto before, two ? LoadPolicyFolder(invocation, parsed.Argument(0))
                                          : LoadAskedPolicy(invocation));
  RINGFENCE_ASSIGN(const auto after, LoadPolicyFolder(invocation, parsed.Argument(two ? 1 : 0)));
  const std::vector<policy::Change> changes = policy::PlanChange(*before, *after);
  Console& console = invocation.console;
  if (!console.table()) {
    JsonArray items;
    for (const policy::Change& change : changes) {
      items.push_back(JsonObject{{"principal", change.after.principal},
                                 {"action", std::string(Name(change.after.action))},
                                 {"resource", change.after.tenant.text()},
                                 {"before", AnswerText(change.before)},
                                 {"after", AnswerText(change.after)}});
    }
    console.Show(JsonObject{
        {"before", before->digest()}, {"after", after->digest()}, {"changes", std::move(items)}});
    return kExitOk;
  }
  Table table({"PRINCIPAL", "ACTION", "AT AND BELOW", "BEFORE", "AFTER"});
  for (const policy::Change& change : changes) {
    table.Add({change.after.principal, std::string(Name(change.after.action)),
               change.after.tenant.text(), AnswerText(change.before), AnswerText(change.after)});
  }
  if (table.empty()) {
    console.Note(before->digest() == after->digest()
                     ? "the two are the same, byte for byte"
                     : "the files differ, and nobody may do more or less");
    return kExitOk;
  }
  table.Print(console);
  return kExitOk;
}

}  // namespace

CommandTable PolicyTestCommands() {
  return {
      {.path = "policy test",
       .group = Group::kAccess,
       .summary = "Run the cases that stand beside a policy; needs no server.",
       .details = "A document of the kind Case says who asks for what, and what must be answered.",
       .arguments = {{.name = "DIR",
                      .help = "the folder (default: policy.folder)",
                      .required = false,
                      .completes = Completes::kFolder}},
       .examples = {{"ringfence policy test examples/policies/hospital", "all of its cases"}},
       .exit_codes = "0 all passed, 1 a case failed",
       .handler = Test},
      {.path = "policy plan",
       .group = Group::kAccess,
       .summary = "Show what a new policy folder would change, for whom; needs no server.",
       .details = "With one folder, that one is held against policy.folder, or with --in-force "
                  "against the policy that the server has in force. Boundaries, quotas, network "
                  "and box rules are not compared.",
       .options = {InForceOption()},
       .arguments = {{.name = "OLD",
                      .help = "the folder as it is; with one argument, the new one",
                      .completes = Completes::kFolder},
                     {.name = "NEW",
                      .help = "the folder as it will be",
                      .required = false,
                      .completes = Completes::kFolder}},
       .examples = {{"ringfence policy plan policy/ policy-next/", "who may do more or less"},
                    {"ringfence policy plan policy/ --in-force", "what an apply would change"}},
       .handler = Plan},
  };
}

}  // namespace ringfence::cli
