// `ringfence prove`

#include <algorithm>

#include "cli/api.h"
#include "cli/commands.h"
#include "cli/console.h"
#include "cli/fields.h"
#include "cli/prover.h"
#include "cli/settings.h"
#include "os/interrupts.h"

namespace ringfence::cli {
namespace {

constexpr int kExitLeaked = 1;
constexpr std::size_t kWhyBytesMax = 500;

std::string ClassesOf(const isolate::Probe& probe) {
  std::string text;
  for (const model::IsolationClass one : probe.classes) {
    text += (text.empty() ? "" : " ") + std::string(Name(one));
  }
  return text;
}

std::string WallsOf(const isolate::Probe& probe) {
  std::string text;
  for (const isolate::Wall wall : probe.control) {
    text += (text.empty() ? "" : " ") + std::string(isolate::Name(wall));
  }
  return text;
}

Result<std::vector<const isolate::Probe*>> Wanted(const Parsed& parsed) {
  std::vector<const isolate::Probe*> wanted;
  for (const std::string& name : parsed.Values("probe")) {
    const isolate::Probe* const probe = isolate::FindProbe(name);
    if (probe == nullptr) {
      return Error{Code::kInvalidArgument, "--probe: no probe \"" + name + "\"",
                   "`ringfence prove --list` shows them", "probe"};
    }
    wanted.push_back(probe);
  }
  if (wanted.empty()) {
    for (const isolate::Probe& probe : isolate::Probes()) {
      wanted.push_back(&probe);
    }
  }
  if (const auto text = parsed.Value("class")) {
    RINGFENCE_ASSIGN(const model::IsolationClass wanted_class, model::ParseIsolationClass(*text));
    std::erase_if(wanted, [&](const isolate::Probe* probe) {
      return std::find(probe->classes.begin(), probe->classes.end(), wanted_class) ==
             probe->classes.end();
    });
  }
  if (wanted.empty()) {
    return Error{Code::kInvalidArgument, "no probe speaks about that class",
                 "`ringfence prove --list` shows which do", "class"};
  }
  return wanted;
}

int ShowList(Console& console, const std::vector<const isolate::Probe*>& probes) {
  if (!console.table()) {
    JsonArray list;
    for (const isolate::Probe* probe : probes) {
      JsonArray classes;
      for (const model::IsolationClass one : probe->classes) {
        classes.emplace_back(std::string(Name(one)));
      }
      JsonArray walls;
      for (const isolate::Wall wall : probe->control) {
        walls.emplace_back(std::string(isolate::Name(wall)));
      }
      list.push_back(JsonObject{{"name", std::string(probe->name)},
                                {"title", std::string(probe->title)},
                                {"what", std::string(probe->what)},
                                {"classes", std::move(classes)},
                                {"control", std::move(walls)}});
    }
    console.Show(list);
    return 0;
  }
  Table table({"PROBE", "TRIES", "CLASSES", "CONTROL TAKES AWAY"});
  for (const isolate::Probe* probe : probes) {
    table.Add(
        {std::string(probe->name), std::string(probe->title), ClassesOf(*probe), WallsOf(*probe)});
  }
  table.Print(console);
  return 0;
}

// The node that was named, or the only one there is.
Result<std::string> NodeOf(Api& api, const Parsed& parsed) {
  if (const auto node = parsed.Value("node")) {
    return *node;
  }
  RINGFENCE_ASSIGN(const JsonArray nodes, api.List("/v1/nodes", {}, 2));
  if (nodes.size() != 1) {
    return Error{Code::kInvalidArgument,
                 nodes.empty() ? "no node has joined" : "there are several nodes",
                 nodes.empty() ? "start one: `ringfence up`" : "name one with --node", "node"};
  }
  return TextOf(nodes.front(), "name");
}

std::string Styled(const Console& console, const std::string& result) {
  return result == "held"     ? console.Good(result)
         : result == "leaked" ? console.Bad(result)
                              : console.Doubtful(result);
}

int ShowDocument(Console& console, const Json& document,
                 const std::vector<const isolate::Probe*>& only) {
  bool leaked = false;
  Table table({"PROBE", "RESULT", "TIME", "WHY"});
  const Json* const probes = Field(document, "probes");
  for (const isolate::Probe* probe : only) {
    const Json* const result = probes == nullptr ? nullptr : Field(*probes, probe->name);
    if (result == nullptr) {
      continue;
    }
    leaked = leaked || TextOf(*result, "result") == "leaked";
    table.Add({std::string(probe->name), TextOf(*result, "result"), TextOf(*result, "time"),
               TextOf(*result, "why")});
  }
  if (!console.table()) {
    console.Show(document);
    return leaked ? kExitLeaked : 0;
  }
  if (table.empty()) {
    console.Note("nothing was proved on this node yet; `ringfence prove` does it");
    return 0;
  }
  table.Print(console);
  const Json* const classes = Field(document, "classes");
  if (classes != nullptr && classes->is_object()) {
    console.out() << '\n';
    for (const auto& member : classes->get_object()) {
      const Json& sum = member.value();
      console.out() << "class " << std::string(member.key()) << ": "
                    << Styled(console, TextOf(sum, "grade")) << " (" << TextOf(sum, "held")
                    << " held, " << TextOf(sum, "leaked") << " leaked, " << TextOf(sum, "untried")
                    << " could not be tried)"
                    << (BoolOf(document, "simulated") ? ", GPUs simulated" : "") << '\n';
    }
  }
  return leaked ? kExitLeaked : 0;
}

Result<Json> TryAll(Api& api, Console& console, Presses& presses, const std::string& node,
                    const std::vector<const isolate::Probe*>& probes) {
  Prover prover(api, console, presses, node);
  JsonArray claims;
  for (std::size_t i = 0; i < probes.size() && presses.count() == 0; ++i) {
    console.Progress("[" + std::to_string(i + 1) + "/" + std::to_string(probes.size()) + "] " +
                     std::string(probes[i]->name) + ": " + std::string(probes[i]->title));
    RINGFENCE_ASSIGN(const TriedProbe tried, prover.Try(*probes[i]));
    claims.push_back(JsonObject{{"name", std::string(tried.probe->name)},
                                {"attack", tried.attack},
                                {"control", tried.control},
                                {"why", tried.why.substr(0, kWhyBytesMax)}});
  }
  const Json body = JsonObject{{"probes", std::move(claims)}};
  return api.Post(Target("/v1/nodes", node, "/proofs"), &body, FreshIdempotencyKey());
}

Result<int> Prove(Invocation& invocation) {
  Console& console = invocation.console;
  RINGFENCE_ASSIGN(const auto probes, Wanted(invocation.parsed));
  if (invocation.parsed.Has("list")) {
    return ShowList(console, probes);
  }
  RINGFENCE_ASSIGN(Connection connection, Connect(invocation.settings));
  Presses presses;
  RINGFENCE_ASSIGN(const auto interrupts, os::Interrupts::Catch(1, [&](int) { presses.Press(); }));
  RINGFENCE_ASSIGN(const auto api, Api::Create(std::move(connection)));
  RINGFENCE_ASSIGN(const std::string node, NodeOf(*api, invocation.parsed));
  if (invocation.parsed.Has("last")) {
    RINGFENCE_ASSIGN(const Json document, api->Get(Target("/v1/nodes", node, "/proofs")));
    return ShowDocument(console, document, probes);
  }
  RINGFENCE_ASSIGN(const Json document, TryAll(*api, console, presses, node, probes));
  return ShowDocument(console, document, probes);
}

}  // namespace

CommandTable ProveCommands() {
  return {
      {.path = "prove",
       .group = Group::kEvidence,
       .summary =
           "Attack a node's walls with a real victim and a real attacker, and keep the result.",
       .details =
           "Each probe runs twice, as leases of the node: with all walls, where it must be held, "
           "and\n"
           "with only those taken away that it is about, where it must get through: a probe whose\n"
           "control does not get through could not be tried. A box with walls taken away runs\n"
           "nothing but the probe. The node signs how each box ended; the results are in the "
           "audit\n"
           "log, and where a probe got through, the node serves one tenant at a time.",
       .options = {{.name = "node",
                    .value = "NODE",
                    .help = "which node (default: the only one)",
                    .completes = Completes::kNode},
                   {.name = "class",
                    .value = "CLASS",
                    .help = "only probes that speak about this isolation class",
                    .completes = Completes::kWords,
                    .words = "gpu mig time mps"},
                   {.name = "probe",
                    .value = "NAME",
                    .help = "only this probe; may be given again",
                    .repeated = true},
                   {.name = "list", .help = "show the probes and try none"},
                   {.name = "last", .help = "show the last results and try nothing"}},
       .examples = {{"ringfence prove", "every probe, on the only node"},
                    {"ringfence prove --node gpu-07 --probe ptrace -o json",
                     "one probe, for a program"},
                    {"ringfence prove --last", "what came of it the last time"}},
       .exit_codes =
           "0 nothing leaked, 1 something did; what could not be tried is shown and does not count",
       .handler = Prove}};
}

}  // namespace ringfence::cli
