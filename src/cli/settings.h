#pragma once

// Every setting, in one table: its key in the file, its environment variable, its flag, what it is
// without any, and what is a valid value. Flags win over the environment, the environment over the
// file, the file over the defaults.

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/secret.h"
#include "cli/command.h"

namespace ringfence::cli {

enum class Setting {
  kState,
  kServerListen,
  kServerAddress,
  kServerNames,
  kServerCaCertificate,
  kServerCaKey,
  kServerRequestsPerSecond,
  kServerDatabase,
  kServerWitnesses,
  kServerWitnessCa,
  kServerRules,
  kServerTelemetrySeconds,
  kServerAlertWebhook,
  kServerAlertWebhookCa,
  kNodeName,
  kNodeDriverRoot,
  kNodeScenario,
  kNodeUidBase,
  kNodeUplink,
  kNodeResolvers,
  kNodeMounts,
  kNodeImageVerifier,
  kNodeCdiDir,
  kNodeAssessEvery,
  kPolicyFolder,
  kPolicyInsteadOf,
  kLogLevel,
  kLogFormat,
  kClientServer,
  kClientCa,
  kClientToken,
  kClientTenant,
  kOutput,
};
inline constexpr std::size_t kSettingCount = 33;
inline constexpr std::size_t kConfigBytesMax = 256 * 1024;

enum class ValueKind {
  kText,
  kAddress,
  kAddresses,  // of servers, any of which will do
  kFile,
  kFolder,
  kNumber,
  kWord,
  kNames,
  kSecret,
  kDatabase
};

struct SettingSpec {
  Setting setting;
  std::string_view key;          // "server.listen"
  std::string_view environment;  // "RINGFENCE_LISTEN"
  std::string_view flag;         // "listen"; empty: none
  ValueKind kind = ValueKind::kText;
  std::string_view fallback;  // as shown; one that begins with '<' is worked out when it is loaded
  std::string_view help;
  std::string_view words = {};  // for kWord
  std::int64_t least = 0;       // for kNumber
  std::int64_t most = 0;
};

std::span<const SettingSpec> SettingTable();
const SettingSpec& Spec(Setting setting);
// The option of a command that sets it.
OptionSpec SettingOption(Setting setting, char letter = 0);
// Why `text` is no value for it: the message says what is wrong, the hint what is right.
Status CheckValue(const SettingSpec& spec, std::string_view text);

enum class Origin { kDefault, kFound, kFile, kEnvironment, kFlag };

struct SettingValue {
  std::string text;  // of a secret: always empty
  Origin origin = Origin::kDefault;
  std::string source;  // "default", "flag --listen", "/etc/ringfence/ringfence.yaml:3"
};

// Whatever was wrong, all of it, and where.
struct Finding {
  std::string where;  // "ringfence.yaml:12", "RINGFENCE_LISTEN", "--listen"
  std::string key;    // may be empty
  std::string what;
  std::string fix;  // may be empty
};

class Settings {
 public:
  // Paths given in the file are relative to the file, all others to the current folder.
  const std::string& Text(Setting setting) const { return At(setting).text; }
  bool Given(Setting setting) const { return At(setting).origin > Origin::kFound; }
  const SettingValue& At(Setting setting) const {
    return values_[static_cast<std::size_t>(setting)];
  }
  std::int64_t Number(Setting setting) const;
  std::vector<std::string> Names(Setting setting) const;  // a list, separated by commas in text
  // RINGFENCE_TOKEN; empty when it is not set. Never part of At().
  const SecretBytes& token() const { return token_; }

  const std::string& state() const { return Text(Setting::kState); }
  // A state folder that was only found by searching may have been put there by anyone: what is
  // read from it must belong to us, to root, or to the user behind sudo.
  bool MayTrust(const std::string& path) const;
  // The file that was read; empty when there is none.
  const std::string& file() const { return file_; }

 private:
  friend class SettingsLoader;
  SettingValue values_[kSettingCount];
  SecretBytes token_;
  std::string file_;
  std::string sudo_user_;  // the number of the user behind sudo; may be empty
};

struct SettingsInput {
  std::map<std::string, std::string> environment;
  std::vector<std::pair<std::string, std::string>> flags;  // Parsed::options
  std::string folder;                                      // the current one, absolute
  std::string search_top = "/";  // the last folder in which a state folder is looked for
  std::string system_file = "/etc/ringfence/ringfence.yaml";
  std::string host_name = "localhost";
};

struct LoadedSettings {
  Settings settings;  // what is wrong is left at its default
  std::vector<Finding> findings;
};
LoadedSettings LoadSettings(const SettingsInput& input);

// One error of all findings, for a command that cannot go on.
Error FindingsError(const std::vector<Finding>& findings);

std::vector<std::string> Words(std::string_view spaced);

}  // namespace ringfence::cli
