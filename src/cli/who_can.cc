// `ringfence who-can` and `ringfence what-can`: the reverse questions to a policy folder.

#include <map>

#include "base/code.h"
#include "cli/can_context.h"
#include "cli/commands.h"
#include "cli/console.h"
#include "cli/human.h"
#include "cli/policy_folder.h"
#include "cli/text.h"
#include "policy/outlook.h"
#include "policy/query.h"

namespace ringfence::cli {
namespace {

using Answer = cedar::Outlook::Answer;

Json ToJson(const policy::Policy& policy, const policy::Point& point) {
  JsonArray by;
  for (const std::uint32_t rule : point.rules) {
    const policy::RuleInWords words = policy::InWords(policy, rule, point.principal);
    by.push_back(JsonObject{{"id", words.id}, {"where", words.where}, {"words", words.words}});
  }
  JsonObject object{{"principal", point.principal},
                    {"action", std::string(Name(point.action))},
                    {"resource", point.tenant.text()},
                    {"answer", std::string(policy::Name(point.answer))},
                    {"by", std::move(by)}};
  if (point.answer == Answer::kIf) {
    object.emplace("condition", point.condition);
  }
  return object;
}

// Why yes, or the condition.
std::string Why(const policy::Policy& policy, const policy::Point& point,
                const cedar::ValueRecord& known) {
  return point.answer == Answer::kYes
             ? policy.DecideIn({point.principal, point.action, point.tenant}, known).reason
             : point.condition;
}

Result<int> WhoCan(Invocation& invocation) {
  const Parsed& parsed = invocation.parsed;
  RINGFENCE_ASSIGN(const auto policy, LoadAskedPolicy(invocation));
  RINGFENCE_ASSIGN(const policy::Action action, policy::FindAction(parsed.Argument(0)));
  RINGFENCE_ASSIGN(const auto named, policy::FindResource(*policy, parsed.Argument(1)));
  const model::TenantPath tenant = AboutWhat(invocation.console, action, named);
  RINGFENCE_ASSIGN(const cedar::ValueRecord known, KnownContext(invocation));
  std::vector<policy::Point> points = policy::WhoCan(*policy, action, tenant, known);
  const std::size_t all = points.size();
  std::erase_if(points, [](const policy::Point& point) { return point.answer == Answer::kNo; });
  Console& console = invocation.console;
  if (!console.table()) {
    JsonArray items;
    for (const policy::Point& point : points) {
      items.push_back(ToJson(*policy, point));
    }
    console.Show(items);
    return kExitOk;
  }
  Table table({"PRINCIPAL", "ANSWER", "BY OR IF"});
  for (const policy::Point& point : points) {
    table.Add(
        {point.principal, std::string(policy::Name(point.answer)), Why(*policy, point, known)});
  }
  if (!table.empty()) {
    table.Print(console);
  }
  console.Note(Count(all - points.size(), "other principal") + ": no");
  return kExitOk;
}

// Where the answer differs from that at the tenant above; above "/" it is no.
std::vector<policy::Point> WhereItChanges(const std::vector<policy::Point>& points) {
  std::map<std::pair<policy::Action, std::string>, const policy::Point*> known;
  for (const policy::Point& point : points) {
    known.emplace(std::pair(point.action, point.tenant.text()), &point);
  }
  std::vector<policy::Point> out;
  for (const policy::Point& point : points) {
    const bool top = point.tenant.is_root();
    const policy::Point* const above =
        top ? nullptr : known.at({point.action, point.tenant.parent().text()});
    const bool same = top ? point.answer == Answer::kNo
                          : point.answer == above->answer && point.condition == above->condition;
    if (!same) {
      out.push_back(point);
    }
  }
  return out;
}

Result<int> WhatCan(Invocation& invocation) {
  const Parsed& parsed = invocation.parsed;
  RINGFENCE_ASSIGN(const auto policy, LoadAskedPolicy(invocation));
  RINGFENCE_ASSIGN(const cedar::ValueRecord known, KnownContext(invocation));
  RINGFENCE_ASSIGN(std::vector<policy::Point> points,
                   policy::WhatCan(*policy, parsed.Argument(0), known));
  Console& console = invocation.console;
  if (!console.table()) {
    JsonArray items;
    for (const policy::Point& point : points) {
      if (point.answer != Answer::kNo) {
        items.push_back(ToJson(*policy, point));
      }
    }
    console.Show(items);
    return kExitOk;
  }
  Table table({"ACTION", "AT AND BELOW", "ANSWER", "BY OR IF"});
  for (const policy::Point& point : WhereItChanges(points)) {
    table.Add({std::string(Name(point.action)), point.tenant.text(),
               std::string(policy::Name(point.answer)), Why(*policy, point, known)});
  }
  if (table.empty()) {
    console.Note("nothing, whatever the circumstances");
    return kExitOk;
  }
  table.Print(console);
  return kExitOk;
}

}  // namespace

CommandTable WhoCanCommands() {
  const std::vector<OptionSpec> options = KnownContextOptions();
  return {
      {.path = "who-can",
       .group = Group::kAccess,
       .summary = "List everybody whom a policy folder lets do something; needs no server.",
       .details =
           "For the whole policy: yes and no hold whatever the circumstances are, \"if\" "
           "shows the condition that remains. What --at and --context say is known. With -o json "
           "each answer has the rules that it follows from, in `by`.",
       .options = options,
       .arguments = {{.name = "ACTION", .help = "such as audit.read"},
                     {.name = "RESOURCE", .help = "a tenant, or /"}},
       .examples = {{"ringfence who-can lease.request acme/research", "everybody who may"},
                    {"ringfence who-can policy.apply / --context mfa.age=5m --context "
                     "mfa.kind=webauthn",
                     "with a fresh second factor"}},
       .exit_codes = "0 answered, 4 unknown tenant",
       .handler = WhoCan},
      {.path = "what-can",
       .group = Group::kAccess,
       .summary = "List everything that a policy folder lets somebody do; needs no server.",
       .details = "One line where an answer differs from that at the tenant above.",
       .options = options,
       .arguments = {{.name = "PRINCIPAL", .help = "who, as the policy names them"}},
       .examples = {{"ringfence what-can alice@acme.example", "each action, and where"}},
       .exit_codes = "0 answered, 4 unknown principal",
       .handler = WhatCan}};
}

}  // namespace ringfence::cli
