#include <algorithm>
#include <set>

#include "assure/check_spec.h"
#include "base/json.h"
#include "os/file.h"
#include "wire/yaml.h"

namespace ringfence::assure {
namespace {

constexpr std::size_t kChecksMax = 2'000;
constexpr std::size_t kTextMax = 2'000;

std::string Scalar(const Json& value) {
  if (const auto* text = value.if_string()) {
    return {text->data(), text->size()};
  }
  if (value.is_int64()) {
    return std::to_string(value.get_int64());
  }
  if (value.is_uint64()) {
    return std::to_string(value.get_uint64());
  }
  return value.is_bool() ? (value.get_bool() ? "true" : "false") : "";
}

// A text, or a list of them.
std::vector<std::string> Scalars(const Json& value) {
  std::vector<std::string> texts;
  if (const JsonArray* array = value.if_array()) {
    for (const Json& item : *array) {
      texts.push_back(Scalar(item));
    }
  } else {
    texts.push_back(Scalar(value));
  }
  return texts;
}

Error Wrong(const std::string& what) { return {Code::kInvalidArgument, what}; }

bool Known(const std::vector<std::string_view>& names, std::string_view name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

Result<Standing> ReadStanding(const std::string& text) {
  if (text == "pass") {
    return Standing::kPass;
  }
  if (text == "fail") {
    return Standing::kFail;
  }
  if (text == "unknown") {
    return Standing::kUnknown;
  }
  if (text == "not_applicable") {
    return Standing::kNotApplicable;
  }
  return Wrong("\"" + text + "\" is none of pass, fail, unknown, not_applicable");
}

Result<ProbeSpec> ReadProbe(const Json& value) {
  RINGFENCE_ASSIGN(auto reader, JsonReader::Open(value, "probe"));
  ProbeSpec probe;
  RINGFENCE_ASSIGN(probe.kind, reader.String("kind", 32));
  if (!Known(ProbeKinds(), probe.kind)) {
    return Wrong("probe.kind: there is no probe \"" + probe.kind + "\"");
  }
  if (reader.Has("path")) {
    RINGFENCE_ASSIGN(const Json* paths, reader.Any("path"));
    probe.paths = Scalars(*paths);
  }
  RINGFENCE_ASSIGN(probe.key, reader.StringOr("key", "", 256));
  RINGFENCE_ASSIGN(probe.section, reader.StringOr("section", "", 128));
  RINGFENCE_ASSIGN(probe.separator, reader.StringOr("separator", "", 8));
  RINGFENCE_ASSIGN(probe.get, reader.StringOr("get", "", 32));
  RINGFENCE_ASSIGN(probe.match, reader.StringOr("match", "", 256));
  RINGFENCE_ASSIGN(probe.each, reader.BoolOr("each", false));
  if (reader.Has("name")) {
    RINGFENCE_ASSIGN(const Json* names, reader.Any("name"));
    probe.names = Scalars(*names);
  }
  if (reader.Has("default")) {
    RINGFENCE_ASSIGN(const Json* fallback, reader.Any("default"));
    probe.fallback = Scalar(*fallback);
  }
  if (reader.Has("port")) {
    RINGFENCE_ASSIGN(const Json* ports, reader.Any("port"));
    for (const std::string& text : Scalars(*ports)) {
      const int port = std::atoi(text.c_str());
      if (port < 1 || port > 65535) {
        return Wrong("probe.port: \"" + text + "\" is no port");
      }
      probe.ports.push_back(static_cast<std::uint16_t>(port));
    }
  }
  RINGFENCE_TRY(reader.Finish());
  for (const std::string& path : probe.paths) {
    if (!path.starts_with('/')) {
      return Wrong("probe.path: \"" + path + "\" does not begin with /");
    }
  }
  return probe;
}

Result<ExpectSpec> ReadExpect(const Json& value) {
  const JsonObject* object = value.if_object();
  ExpectSpec expect;
  for (std::size_t i = 0; object != nullptr && i < object->size(); ++i) {
    const auto& member = *(object->begin() + static_cast<std::ptrdiff_t>(i));
    const std::string name(member.key());
    if (name == "any") {
      expect.any = Scalar(member.value()) == "true";
    } else if (!Known(ExpectKinds(), name)) {
      return Wrong("expect: there is no condition \"" + name + "\"");
    } else if (!expect.kind.empty()) {
      return Wrong("expect: one condition, not two");
    } else {
      expect.kind = name;
      expect.values = Scalars(member.value());
    }
  }
  if (expect.kind.empty()) {
    return Wrong("expect: no condition");
  }
  return expect;
}

Result<CheckExample> ReadExample(const std::string& name, const Json& value) {
  CheckExample example;
  example.name = name;
  const std::string kind = name.substr(0, name.find('-'));  // "fail-second" is a fail
  RINGFENCE_ASSIGN(example.expected, ReadStanding(kind));
  const JsonObject* files = value.if_object();
  if (files == nullptr) {
    return Wrong("tests." + name + ": no map of paths");
  }
  for (const auto& member : *files) {
    MadeUpFile file;
    if (member.value().is_object()) {
      RINGFENCE_ASSIGN(auto reader, JsonReader::Open(member.value(), "tests." + name));
      RINGFENCE_ASSIGN(file.text, reader.StringOr("text", "", 65536));
      RINGFENCE_ASSIGN(file.link, reader.StringOr("link", "", 4096));
      RINGFENCE_ASSIGN(const std::string mode, reader.StringOr("mode", "0644", 8));
      file.mode = static_cast<unsigned>(std::strtoul(mode.c_str(), nullptr, 8));
      RINGFENCE_ASSIGN(const auto uid, reader.IntOr("uid", 0, 0, 65535));
      RINGFENCE_ASSIGN(const auto gid, reader.IntOr("gid", 0, 0, 65535));
      RINGFENCE_ASSIGN(file.age_days, reader.IntOr("age_days", 0, 0, 10000));
      RINGFENCE_ASSIGN(file.unreadable, reader.BoolOr("unreadable", false));
      RINGFENCE_ASSIGN(file.hidden, reader.BoolOr("hidden", false));
      RINGFENCE_TRY(reader.Finish());
      file.uid = static_cast<unsigned>(uid);
      file.gid = static_cast<unsigned>(gid);
    } else {
      file.text = Scalar(member.value());
    }
    example.files.emplace(std::string(member.key()), std::move(file));
  }
  return example;
}

Status CheckControl(const std::string& control) {
  if (control.starts_with("nist:") || control.starts_with("hipaa:164.") ||
      control.starts_with("gdpr:")) {
    return {};
  }
  return Wrong("controls: \"" + control + "\" is not of nist:, hipaa:164. or gdpr:");
}

Status ReadCheck(const Json& value, CheckSpec& check) {
  RINGFENCE_ASSIGN(auto reader, JsonReader::Open(value));
  RINGFENCE_ASSIGN(check.id, reader.String("id", 64));
  RINGFENCE_ASSIGN(check.title, reader.String("title", 160));
  RINGFENCE_ASSIGN(check.why, reader.String("why", kTextMax));
  RINGFENCE_ASSIGN(check.fix, reader.String("fix", kTextMax));
  RINGFENCE_ASSIGN(check.command, reader.StringOr("command", "", kTextMax));
  RINGFENCE_ASSIGN(const auto likelihood, reader.Int("likelihood", 1, 5));
  RINGFENCE_ASSIGN(const auto impact, reader.Int("impact", 1, 5));
  RINGFENCE_ASSIGN(const auto effort, reader.IntOr("effort", 2, 1, 3));
  check.likelihood = static_cast<int>(likelihood);
  check.impact = static_cast<int>(impact);
  check.effort = static_cast<int>(effort);
  if (reader.Has("applies")) {
    RINGFENCE_ASSIGN(const Json* applies, reader.Any("applies"));
    check.applies = Scalars(*applies);
  }
  RINGFENCE_ASSIGN(const std::string absent, reader.StringOr("absent", "unknown", 32));
  RINGFENCE_ASSIGN(check.absent, ReadStanding(absent));
  RINGFENCE_ASSIGN(const Json* probe, reader.Any("probe"));
  RINGFENCE_ASSIGN(check.probe, ReadProbe(*probe));
  RINGFENCE_ASSIGN(const Json* expect, reader.Any("expect"));
  RINGFENCE_ASSIGN(check.expect, ReadExpect(*expect));
  RINGFENCE_ASSIGN(check.controls, reader.Strings("controls", 32, 64));
  for (const std::string& control : check.controls) {
    RINGFENCE_TRY(CheckControl(control));
  }
  RINGFENCE_ASSIGN(const Json* tests, reader.Any("tests"));
  RINGFENCE_TRY(reader.Finish());
  const JsonObject* examples = tests->if_object();
  if (examples == nullptr) {
    return Wrong("tests: no map");
  }
  for (const auto& member : *examples) {
    RINGFENCE_ASSIGN(CheckExample example, ReadExample(std::string(member.key()), member.value()));
    check.examples.push_back(std::move(example));
  }
  return {};
}

CheckSpec Broken(const std::string& id, const std::string& why) {
  CheckSpec check;
  check.id = id;
  check.title = "A check that cannot be run";
  check.area = "checks";
  check.broken = why;
  return check;
}

}  // namespace

std::vector<CheckSpec> ParseChecks(std::string_view yaml, const std::string& file) {
  const auto json = wire::YamlToJson(yaml, file);
  if (!json.has_value()) {
    return {Broken(file, json.error().message)};
  }
  const JsonObject* top = json->if_object();
  const Json* area = top == nullptr ? nullptr : top->if_contains("class");
  const Json* list = top == nullptr ? nullptr : top->if_contains("checks");
  const JsonArray* items = list == nullptr ? nullptr : list->if_array();
  if (area == nullptr || items == nullptr || items->size() > kChecksMax) {
    return {Broken(file, file + ": needs `class:` and a list `checks:`")};
  }
  std::vector<CheckSpec> checks;
  for (std::size_t i = 0; i < items->size(); ++i) {
    CheckSpec check;
    check.area = Scalar(*area);
    const Status read = ReadCheck((*items)[i], check);
    if (!read.has_value()) {
      const std::string name =
          check.id.empty() ? file + " check " + std::to_string(i + 1) : check.id;
      check.broken = file + ": " + name + ": " + read.error().message;
      check.id = name;
      check.title = check.title.empty() ? "A check that cannot be run" : check.title;
    }
    checks.push_back(std::move(check));
  }
  return checks;
}

Result<std::vector<CheckSpec>> LoadChecks(const std::string& folder) {
  RINGFENCE_ASSIGN(const auto names, os::ListDir(folder));
  std::vector<CheckSpec> checks;
  for (const std::string& name : names) {
    if (!name.ends_with(".yaml")) {
      continue;
    }
    const auto text = os::ReadText(folder + "/" + name, wire::kYamlBytesMax);
    auto some = text.has_value() ? ParseChecks(*text, name)
                                 : std::vector<CheckSpec>{Broken(name, text.error().message)};
    std::move(some.begin(), some.end(), std::back_inserter(checks));
  }
  std::stable_sort(checks.begin(), checks.end(), [](const CheckSpec& a, const CheckSpec& b) {
    return a.area != b.area ? a.area < b.area : a.id < b.id;
  });
  std::set<std::string> seen;
  for (CheckSpec& check : checks) {
    if (!seen.insert(check.id).second && check.broken.empty()) {
      check.broken = check.id + ": there are two checks of this name";
    }
  }
  return checks;
}

}  // namespace ringfence::assure
