// `ringfence doctor`

#include "assure/doctor.h"

#include <algorithm>

#include "base/code.h"
#include "cli/commands.h"
#include "cli/console.h"
#include "cli/context.h"
#include "cli/human.h"
#include "cli/node_process.h"
#include "cli/settings.h"
#include "cli/suggest.h"
#include "cli/text.h"
#include "cli/up_state.h"
#include "os/beneath.h"
#include "os/file.h"
#include "os/identity.h"
#include "policy/policy.h"
#include "store/migrations.h"

namespace ringfence::cli {
namespace {

using assure::Check;
using assure::Outcome;
using assure::Role;

Result<Role> RoleOf(const Parsed& parsed) {
  const std::string text = parsed.Value("role").value_or("all");
  if (text == "all") {
    return Role::kBoth;
  }
  if (text == "server") {
    return Role::kServer;
  }
  if (text == "node") {
    return Role::kNode;
  }
  return Error{Code::kInvalidArgument, "--role: \"" + text + "\" is none of server, node, all",
               DidYouMean(text, {"server", "node", "all"}, "choose one of them")};
}

// Beside the program in a build, in its own folder when installed.
std::string ContentFile(const std::string& program_folder, const std::string& name) {
  const std::string built = program_folder + "/content/" + name;
  return os::Exists(built) ? built : program_folder + "/../share/ringfence/" + name;
}

Json ToJson(const std::vector<Check>& checks) {
  JsonArray items;
  for (const Check& check : checks) {
    items.push_back(JsonObject{{"id", check.id},
                               {"what", check.what},
                               {"result", std::string(Name(check.outcome))},
                               {"evidence", check.evidence},
                               {"why", check.why},
                               {"fix", check.fix}});
  }
  return JsonObject{{"ok", !assure::AnyFails(checks)}, {"checks", std::move(items)}};
}

std::string Coloured(const Console& console, Outcome outcome) {
  const std::string name(Name(outcome));
  switch (outcome) {
    case Outcome::kOk:
      return console.Good(name);
    case Outcome::kFail:
      return console.Bad(name);
    case Outcome::kWarn:
    case Outcome::kUnknown:
      return console.Doubtful(name);
  }
  return name;
}

void Print(Console& console, const std::vector<Check>& checks) {
  Table table({"RESULT", "CHECK", "SEEN"});
  for (const Check& check : checks) {
    table.Add({std::string(Name(check.outcome)), check.id, check.evidence});
  }
  table.Print(console);
  for (const Outcome outcome : {Outcome::kFail, Outcome::kWarn, Outcome::kUnknown}) {
    for (const Check& check : checks) {
      if (check.outcome != outcome) {
        continue;
      }
      console.out() << '\n'
                    << Coloured(console, outcome) << ' ' << console.Bold(Safe(check.id)) << ": "
                    << Safe(check.evidence) << '\n'
                    << "  for: " << Safe(check.what) << '\n';
      if (!check.why.empty()) {
        console.out() << "  why: " << Safe(check.why) << '\n';
      }
      if (!check.fix.empty()) {
        console.out() << "  fix: " << Safe(check.fix) << '\n';
      }
    }
  }
  const auto count = [&](Outcome outcome) {
    return static_cast<std::uint64_t>(
        std::count_if(checks.begin(), checks.end(),
                      [&](const Check& check) { return check.outcome == outcome; }));
  };
  console.out() << '\n'
                << Count(checks.size(), "check") << ": " << count(Outcome::kOk) << " ok, "
                << count(Outcome::kWarn) << " to know, " << count(Outcome::kUnknown)
                << " not known, " << count(Outcome::kFail) << " in the way\n";
}

Check CheckCdiFolder(const std::string& folder) {
  Check check{"cdi.folder", "leases for other runtimes' containers",
              Outcome::kOk, folder + " is root's alone",
              "",           ""};
  const auto opened = os::OpenFolderOfRoot(folder);
  if (!opened.has_value()) {
    const bool absent = opened.error().code == Code::kNotFound;
    check.outcome = absent ? Outcome::kWarn : Outcome::kFail;
    check.evidence = absent ? folder + " is not there" : opened.error().message;
    check.why = "a container could be given devices that no lease of its own has";
    check.fix = absent ? "install -d -m 0755 " + folder + "; as a service the node cannot make it"
                       : opened.error().hint;
  }
  return check;
}

// Opening it would bring it to our schema; this only looks.
Check CheckDatabase(const std::string& where) {
  Check check{"server.database", "the server's records", Outcome::kOk, "", "", ""};
  const auto schema = store::SchemaAt(where);
  if (schema.has_value()) {
    check.evidence = "schema " + std::to_string(*schema) + " can be read";
    if (*schema < store::NewestSchema()) {
      check.outcome = Outcome::kWarn;
      check.why = "this program knows schema " + std::to_string(store::NewestSchema()) +
                  ": the server brings it there when it starts, and an older one may then refuse";
      check.fix = "make a backup with the program that made it: ringfence backup create";
    }
  } else if (schema.error().code == Code::kNotFound) {
    check.evidence = schema.error().message + ": the server makes it";
  } else {
    check.outcome = Outcome::kFail;
    check.evidence = schema.error().message;
    check.why = "the server does not start without its records";
    check.fix = schema.error().hint;
  }
  return check;
}

Check CheckPolicy(const std::string& folder) {
  Check check{"server.policy", "the policy in " + folder, Outcome::kOk, "", "", ""};
  const auto policy = policy::Policy::Load(folder);
  check.evidence = policy.has_value() ? "good" : policy.error().message;
  if (!policy.has_value()) {
    check.evidence = check.evidence.substr(0, check.evidence.find('\n'));
    check.outcome = Outcome::kFail;
    check.why = "the server does not start with a policy that has faults";
    check.fix = "ringfence policy check " + folder;
  }
  return check;
}

Result<int> Doctor(Invocation& invocation) {
  const Settings& settings = invocation.settings;
  RINGFENCE_ASSIGN(const Role role, RoleOf(invocation.parsed));
  RINGFENCE_ASSIGN(const std::string own, os::OwnPath());
  const std::string folder = own.substr(0, own.rfind('/'));
  assure::LookOptions options;
  options.state = settings.state();
  if (os::Exists(settings.state())) {
    if (const Status trusted = TrustState(settings); !trusted.has_value()) {
      options.state_trust = trusted.error().message;
    }
  }
  options.listen = settings.Text(Setting::kServerListen);
  if (IsUp(settings)) {
    const auto context = ReadContext(FindContext(settings));
    options.server_listens = context.has_value() ? context->server : options.listen;
  }
  options.uid_base = static_cast<unsigned>(settings.Number(Setting::kNodeUidBase));
  for (const char* program : {"ringfence-jailer", "ringfence-worker", "ringfence-init",
                              "ringfence-unpack", "ringfence-hook", "ringfence-resolve"}) {
    const auto path = OwnPart(program);
    options.programs.push_back(path.has_value() ? *path : program);
  }
  options.advisories_file = ContentFile(folder, "runtimes/runc.yaml");
  options.now = invocation.clock.Now();
  std::vector<Check> checks = assure::Judge(assure::Look(options), role);
  if (const std::string& cdi = settings.Text(Setting::kNodeCdiDir);
      !cdi.empty() && role != Role::kServer) {
    checks.push_back(CheckCdiFolder(cdi));
  }
  if (role != Role::kNode) {
    checks.push_back(CheckDatabase(settings.Text(Setting::kServerDatabase)));
    if (const std::string& policy = settings.Text(Setting::kPolicyFolder); os::Exists(policy)) {
      checks.push_back(CheckPolicy(policy));
    }
  }
  if (invocation.console.table()) {
    Print(invocation.console, checks);
  } else {
    invocation.console.Show(ToJson(checks));
  }
  return assure::AnyFails(checks) ? kExitFindings : kExitOk;
}

}  // namespace

CommandTable DoctorCommands() {
  return {
      {.path = "doctor",
       .group = Group::kOperate,
       .summary = "Say what on this machine would stop Ringfence, and how to mend it.",
       .details =
           "Looks at the kernel and what each control needs of it, cgroups, the runtime and\n"
           "its known flaws, disk, memory, clock, ports, user ids, the GPU driver, the server's\n"
           "records and policy. Changes nothing. What only root can try is tried when root runs "
           "it.",
       .options = {{.name = "role",
                    .value = "server|node|all",
                    .help = "what this machine is to be (default all)",
                    .completes = Completes::kWords,
                    .words = "server node all"},
                   SettingOption(Setting::kServerListen)},
       .examples = {{"ringfence doctor", "before the first `up`, as root"},
                    {"ringfence doctor --role server -o json", "for a program"}},
       .exit_codes = "0 nothing is in the way, 1 something is",
       .handler = Doctor}};
}

}  // namespace ringfence::cli
