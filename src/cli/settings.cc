#include "cli/settings.h"

#include <algorithm>
#include <charconv>

#include "base/check.h"
#include "cli/suggest.h"
#include "os/file.h"
#include "os/file_owner.h"
#include "os/identity.h"
#include "store/database.h"
#include "wire/yaml.h"

namespace ringfence::cli {
namespace {

constexpr std::size_t kFoldersUpMax = 64;
constexpr std::size_t kNamesMax = 64;

std::string Resolve(const std::string& base, const std::string& path) {
  return path.starts_with('/') ? path : base + (base.ends_with('/') ? "" : "/") + path;
}

std::string FolderOf(const std::string& path) {
  const std::size_t slash = path.rfind('/');
  return slash == std::string::npos ? "." : slash == 0 ? "/" : path.substr(0, slash);
}

bool IsPath(ValueKind kind) { return kind == ValueKind::kFile || kind == ValueKind::kFolder; }

std::vector<std::string> AllKeys() {
  std::vector<std::string> keys;
  for (const SettingSpec& spec : SettingTable()) {
    if (spec.kind != ValueKind::kSecret) {
      keys.emplace_back(spec.key);
    }
  }
  return keys;
}

bool IsGroupOfKeys(const std::string& path) {
  return std::any_of(SettingTable().begin(), SettingTable().end(),
                     [&](const SettingSpec& spec) { return spec.key.starts_with(path + "."); });
}

Status CheckNames(std::string_view text) {
  std::size_t count = 0;
  for (const char c : text) {
    count += c == ',' ? 1U : 0U;
    const bool good = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                      c == '.' || c == '-' || c == ':' || c == '*' || c == ',' || c == ' ';
    if (!good || count >= kNamesMax) {
      return Error{Code::kInvalidArgument, "not a list of at most 64 DNS names and IP addresses",
                   "write it as [gpu.example, 10.0.0.7]"};
    }
  }
  return {};
}

}  // namespace

class SettingsLoader {
 public:
  explicit SettingsLoader(const SettingsInput& input) : input_(input) {}

  LoadedSettings Run() {
    Defaults();
    FindState();
    FindFile();
    FromFile();
    FromEnvironment();
    FromFlags();
    Finish();
    return std::move(loaded_);
  }

 private:
  SettingValue& Value(Setting setting) {
    return loaded_.settings.values_[static_cast<std::size_t>(setting)];
  }

  void Find(std::string where, std::string key, std::string what, std::string fix) {
    loaded_.findings.push_back({std::move(where), std::move(key), std::move(what), std::move(fix)});
  }

  const std::string* Environment(std::string_view name) const {
    const auto found = input_.environment.find(std::string(name));
    return found == input_.environment.end() || found->second.empty() ? nullptr : &found->second;
  }

  const std::string* Flag(std::string_view name) const {
    const std::string* value = nullptr;
    for (const auto& [flag, text] : input_.flags) {
      if (flag == name) {
        value = &text;
      }
    }
    return value;
  }

  struct Given {
    Origin origin;
    std::string source;
    std::string where;        // for findings
    const std::string& base;  // folder that paths are relative to
  };

  void Set(const SettingSpec& spec, std::string text, const Given& given) {
    Status checked = CheckValue(spec, text);
    if (checked.has_value() && spec.kind == ValueKind::kNames) {
      checked = CheckNames(text);
    }
    if (!checked.has_value()) {
      Find(given.where, std::string(spec.key), checked.error().message, checked.error().hint);
      return;
    }
    const bool is_path =
        IsPath(spec.kind) || (spec.kind == ValueKind::kDatabase && !store::IsPostgresUrl(text));
    if (is_path && text != spec.fallback) {
      text = Resolve(given.base, text);
    }
    Value(spec.setting) = {std::move(text), given.origin, given.source};
  }

  void Defaults() {
    for (const SettingSpec& spec : SettingTable()) {
      const bool computed = spec.fallback.starts_with('<');
      Value(spec.setting) = {computed ? "" : std::string(spec.fallback), Origin::kDefault,
                             "default"};
    }
    Value(Setting::kNodeName).text = input_.host_name;
    if (const std::string* user = Environment("SUDO_UID")) {
      loaded_.settings.sudo_user_ = *user;
    }
  }

  void FindState() {
    const SettingSpec& spec = Spec(Setting::kState);
    if (const std::string* flag = Flag(spec.flag)) {
      Set(spec, *flag, {Origin::kFlag, "flag --state", "--state", input_.folder});
    } else if (const std::string* variable = Environment(spec.environment)) {
      Set(spec, *variable,
          {Origin::kEnvironment, "environment RINGFENCE_STATE", "RINGFENCE_STATE", input_.folder});
    }
    if (!Value(Setting::kState).text.empty()) {
      return;
    }
    Value(Setting::kState).text = Resolve(input_.folder, ".ringfence");
    std::string folder = input_.folder;
    for (std::size_t up = 0; up < kFoldersUpMax; ++up) {
      if (os::IsDirectory(Resolve(folder, ".ringfence"))) {
        Value(Setting::kState) = {Resolve(folder, ".ringfence"), Origin::kFound,
                                  "found in " + folder};
        return;
      }
      if (folder == input_.search_top || folder == "/" || folder.empty()) {
        return;
      }
      folder = FolderOf(folder);
    }
  }

  void FindFile() {
    const std::string* named = Flag("config");
    const std::string where = named != nullptr ? "--config" : "RINGFENCE_CONFIG";
    if (named == nullptr) {
      named = Environment("RINGFENCE_CONFIG");
    }
    if (named != nullptr) {
      file_ = Resolve(input_.folder, *named);
      if (!os::Exists(file_)) {
        Find(where, "", "there is no file " + file_, "`ringfence config init` writes one");
        file_.clear();
      }
      return;
    }
    const std::string of_state = Resolve(Value(Setting::kState).text, "ringfence.yaml");
    if (os::Exists(of_state)) {
      file_ = of_state;
      in_state_ = true;
    } else if (Value(Setting::kState).origin != Origin::kFound && os::Exists(input_.system_file)) {
      // Not for a folder found by searching: that is an instance of its own, and what the system's
      // file says is of the system's.
      file_ = input_.system_file;
    }
  }

  void FromFile() {
    if (file_.empty()) {
      return;
    }
    if (in_state_ && !loaded_.settings.MayTrust(file_)) {
      Find(file_, "", "belongs to another user, in a folder that was only found by searching",
           "name the folder with --state if you trust it");
      return;
    }
    const auto text = os::ReadText(file_, kConfigBytesMax);
    if (!text.has_value()) {
      Find(file_, "", "cannot be read: " + text.error().message, "");
      return;
    }
    loaded_.settings.file_ = file_;
    wire::YamlProblems problems;
    const auto documents = wire::ParseYaml(*text, file_, problems);
    if (!problems.empty()) {
      std::string lines = problems.Text();
      while (lines.ends_with('\n')) {
        lines.pop_back();
      }
      Find("", "", lines, "");
    } else if (documents.size() > 1) {
      Find(file_ + ":" + std::to_string(documents[1].line), "", "a second document",
           "keep one document in the file");
    } else if (documents.size() == 1) {
      if (documents[0].kind == wire::YamlNode::Kind::kMap) {
        FromMap(documents[0], "");
      } else {
        Find(file_ + ":" + std::to_string(documents[0].line), "", "not a map of settings",
             "write lines like `log: {level: debug}`");
      }
    }
  }

  void FromMap(const wire::YamlNode& map, const std::string& prefix) {
    for (const wire::YamlMember& member : map.members) {
      const std::string key = prefix.empty() ? member.key : prefix + "." + member.key;
      const std::string where = file_ + ":" + std::to_string(member.line);
      const auto spec = std::find_if(SettingTable().begin(), SettingTable().end(),
                                     [&](const SettingSpec& row) { return row.key == key; });
      if (spec != SettingTable().end()) {
        FromNode(*spec, member.value, where);
      } else if (!IsGroupOfKeys(key)) {
        Find(where, key, "unknown key",
             DidYouMean(key, AllKeys(), "`ringfence config show` lists the keys"));
      } else if (member.value.kind == wire::YamlNode::Kind::kMap) {
        FromMap(member.value, key);
      } else if (member.value.kind != wire::YamlNode::Kind::kNull) {
        Find(where, key, "must be a map of settings", "write its keys below it, indented");
      }
    }
  }

  void FromNode(const SettingSpec& spec, const wire::YamlNode& node, const std::string& where) {
    const std::string key(spec.key);
    if (spec.kind == ValueKind::kSecret) {
      Find(where, key, "a token does not belong in a file",
           "take it out, and set " + std::string(spec.environment) + " instead");
      return;
    }
    if (spec.setting == Setting::kState && in_state_) {
      Find(where, key, "this file lies in the state folder, so it cannot say where that is",
           "take it out, or keep the file elsewhere and name it with --config");
      return;
    }
    std::string text = node.text;
    if (node.kind == wire::YamlNode::Kind::kList && spec.kind == ValueKind::kNames) {
      text.clear();
      for (const wire::YamlNode& item : node.items) {
        text += (text.empty() ? "" : ",") + item.text;
      }
    } else if (node.kind != wire::YamlNode::Kind::kText) {
      Find(where, key, node.kind == wire::YamlNode::Kind::kNull ? "has no value" : "must be text",
           "write a value, or leave the line out");
      return;
    }
    if (spec.setting == Setting::kState && Value(Setting::kState).origin > Origin::kFound) {
      return;  // already said by a flag or the environment
    }
    Set(spec, std::move(text), {Origin::kFile, where, where, FolderOf(file_)});
  }

  void FromEnvironment() {
    const auto token =
        input_.environment.find(std::string(Spec(Setting::kClientToken).environment));
    if (token != input_.environment.end() && token->second.empty()) {
      // Most often a command that failed to print one; falling back would act as somebody else.
      Find(token->first, "", "is set but empty", "set it to a token, or unset it");
    }
    for (const SettingSpec& spec : SettingTable()) {
      const std::string* variable = Environment(spec.environment);
      if (variable == nullptr || spec.setting == Setting::kState) {
        continue;
      }
      const std::string name(spec.environment);
      if (spec.kind == ValueKind::kSecret) {
        loaded_.settings.token_ = SecretBytes(AsBytes(*variable));
        Value(spec.setting) = {"", Origin::kEnvironment, "environment " + name};
        continue;
      }
      Set(spec, *variable, {Origin::kEnvironment, "environment " + name, name, input_.folder});
    }
  }

  void FromFlags() {
    for (const SettingSpec& spec : SettingTable()) {
      const std::string* flag = spec.flag.empty() ? nullptr : Flag(spec.flag);
      if (flag != nullptr && spec.setting != Setting::kState) {
        const std::string name = "--" + std::string(spec.flag);
        Set(spec, *flag, {Origin::kFlag, "flag " + name, name, input_.folder});
      }
    }
  }

  void Finish() {
    SettingValue& policy = Value(Setting::kPolicyFolder);
    if (policy.text.empty()) {
      policy.text = Resolve(Value(Setting::kState).text, "policy");
    }
    SettingValue& database = Value(Setting::kServerDatabase);
    if (database.text.empty()) {
      database.text = Resolve(Value(Setting::kState).text, "server/ringfence.db");
    }
    NeedBoth(Setting::kServerCaCertificate, Setting::kServerCaKey);
  }

  void NeedBoth(Setting one, Setting other) {
    const SettingValue& first = Value(one);
    const SettingValue& second = Value(other);
    if (first.text.empty() != second.text.empty()) {
      const bool missing_second = second.text.empty();
      Find((missing_second ? first : second).source, std::string(Spec(one).key),
           "a certificate and its key belong together",
           "set " + std::string(Spec(missing_second ? other : one).key) + " too");
    }
  }

  const SettingsInput& input_;
  LoadedSettings loaded_;
  std::string file_;
  bool in_state_ = false;  // the file was found in the state folder
};

LoadedSettings LoadSettings(const SettingsInput& input) { return SettingsLoader(input).Run(); }

bool Settings::MayTrust(const std::string& path) const {
  if (At(Setting::kState).origin != Origin::kFound) {
    return true;
  }
  const auto owner = os::OwnerOf(path);
  const unsigned user = os::UserId();
  return owner.has_value() && (owner->uid == user || owner->uid == 0 ||
                               (user == 0 && sudo_user_ == std::to_string(owner->uid)));
}

std::int64_t Settings::Number(Setting setting) const {
  RINGFENCE_CHECK(Spec(setting).kind == ValueKind::kNumber);
  const std::string& text = Text(setting);
  std::int64_t number = 0;
  (void)std::from_chars(text.data(), text.data() + text.size(), number);  // checked when loaded
  return number;
}

std::vector<std::string> Settings::Names(Setting setting) const {
  std::string spaced = Text(setting);
  std::replace(spaced.begin(), spaced.end(), ',', ' ');
  return Words(spaced);
}

Error FindingsError(const std::vector<Finding>& findings) {
  std::string all = "the configuration is wrong:";
  for (const Finding& finding : findings) {
    all += "\n  ";
    all += finding.where + (finding.where.empty() ? "" : ": ");
    all += finding.key + (finding.key.empty() ? "" : ": ");
    all += finding.what + (finding.fix.empty() ? "" : " (" + finding.fix + ")");
  }
  return Error{Code::kInvalidArgument, all, "`ringfence config check` looks at all of it"};
}

}  // namespace ringfence::cli
