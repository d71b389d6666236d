#include "cli/up_state.h"

#include <charconv>
#include <iomanip>

#include "base/code.h"
#include "base/json.h"
#include "cli/api.h"
#include "cli/context.h"
#include "crypto/x509.h"
#include "os/file.h"
#include "os/file_kind.h"
#include "os/file_owner.h"
#include "os/identity.h"
#include "os/process.h"
#include "os/self.h"

namespace ringfence::cli {
namespace {

constexpr std::size_t kSmallFileBytesMax = 256 * 1024;
constexpr std::size_t kLogTailBytes = 4096;
constexpr std::chrono::milliseconds kPollEvery{100};

std::string LockPath(const Settings& settings) { return settings.state() + "/up.lock"; }

void Sleep(std::chrono::milliseconds time) {
  std::vector<os::PollItem> none;
  (void)os::Poll(none, time);
}

// Where the sample policy is: beside the program in a build, in its own folder when installed.
Result<std::string> SamplePolicy() {
  RINGFENCE_ASSIGN(const std::string own, os::OwnPath());
  const std::string folder = own.substr(0, own.rfind('/'));
  for (const std::string& path :
       {folder + "/content/sample-policy", folder + "/../share/ringfence/sample-policy"}) {
    if (os::IsDirectory(path)) {
      return path;
    }
  }
  return Error{Code::kNotFound,
               "the sample policy is not where this program was built or installed",
               "name a policy folder: --policy DIR"};
}

// The user at the terminal: behind sudo, the one who called it.
unsigned CallerId(const char* variable, unsigned own) {
  const auto text = os::Environment(variable);
  unsigned id = own;
  if (os::IsRoot() && text.has_value()) {
    (void)std::from_chars(text->data(), text->data() + text->size(), id);
  }
  return id;
}

struct Health {
  bool healthy = false;
  bool settled = false;  // what is wrong will not change by waiting
  std::string waiting_for;
  std::vector<std::string> problems;
  std::int64_t gpus = 0;
  bool simulated = false;
};

std::int64_t IntIn(const JsonObject& object, const char* part, const char* name) {
  const Json* inner = object.if_contains(part);
  const Json* value =
      inner != nullptr && inner->is_object() ? inner->get_object().if_contains(name) : nullptr;
  return value != nullptr && value->is_int64() ? value->get_int64() : 0;
}

// Whether there are nodes, and all of them have been heard of: after a restart they are back within
// seconds.
bool AllHeard(const Json& nodes) {
  const auto* object = nodes.if_object();
  const Json* items = object == nullptr ? nullptr : object->if_contains("items");
  if (items == nullptr || !items->is_array() || items->get_array().empty()) {
    return false;
  }
  for (const Json& node : items->get_array()) {
    const Json* state = node.is_object() ? node.get_object().if_contains("state") : nullptr;
    if (state == nullptr || !state->is_string() || state->get_string() == "silent") {
      return false;
    }
  }
  return true;
}

// `nodes_page` was read before `status`, which is therefore at least as far.
Health HealthOf(const Json& nodes_page, const Json& status) {
  Health health;
  const auto* object = status.if_object();
  if (object == nullptr) {
    return health;
  }
  const Json* healthy = object->if_contains("healthy");
  health.healthy = healthy != nullptr && healthy->is_bool() && healthy->get_bool();
  const Json* simulated = object->if_contains("simulated");
  health.simulated = simulated != nullptr && simulated->is_bool() && simulated->get_bool();
  health.gpus = IntIn(*object, "gpus", "total");
  const std::int64_t nodes = IntIn(*object, "nodes", "total");
  const std::int64_t ready = IntIn(*object, "nodes", "ready");
  const std::int64_t dirty = IntIn(*object, "gpus", "dirty");
  if (const Json* problems = object->if_contains("problems");
      problems != nullptr && problems->is_array()) {
    for (const Json& problem : problems->get_array()) {
      const Json* what = problem.is_object() ? problem.get_object().if_contains("what") : nullptr;
      if (what != nullptr && what->is_string()) {
        health.problems.emplace_back(what->get_string());
      }
    }
  }
  if (nodes == 0) {
    health.waiting_for = "the node to join";
  } else if (!AllHeard(nodes_page)) {
    health.waiting_for = "the node to report";
  } else if (ready == nodes && dirty > 0) {
    health.waiting_for = "GPUs to be scrubbed";
  } else if (ready == nodes && health.gpus == 0) {
    health.waiting_for = "the node's inventory";
  } else {
    health.settled = true;
  }
  health.healthy = health.healthy && health.waiting_for.empty();
  return health;
}

void PrintWelcome(const Settings& settings, const Connection& connection, const Health& health,
                  std::ostream& out) {
  out << "Ringfence is up: API at https://" << connection.server << ", " << health.gpus << " GPUs"
      << (health.simulated ? " (simulated)" : "") << ".\n"
      << "The command line is signed in as " << connection.principal
      << ", the local administrator.\n";
  for (const std::string& problem : health.problems) {
    out << "  ! " << problem << "\n";
  }
  const auto own = os::OwnPath();
  const std::string program = own.has_value() ? *own : "ringfence";
  std::string prefix;
  const auto folder = os::CurrentFolder();
  if (settings.Given(Setting::kState) &&
      (!folder.has_value() || settings.state() != *folder + "/.ringfence")) {
    prefix = "RINGFENCE_STATE=" + settings.state() + " ";
  }
  out << "Try next:\n"
      << "  " << prefix << program << " status\n"
      << "  " << prefix << program << " run -t acme/research/vision -- sh -c 'ls /dev/nvidia*'\n"
      << "  " << prefix << program << " audit verify\n";
  out.flush();
}

}  // namespace

std::string UpFile(const Settings& settings) { return settings.state() + "/up.json"; }

Status WriteUpFile(const Settings& settings) {
  return os::WriteFile(UpFile(settings),
                       AsBytes(CanonicalJson(JsonObject{{"pid", os::ProcessId()}})));
}

Result<int> ReadUpFile(const Settings& settings) {
  RINGFENCE_ASSIGN(const std::string text, os::ReadText(UpFile(settings), kSmallFileBytesMax));
  RINGFENCE_ASSIGN(const Json json, ParseJson(text, kSmallFileBytesMax));
  RINGFENCE_ASSIGN(auto reader, JsonReader::Open(json));
  RINGFENCE_ASSIGN(const std::int64_t pid, reader.Int("pid", 1, INT32_MAX));
  return static_cast<int>(pid);
}

bool IsUp(const Settings& settings) {
  if (!os::Exists(LockPath(settings)) || !os::Exists(UpFile(settings))) {
    return false;
  }
  const auto lock = os::LockFile(LockPath(settings));
  if (!lock.has_value() && lock.error().code == Code::kPermissionDenied) {
    const auto pid = ReadUpFile(settings);  // another user's: go by whether the process is there
    return pid.has_value() && os::Exists("/proc/" + std::to_string(*pid));
  }
  return !lock.has_value();
}

Status ProvidePolicy(const Settings& settings) {
  const std::string& target = settings.Text(Setting::kPolicyFolder);
  if (os::Exists(target) || settings.Given(Setting::kPolicyFolder)) {
    return {};
  }
  RINGFENCE_ASSIGN(const std::string sample, SamplePolicy());
  RINGFENCE_ASSIGN(const auto names, os::ListDir(sample));
  const std::string beside = target + ".new";  // all of it or nothing
  RINGFENCE_TRY(os::RemoveTree(beside));
  RINGFENCE_TRY(os::MakeDirs(beside, 0755));
  for (const std::string& name : names) {
    RINGFENCE_ASSIGN(const Bytes text, os::ReadFile(sample + "/" + name, kSmallFileBytesMax));
    RINGFENCE_TRY(os::WriteFile(beside + "/" + name, text));
  }
  return os::Rename(beside, target);
}

bool NeedsJoin(const std::string& credentials_file, Timestamp now) {
  const auto text = os::ReadText(credentials_file, kSmallFileBytesMax);
  if (!text.has_value()) {
    return true;
  }
  const auto json = ParseJson(*text, kSmallFileBytesMax);
  const auto* object = json.has_value() ? json->if_object() : nullptr;
  const Json* certificate = object == nullptr ? nullptr : object->if_contains("certificate");
  if (certificate == nullptr || !certificate->is_string()) {
    return true;
  }
  const auto& pem = certificate->get_string();
  const auto facts = crypto::ReadCertificate(std::string_view(pem.data(), pem.size()));
  return !facts.has_value() || facts->not_after <= now + std::chrono::minutes(10);
}

Result<std::string> TakeLocalFile(const Settings& settings, const std::string& path) {
  RINGFENCE_ASSIGN(const std::string text, os::ReadText(path, kContextBytesMax));
  RINGFENCE_ASSIGN(const Json json, ParseJson(text, kContextBytesMax));
  RINGFENCE_ASSIGN(auto reader, JsonReader::Open(json));
  Connection connection;
  RINGFENCE_ASSIGN(connection.server, reader.String("server"));
  RINGFENCE_ASSIGN(connection.ca_pem, reader.String("ca_pem", kContextBytesMax));
  RINGFENCE_ASSIGN(const std::string token, reader.String("token"));
  connection.token = SecretBytes(AsBytes(token));
  RINGFENCE_ASSIGN(connection.principal, reader.String("principal"));
  RINGFENCE_ASSIGN(connection.log_vkey, reader.String("log_vkey"));
  RINGFENCE_ASSIGN(std::string join_token, reader.StringOr("join_token", ""));
  RINGFENCE_TRY(WriteContext(ContextPath(settings), connection));
  RINGFENCE_TRY(os::RemoveFile(path));
  const unsigned uid = CallerId("SUDO_UID", os::UserId());
  const unsigned gid = CallerId("SUDO_GID", os::GroupId());
  RINGFENCE_TRY(os::ChangeOwner(settings.state() + "/cli", uid, gid));
  RINGFENCE_TRY(os::ChangeOwner(ContextPath(settings), uid, gid));
  return join_token;
}

Status TrustState(const Settings& settings) {
  if (!os::IsRoot()) {
    return {};
  }
  constexpr unsigned kOthersWrite = 022;
  for (const char* folder : {"", "/node", "/node/jailer", "/node/driver", "/logs", "/policy"}) {
    const std::string path = settings.state() + folder;
    if (!os::Exists(path)) {
      continue;
    }
    RINGFENCE_ASSIGN(const os::FileKind kind, os::KindOf(path));
    RINGFENCE_ASSIGN(const os::FileOwner owner, os::OwnerOf(path));
    if (kind != os::FileKind::kFolder || owner.uid != 0 || (owner.mode & kOthersWrite) != 0) {
      return Error{Code::kPermissionDenied, path + " is not a folder that only root can change",
                   "what another user made there root must not trust: run this as that user, or "
                   "name another folder with --state"};
    }
  }
  return {};
}

int WaitUntilHealthy(const Settings& settings, Milliseconds wait, std::ostream& out) {
  const auto until = std::chrono::steady_clock::now() + wait;
  std::string said;
  for (;;) {
    auto connection = Connect(settings);
    Health health;
    health.waiting_for = "the server";
    if (connection.has_value()) {
      const std::string server = connection->server;
      const auto api = Api::Open(settings);
      const auto nodes = api.has_value() ? (*api)->Get("/v1/nodes") : Result<Json>(api.error());
      const auto status = nodes.has_value() ? (*api)->Get("/v1/status") : nodes;
      if (status.has_value()) {
        health = HealthOf(*nodes, *status);
      }
      if (status.has_value() && (health.healthy || health.settled)) {
        PrintWelcome(settings, *connection, health, out);
        return kExitOk;
      }
    }
    if (std::chrono::steady_clock::now() > until) {
      out << "It is not healthy yet (waited for " << health.waiting_for
          << "): " << LastLineOf(settings.state() + "/logs/node.log")
          << "\nSee `ringfence status`; logs: " << settings.state() << "/logs\n";
      return Facts(Code::kUnavailable).exit_status;
    }
    if (health.waiting_for != said) {
      out << "waiting for " << health.waiting_for << " ..." << std::endl;
      said = health.waiting_for;
    }
    Sleep(kPollEvery);
  }
}

std::string LastLineOf(const std::string& path) {
  const auto size = os::FileBytes(path);
  const auto file = os::OpenRead(path);
  if (!size.has_value() || !file.has_value()) {
    return "(no log)";
  }
  const std::uint64_t from = *size > kLogTailBytes ? *size - kLogTailBytes : 0;
  const auto tail = os::ReadAt(file->get(), from, kLogTailBytes);
  std::string text = tail.has_value() ? ToText(*tail) : "";
  while (!text.empty() && text.back() == '\n') {
    text.pop_back();
  }
  // Lines that begin with a space are hints; what happened is said before them.
  for (;;) {
    const std::size_t cut = text.rfind('\n');
    std::string line = cut == std::string::npos ? text : text.substr(cut + 1);
    if (cut == std::string::npos || !line.starts_with(' ')) {
      constexpr std::string_view kOwnName = "ringfence: ";
      return line.starts_with(kOwnName) ? line.substr(kOwnName.size()) : line;
    }
    text.resize(cut);
  }
}

}  // namespace ringfence::cli
