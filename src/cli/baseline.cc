// `ringfence baseline record|verify|show`: what this machine is made of, signed, and what became
// of it.

#include "assure/baseline.h"

#include "base/code.h"
#include "base/encoding.h"
#include "cli/assess.h"
#include "cli/commands.h"
#include "cli/settings.h"
#include "cli/text.h"
#include "crypto/dsse.h"
#include "crypto/random.h"
#include "os/file.h"

namespace ringfence::cli {
namespace {

using assure::Baseline;
using assure::BaselineSight;
using assure::Drift;

constexpr unsigned kSecretMode = 0600;

struct BaselineFiles {
  std::string baseline;
  std::string key;         // signs; not needed for verifying
  std::string public_key;  // verifies
};

// Beside each other in the state folder, unless they are named.
Result<BaselineFiles> FilesOf(const Invocation& invocation) {
  const Parsed& parsed = invocation.parsed;
  const std::string state = invocation.settings.state();
  const bool all_named = parsed.Has("file") && (parsed.Has("key") || parsed.Has("public-key"));
  if (!all_named && !invocation.settings.MayTrust(state)) {
    return Error{Code::kPermissionDenied, state + " belongs to somebody else",
                 "name the files: --file and --key or --public-key"};
  }
  BaselineFiles files;
  files.baseline = parsed.Value("file").value_or(state + "/baseline.json");
  files.key = parsed.Value("key").value_or(state + "/baseline.key");
  files.public_key = parsed.Value("public-key").value_or(state + "/baseline.pub");
  return files;
}

Result<crypto::SigningKey> OpenSigningKey(const std::string& path) {
  const auto text = os::ReadText(path, 256);
  if (!text.has_value() && text.error().code != Code::kNotFound) {
    return text.error();
  }
  if (text.has_value()) {
    auto seed = FromBase64(assure::Trim(*text));
    if (!seed.has_value() || seed->size() != 32) {
      return Error{Code::kCorrupt, path + " is no signing key",
                   "it is the Base64 of 32 bytes; move it away and a new one is made"};
    }
    return crypto::SigningKey::FromSeed(SecretBytes(std::move(*seed)));
  }
  SecretBytes made = crypto::RandomSecret(32);
  RINGFENCE_TRY(os::CreateFileDurable(path, AsBytes(Base64(made.Reveal())), kSecretMode));
  return crypto::SigningKey::FromSeed(std::move(made));
}

Result<crypto::PublicKey> OpenPublicKey(const std::string& path) {
  RINGFENCE_ASSIGN(const std::string text, os::ReadText(path, 256));
  const auto raw = FromBase64(assure::Trim(text));
  if (!raw.has_value()) {
    return Error{Code::kCorrupt, path + " is no public key", "it is the Base64 of 32 bytes"};
  }
  return crypto::PublicKey::FromRaw(*raw);
}

struct Look {
  std::string node;
  BaselineSight sight;
};

Result<Look> LookAtMachine(const Invocation& invocation) {
  const std::string root = invocation.parsed.Value("root").value_or("/");
  RINGFENCE_ASSIGN(const auto machine, assure::OpenMachine(root));
  const auto nvml = NvmlOf(invocation, root);
  Look look;
  const auto name = machine->Read("/etc/hostname", 4096);
  look.node = name.has_value() ? std::string(assure::Trim(*name)) : "this machine";
  look.sight = SeeBaseline(*machine, nvml ? &*nvml : nullptr);
  return look;
}

Result<int> BaselineRecord(Invocation& invocation) {
  RINGFENCE_ASSIGN(const BaselineFiles files, FilesOf(invocation));
  if (os::Exists(files.baseline) && !invocation.parsed.Has("force")) {
    return Error{Code::kConflict, files.baseline + " is there already",
                 "verify it first; --force records what is there now instead"};
  }
  RINGFENCE_ASSIGN(Look look, LookAtMachine(invocation));
  if (look.sight.facts.empty()) {
    return Error{Code::kFailedPrecondition, "there is nothing to record", "run it as root"};
  }
  Baseline baseline{look.node, invocation.clock.Now(), std::move(look.sight.facts)};
  RINGFENCE_TRY(MakeOwnFolder(invocation, {files.baseline, files.key, files.public_key}));
  RINGFENCE_ASSIGN(const crypto::SigningKey key, OpenSigningKey(files.key));
  const std::string text = SignBaseline(baseline, key);
  if (text.size() > crypto::kEnvelopeBytesMax) {
    return Error{Code::kExhausted, "the baseline would be longer than 256 KiB"};
  }
  RINGFENCE_TRY(os::WriteFileDurable(files.baseline, AsBytes(text), 0644));
  RINGFENCE_TRY(os::WriteFileDurable(
      files.public_key, AsBytes(Base64(ByteView(key.public_key().raw())) + "\n"), 0644));
  for (const std::string& unread : look.sight.unread) {
    invocation.console.Warn("not recorded: " + unread);
  }
  if (invocation.console.table()) {
    invocation.console.out() << Safe(baseline.node) << ": " << baseline.facts.size() << " facts in "
                             << Safe(files.baseline) << ", signed by key " << key.public_key().Id()
                             << '\n';
  } else {
    invocation.console.Show(JsonObject{{"node", baseline.node},
                                       {"facts", baseline.facts.size()},
                                       {"file", files.baseline},
                                       {"key", key.public_key().Id()}});
  }
  return kExitOk;
}

Result<Baseline> ReadBaseline(const BaselineFiles& files) {
  const auto text = os::ReadText(files.baseline, crypto::kEnvelopeBytesMax + 1);
  if (!text.has_value()) {
    Error error = text.error();
    if (error.code == Code::kNotFound) {
      error.hint = "`ringfence baseline record` makes one";
    }
    return error;
  }
  RINGFENCE_ASSIGN(const crypto::PublicKey key, OpenPublicKey(files.public_key));
  auto baseline = assure::OpenBaseline(*text, key);
  if (!baseline.has_value()) {
    Error error = Prefix(files.baseline, baseline.error());
    error.code = Code::kPermissionDenied;  // damaged or forged: refused all the same
    error.hint = "it was changed, or signed by another key than " + files.public_key +
                 ": do not trust it; find out who did, and record it anew";
    return error;
  }
  return baseline;
}

Result<int> BaselineVerify(Invocation& invocation) {
  RINGFENCE_ASSIGN(const BaselineFiles files, FilesOf(invocation));
  RINGFENCE_ASSIGN(const Baseline baseline, ReadBaseline(files));
  RINGFENCE_ASSIGN(const Look look, LookAtMachine(invocation));
  const std::vector<Drift> drifts =
      assure::CompareBaseline(baseline.facts, look.sight.facts, invocation.parsed.Values("ignore"));
  Console& console = invocation.console;
  if (!console.table()) {
    JsonArray items;
    for (const Drift& drift : drifts) {
      items.push_back(JsonObject{{"fact", drift.fact}, {"was", drift.was}, {"is", drift.is}});
    }
    JsonArray unread;
    for (const std::string& why : look.sight.unread) {
      unread.push_back(Json(why));
    }
    console.Show(JsonObject{{"node", baseline.node},
                            {"recorded", FormatTime(baseline.when)},
                            {"facts", baseline.facts.size()},
                            {"drift", std::move(items)},
                            {"unread", std::move(unread)}});
    return drifts.empty() ? kExitOk : kExitFindings;
  }
  for (const std::string& why : look.sight.unread) {
    console.Warn("cannot be read: " + why);
  }
  Table table({"FACT", "DRIFT"});
  for (const Drift& drift : drifts) {
    table.Add({drift.fact, drift.what()});
  }
  if (!drifts.empty()) {
    table.Print(console);
  }
  console.out() << (drifts.empty() ? console.Good("as recorded")
                                   : console.Bad(std::to_string(drifts.size()) + " drifted"))
                << ": " << Safe(baseline.node) << ", " << baseline.facts.size()
                << " facts recorded " << FormatTime(baseline.when) << '\n';
  return drifts.empty() ? kExitOk : kExitFindings;
}

Result<int> BaselineShow(Invocation& invocation) {
  RINGFENCE_ASSIGN(const BaselineFiles files, FilesOf(invocation));
  RINGFENCE_ASSIGN(const Baseline baseline, ReadBaseline(files));
  Console& console = invocation.console;
  if (console.table()) {
    console.out() << Safe(baseline.node) << ", recorded " << FormatTime(baseline.when) << '\n';
    Table table({"FACT", "VALUE"});
    for (const auto& [fact, value] : baseline.facts) {
      table.Add({fact, value});
    }
    table.Print(console);
    return kExitOk;
  }
  JsonObject facts;
  for (const auto& [fact, value] : baseline.facts) {
    facts[fact] = value;
  }
  console.Show(JsonObject{{"node", baseline.node},
                          {"recorded", FormatTime(baseline.when)},
                          {"facts", std::move(facts)}});
  return kExitOk;
}

Result<int> NvmlCapture(Invocation& invocation) {
  const auto view = NvmlOf(invocation, "/");
  if (!view || !view->report) {
    return Error{Code::kNotFound, view ? view->problem : "there is no NVIDIA driver here"};
  }
  invocation.console.out() << PrettyJson(assure::NvmlJson(*view->report)) << '\n';
  return kExitOk;
}

constexpr OptionSpec kFile = {.name = "file",
                              .value = "FILE",
                              .help = "the baseline (default: baseline.json of the state folder)",
                              .completes = Completes::kFile};
constexpr OptionSpec kPublic = {
    .name = "public-key",
    .value = "FILE",
    .help = "the key that verifies (default: baseline.pub of the state folder)",
    .completes = Completes::kFile};

}  // namespace

CommandTable BaselineCommands() {
  return {
      {.path = "baseline record",
       .group = Group::kEvidence,
       .summary = "Record what this machine is made of, signed.",
       .details = "VBIOS, GSP firmware, InfoROM, serials, UUIDs and slots of the GPUs, driver, "
                  "kernel, secure\n"
                  "boot, firmware, board and modules. Makes a signing key where there is none. "
                  "Keep the public\n"
                  "key elsewhere: who is root here can record anew.",
       .options = {kFile,
                   {.name = "key",
                    .value = "FILE",
                    .help = "the key that signs (default: baseline.key of the state folder)",
                    .completes = Completes::kFile},
                   kPublic,
                   {.name = "force", .help = "instead of the one that is there"},
                   AssessOption("root"),
                   SettingOption(Setting::kNodeDriverRoot)},
       .examples = {{"ringfence baseline record", "of this machine, as root"}},
       .handler = BaselineRecord},
      {.path = "baseline verify",
       .group = Group::kEvidence,
       .summary = "Name everything that is not as it was recorded.",
       .options = {kFile,
                   kPublic,
                   {.name = "ignore",
                    .value = "FACT",
                    .help = "not these; '*' stands for any text",
                    .repeated = true},
                   AssessOption("root"),
                   SettingOption(Setting::kNodeDriverRoot)},
       .examples = {{"ringfence baseline verify", "this machine"},
                    {"ringfence baseline verify --ignore 'module.*'", "where modules come and go"}},
       .exit_codes = "0, or 1 when something drifted; 3 when the signature is not the key's",
       .handler = BaselineVerify},
      {.path = "baseline show",
       .group = Group::kEvidence,
       .summary = "Show a baseline, once its signature is verified.",
       .options = {kFile, kPublic},
       .examples = {{"ringfence baseline show", "all facts"}},
       .handler = BaselineShow},
      {.path = "baseline capture",
       .group = Group::kEvidence,
       .summary = "Print what NVML says of the GPUs, for a captured root.",
       .details = "Put it at ringfence/nvml.json of the root that `assess --root` looks at.",
       .options = {SettingOption(Setting::kNodeDriverRoot)},
       .examples = {{"ringfence baseline capture > node7/ringfence/nvml.json", ""}},
       .handler = NvmlCapture},
  };
}

}  // namespace ringfence::cli
