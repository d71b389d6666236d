#include <algorithm>
#include <charconv>

#include "base/check.h"
#include "cli/settings.h"
#include "cli/suggest.h"
#include "store/database.h"

namespace ringfence::cli {
namespace {

constexpr SettingSpec kTable[kSettingCount] = {
    {Setting::kState, "state", "RINGFENCE_STATE", "state", ValueKind::kFolder, "<.ringfence>",
     "folder of all that `up` makes; looked for from here upwards"},
    {Setting::kServerListen, "server.listen", "RINGFENCE_LISTEN", "listen", ValueKind::kAddress,
     "127.0.0.1:8443", "address and port of the API; port 0 picks a free one"},
    {Setting::kServerAddress, "server.address", "RINGFENCE_SERVER_ADDRESS", "",
     ValueKind::kAddresses, "<server.listen>",
     "where nodes and users reach the server; several servers with commas between"},
    {Setting::kServerNames, "server.names", "RINGFENCE_SERVER_NAMES", "", ValueKind::kNames, "",
     "more DNS names and IP addresses for the server's certificate"},
    {Setting::kServerCaCertificate, "server.ca.certificate", "RINGFENCE_SERVER_CA_CERTIFICATE", "",
     ValueKind::kFile, "", "PEM certificate of your CA, instead of one that `up` makes"},
    {Setting::kServerCaKey, "server.ca.key", "RINGFENCE_SERVER_CA_KEY", "", ValueKind::kFile, "",
     "PEM key of server.ca.certificate"},
    {Setting::kServerRequestsPerSecond, "server.requests_per_second",
     "RINGFENCE_SERVER_REQUESTS_PER_SECOND", "", ValueKind::kNumber, "2000",
     "most requests a second from one address", "", 1, 1000000},
    {Setting::kServerDatabase, "server.database", "RINGFENCE_DATABASE", "", ValueKind::kDatabase,
     "<state>/server/ringfence.db",
     "where records are kept: an SQLite file, or postgresql://USER@HOST/DATABASE for several "
     "servers"},
    {Setting::kServerWitnesses, "server.witnesses", "RINGFENCE_SERVER_WITNESSES", "",
     ValueKind::kText, "",
     "outside witnesses of the audit log: URL, space, verifier key; commas between"},
    {Setting::kServerWitnessCa, "server.witness_ca", "RINGFENCE_SERVER_WITNESS_CA", "",
     ValueKind::kFile, "/etc/ssl/certs/ca-certificates.crt",
     "PEM file of the CAs that prove the servers of server.witnesses"},
    {Setting::kServerRules, "server.rules", "RINGFENCE_SERVER_RULES", "", ValueKind::kFolder, "",
     "folder of Sigma rules that the server evaluates beside ours; read again when it changes"},
    {Setting::kServerTelemetrySeconds, "server.telemetry_seconds",
     "RINGFENCE_SERVER_TELEMETRY_SECONDS", "", ValueKind::kNumber, "60",
     "how much time of a GPU's readings (one a second) becomes one event", "", 1, 3600},
    {Setting::kServerAlertWebhook, "server.alert_webhook", "RINGFENCE_SERVER_ALERT_WEBHOOK", "",
     ValueKind::kText, "", "https URL that is told of each new alert, signed"},
    {Setting::kServerAlertWebhookCa, "server.alert_webhook_ca", "RINGFENCE_SERVER_ALERT_WEBHOOK_CA",
     "", ValueKind::kFile, "/etc/ssl/certs/ca-certificates.crt",
     "PEM file of the CAs that prove the server of server.alert_webhook"},
    {Setting::kNodeName, "node.name", "RINGFENCE_NODE_NAME", "node-name", ValueKind::kText,
     "<host name>", "what this node is called"},
    {Setting::kNodeDriverRoot, "node.driver_root", "RINGFENCE_DRIVER_ROOT", "driver-root",
     ValueKind::kFolder, "auto",
     "where the GPU driver's files are; auto: the real driver if there is one, else simulated"},
    {Setting::kNodeScenario, "node.scenario", "RINGFENCE_SCENARIO", "scenario", ValueKind::kFile,
     "", "scenario file of the simulated GPUs; without one: eight of one model"},
    {Setting::kNodeUidBase, "node.uid_base", "RINGFENCE_UID_BASE", "", ValueKind::kNumber,
     "1000000000", "first of the user ids that boxes are mapped to", "", 100000, 2000000000},
    {Setting::kNodeUplink, "node.uplink", "RINGFENCE_UPLINK", "", ValueKind::kText, "",
     "interface by which boxes reach the addresses that policy opens; without one: none"},
    {Setting::kNodeResolvers, "node.resolvers", "RINGFENCE_RESOLVERS", "", ValueKind::kText, "",
     "who looks up DNS names for boxes: up to 3 addresses, commas between; without: the host's"},
    {Setting::kNodeMounts, "node.mounts", "RINGFENCE_NODE_MOUNTS", "", ValueKind::kText, "",
     "folders that boxes may have by name: NAME=DIR, or NAME=DIR:rw; commas between"},
    {Setting::kNodeImageVerifier, "node.image_verifier", "RINGFENCE_IMAGE_VERIFIER", "",
     ValueKind::kFile, "", "program that must vouch for an image before it is kept"},
    {Setting::kNodeCdiDir, "node.cdi_dir", "RINGFENCE_CDI_DIR", "cdi-dir", ValueKind::kFolder, "",
     "folder for CDI documents of leases that other runtimes' containers take; none: no such "
     "leases"},
    {Setting::kNodeAssessEvery, "node.assess_every", "RINGFENCE_NODE_ASSESS_EVERY", "",
     ValueKind::kText, "6h", "how often `up` has checks run on its node; off: never"},
    {Setting::kPolicyFolder, "policy.folder", "RINGFENCE_POLICY", "policy", ValueKind::kFolder,
     "<state>/policy", "folder of the policy's YAML files"},
    {Setting::kPolicyInsteadOf, "policy.instead_of", "RINGFENCE_POLICY_INSTEAD_OF", "",
     ValueKind::kNumber, "0",
     "version of the policy that a server that starts replaces by its policy folder; 0: none", "",
     0, 2000000000},
    {Setting::kLogLevel, "log.level", "RINGFENCE_LOG_LEVEL", "log-level", ValueKind::kWord, "info",
     "least level of the daemons' log lines", "debug info warning error"},
    {Setting::kLogFormat, "log.format", "RINGFENCE_LOG_FORMAT", "log-format", ValueKind::kWord,
     "text", "what the daemons' log lines look like", "text json"},
    {Setting::kClientServer, "client.server", "RINGFENCE_SERVER", "server", ValueKind::kAddresses,
     "<of the state folder>", "address of the server to talk to; of several, any will do"},
    {Setting::kClientCa, "client.ca", "RINGFENCE_CA", "ca", ValueKind::kFile,
     "<of the state folder>", "PEM file of the CA that the server must be proven by"},
    {Setting::kClientToken, "client.token", "RINGFENCE_TOKEN", "", ValueKind::kSecret,
     "<of the state folder>", "token to act with; only from the environment, never shown"},
    {Setting::kClientTenant, "client.tenant", "RINGFENCE_TENANT", "tenant", ValueKind::kText, "",
     "tenant that `run` works for when none is named"},
    {Setting::kOutput, "output", "RINGFENCE_OUTPUT", "output", ValueKind::kWord, "table",
     "how results are printed", "table json yaml csv"},
};

constexpr std::size_t kValueBytesMax = 4096;

Status CheckAddress(std::string_view text) {
  const Error bad{Code::kInvalidArgument, "\"" + std::string(text) + "\" is no address and port",
                  "write it as 127.0.0.1:8443, [::1]:8443 or name.example:8443"};
  const std::size_t colon = text.rfind(':');
  if (colon == std::string_view::npos || colon == 0) {
    return bad;
  }
  const std::string_view host = text.substr(0, colon);
  const std::string_view port = text.substr(colon + 1);
  unsigned number = 0;
  const auto [end, wrong] = std::from_chars(port.data(), port.data() + port.size(), number);
  if (port.empty() || wrong != std::errc{} || end != port.data() + port.size() || number > 65535) {
    return bad;
  }
  const bool bracketed = host.front() == '[' && host.back() == ']' && host.size() > 2;
  const std::string_view name = bracketed ? host.substr(1, host.size() - 2) : host;
  const auto allowed = [&](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' ||
           c == '-' || c == '_' || (bracketed && c == ':');
  };
  return std::all_of(name.begin(), name.end(), allowed) ? Status{} : Status(bad);
}

Status CheckAddresses(std::string_view text) {
  for (std::size_t comma = 0; comma != std::string_view::npos;) {
    comma = text.find(',');
    RINGFENCE_TRY(CheckAddress(text.substr(0, comma)));
    text.remove_prefix(comma == std::string_view::npos ? 0 : comma + 1);
  }
  return {};
}

Status CheckNumber(const SettingSpec& spec, std::string_view text) {
  std::int64_t number = 0;
  const auto [end, wrong] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (text.empty() || wrong != std::errc{} || end != text.data() + text.size() ||
      number < spec.least || number > spec.most) {
    return Error{Code::kInvalidArgument, "\"" + std::string(text) + "\" is out of range",
                 "write a whole number from " + std::to_string(spec.least) + " to " +
                     std::to_string(spec.most)};
  }
  return {};
}

// A password in a URL would be seen in files, in `config show` and in the environment.
Status CheckDatabase(std::string_view text) {
  if (!store::IsPostgresUrl(text)) {
    return text.find("://") == text.npos
               ? Status{}
               : Status(Error{Code::kInvalidArgument, "this is no URL of a database we know",
                              "write a file's path, or postgresql://USER@HOST/DATABASE"});
  }
  const std::string_view rest = text.substr(text.find("://") + 3);
  const std::string_view authority = rest.substr(0, rest.find_first_of("/?"));
  const std::size_t at = authority.rfind('@');
  const bool inside =
      at != std::string_view::npos && authority.substr(0, at).find(':') != std::string_view::npos;
  if (inside || rest.find("?password=") != rest.npos || rest.find("&password=") != rest.npos) {
    return Error{Code::kInvalidArgument, "the URL holds a password",
                 "put it into a file of libpq's (mode 0600) and name that with ?passfile=FILE"};
  }
  return {};
}

Status CheckWord(const SettingSpec& spec, std::string_view text) {
  const std::vector<std::string> words = Words(spec.words);
  if (std::find(words.begin(), words.end(), text) != words.end()) {
    return {};
  }
  std::string all;
  for (const std::string& word : words) {
    all += (all.empty() ? "" : ", ") + word;
  }
  return Error{Code::kInvalidArgument, "\"" + std::string(text) + "\" is none of " + all,
               DidYouMean(text, words, "choose one of them")};
}

}  // namespace

std::span<const SettingSpec> SettingTable() { return kTable; }

const SettingSpec& Spec(Setting setting) {
  const SettingSpec& spec = kTable[static_cast<std::size_t>(setting)];
  RINGFENCE_CHECK(spec.setting == setting);
  return spec;
}

OptionSpec SettingOption(Setting setting, char letter) {
  const SettingSpec& spec = Spec(setting);
  RINGFENCE_CHECK(!spec.flag.empty());
  OptionSpec option{.name = spec.flag, .letter = letter, .help = spec.help};
  switch (spec.kind) {
    case ValueKind::kAddress:
    case ValueKind::kAddresses:
      option.value = "ADDR:PORT";
      break;
    case ValueKind::kFile:
      option.value = "FILE";
      option.completes = Completes::kFile;
      break;
    case ValueKind::kFolder:
      option.value = "DIR";
      option.completes = Completes::kFolder;
      break;
    case ValueKind::kNumber:
      option.value = "N";
      break;
    case ValueKind::kWord:
      option.value = "WORD";
      option.completes = Completes::kWords;
      option.words = spec.words;
      break;
    case ValueKind::kDatabase:
      option.value = "URL";
      break;
    case ValueKind::kText:
    case ValueKind::kNames:
    case ValueKind::kSecret:
      option.value = "NAME";
      break;
  }
  return option;
}

Status CheckValue(const SettingSpec& spec, std::string_view text) {
  if (text.size() > kValueBytesMax ||
      std::any_of(text.begin(), text.end(), [](char c) { return c == '\0' || c == '\n'; })) {
    return Error{Code::kInvalidArgument, "the value is too long or holds a line break or NUL",
                 "write at most " + std::to_string(kValueBytesMax) + " bytes on one line"};
  }
  switch (spec.kind) {
    case ValueKind::kAddress:
      return CheckAddress(text);
    case ValueKind::kAddresses:
      return CheckAddresses(text);
    case ValueKind::kNumber:
      return CheckNumber(spec, text);
    case ValueKind::kWord:
      return CheckWord(spec, text);
    case ValueKind::kDatabase:
      RINGFENCE_TRY(CheckDatabase(text));
      break;
    case ValueKind::kFile:
    case ValueKind::kFolder:
    case ValueKind::kText:
    case ValueKind::kNames:
    case ValueKind::kSecret:
      break;
  }
  if (text.empty() && spec.kind != ValueKind::kNames) {
    return Error{Code::kInvalidArgument, "the value is empty", "write a value, or leave it out"};
  }
  return {};
}

std::vector<std::string> Words(std::string_view spaced) {
  std::vector<std::string> words;
  while (!spaced.empty()) {
    const std::size_t space = spaced.find(' ');
    if (space != 0) {
      words.emplace_back(spaced.substr(0, space));
    }
    spaced.remove_prefix(space == std::string_view::npos ? spaced.size() : space + 1);
  }
  return words;
}

}  // namespace ringfence::cli
