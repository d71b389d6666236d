#include <algorithm>
#include <set>

#include "assure/control_spec.h"
#include "os/file.h"
#include "wire/yaml.h"

namespace ringfence::assure {
namespace {

constexpr std::size_t kControlsMax = 5'000;
constexpr std::size_t kListMax = 500;
constexpr std::size_t kTextMax = 2'000;

bool IsId(std::string_view text) {
  return !text.empty() && text.size() <= 64 &&
         std::all_of(text.begin(), text.end(), [](unsigned char c) {
           return std::isalnum(c) != 0 || c == '.' || c == '-' || c == '(' || c == ')';
         });
}

bool IsAction(std::string_view text) {
  const std::size_t dot = text.find('.');
  return dot != std::string_view::npos && dot > 0 && dot + 1 < text.size() &&
         text.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789_.") == std::string_view::npos;
}

std::string Given(const std::optional<wire::YamlText>& text) {
  return text.has_value() ? text->text : std::string();
}

class Reading {
 public:
  Reading(const std::string& file, wire::YamlProblems& problems)
      : file_(file), problems_(problems) {}

  Framework Read(const wire::YamlNode& top) {
    Framework framework;
    wire::YamlReader reader(&top, "", {file_, 1}, problems_);
    framework.id = Given(reader.Text("framework", 64));
    framework.title = Given(reader.Text("title"));
    framework.prefix = Given(reader.Text("prefix", 32));
    baseline_ = Given(reader.TextIfGiven("baseline", 32));
    const wire::YamlNode* const list = reader.Any("controls");
    if (list == nullptr || list->kind != wire::YamlNode::Kind::kList || list->items.empty() ||
        list->items.size() > kControlsMax) {
      reader.Problem("controls", reader.LineOf("controls"),
                     "must be a list of 1 to " + std::to_string(kControlsMax) + " controls");
    } else {
      for (std::size_t i = 0; i < list->items.size(); ++i) {
        framework.controls.push_back(
            ReadControl(list->items[i], "controls[" + std::to_string(i) + "]"));
        framework.controls.back().framework = framework.id;
      }
    }
    reader.Finish();
    return framework;
  }

 private:
  std::vector<std::string> ReadNames(wire::YamlReader& reader, std::string_view name) {
    std::vector<std::string> names;
    if (reader.Any(name) == nullptr) {
      return names;
    }
    for (const wire::YamlText& text : reader.Texts(name, 1, kListMax)) {
      if (std::find(names.begin(), names.end(), text.text) != names.end()) {
        reader.Problem(name, text.line, "names \"" + text.text + "\" twice", "leave one out");
      }
      names.push_back(text.text);
    }
    return names;
  }

  AuditQuery ReadQuery(const wire::YamlNode& node, const std::string& path) {
    AuditQuery query;
    wire::YamlReader reader(&node, path, {file_, node.line}, problems_);
    query.action = Given(reader.Text("action", 64));
    if (!query.action.empty() && !IsAction(query.action)) {
      reader.Problem("action", reader.LineOf("action"),
                     "\"" + query.action + "\" is no action of the audit log",
                     "write it as \"lease.request\"");
    }
    query.shows = Given(reader.Text("shows", kTextMax));
    if (const wire::YamlNode* const proof = reader.Any("proof")) {
      query.proof = proof->text == "true";
      if (proof->text != "true" && proof->text != "false") {
        reader.Problem("proof", proof->line, "must be true or false");
      }
    }
    reader.Finish();
    return query;
  }

  ControlSpec ReadControl(const wire::YamlNode& node, const std::string& path) {
    ControlSpec control;
    wire::YamlReader reader(&node, path, {file_, node.line}, problems_);
    control.id = Given(reader.Text("id", 64));
    control.title = Given(reader.Text("title"));
    const auto baseline = reader.TextIfGiven("baseline", 32);
    control.baseline = baseline.has_value() ? baseline->text : baseline_;
    control.checks = ReadNames(reader, "checks");
    control.probes = ReadNames(reader, "probes");
    if (const wire::YamlNode* const audit = reader.Any("audit")) {
      if (audit->kind != wire::YamlNode::Kind::kList || audit->items.size() > kListMax) {
        reader.Problem("audit", audit->line, "must be a list of {action, shows, proof}");
      } else {
        for (std::size_t i = 0; i < audit->items.size(); ++i) {
          control.audit.push_back(
              ReadQuery(audit->items[i], path + ".audit[" + std::to_string(i) + "]"));
        }
      }
    }
    control.person = Given(reader.Text("person", kTextMax));
    if (!control.id.empty() && !IsId(control.id)) {
      reader.Problem("id", reader.LineOf("id"), "\"" + control.id + "\" is no control's id",
                     "letters, digits, '.', '-' and brackets");
    } else if (!control.id.empty() && PlainControlId(control.id) != control.id) {
      reader.Problem("id", reader.LineOf("id"), "is not in its plain form",
                     "write \"" + PlainControlId(control.id) + "\"");
    } else if (!control.id.empty() && !seen_.insert(control.id).second) {
      reader.Problem("id", reader.LineOf("id"), "\"" + control.id + "\" is here twice");
    }
    reader.Finish();
    return control;
  }

  const std::string& file_;
  wire::YamlProblems& problems_;
  std::string baseline_;
  std::set<std::string> seen_;
};

std::string Lowered(std::string_view text) {
  std::string out(text);
  std::transform(out.begin(), out.end(), out.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return out;
}

// "ac-02(01)" -> "ac-2.1"; empty when it is not of that shape.
std::string NistId(std::string_view text) {
  const auto number = [&](std::size_t& at) {
    const std::size_t begin = at;
    while (at < text.size() && std::isdigit(static_cast<unsigned char>(text[at])) != 0) {
      ++at;
    }
    std::string_view digits = text.substr(begin, at - begin);
    while (digits.size() > 1 && digits.front() == '0') {
      digits.remove_prefix(1);
    }
    return std::string(digits);
  };
  if (text.size() < 4 || text[2] != '-' || std::isalpha(static_cast<unsigned char>(text[0])) == 0 ||
      std::isalpha(static_cast<unsigned char>(text[1])) == 0) {
    return {};
  }
  std::size_t at = 3;
  const std::string control = number(at);
  std::string out = std::string(text.substr(0, 3)) + control;
  if (!control.empty() && at < text.size() && (text[at] == '.' || text[at] == '(')) {
    const bool bracket = text[at] == '(';
    const std::string enhancement = number(++at);
    at += bracket && at < text.size() && text[at] == ')' ? 1U : 0U;
    out += "." + enhancement;
  }
  return control.empty() || at != text.size() || out.ends_with('.') ? std::string() : out;
}

}  // namespace

std::string PlainControlId(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c != ' ' && c != '\t') {
      out += c;
    }
  }
  std::string lower = Lowered(out);
  for (const std::string_view word : {"article", "art."}) {
    if (lower.starts_with(word)) {
      out.erase(0, word.size());
      lower.erase(0, word.size());
    }
  }
  const std::string nist = NistId(lower);
  return nist.empty() ? out : nist;
}

Result<Framework> ParseFramework(std::string_view yaml, const std::string& file) {
  wire::YamlProblems problems;
  const auto documents = wire::ParseYaml(yaml, file, problems);
  Framework framework;
  if (documents.size() == 1) {
    framework = Reading(file, problems).Read(documents[0]);
  } else if (problems.empty()) {
    problems.Add({file, 0, "", "must hold one document with `framework:` and `controls:`"});
  }
  if (!problems.empty()) {
    return Error{Code::kInvalidArgument, problems.Text(),
                 "docs/compliance.md has the fields of a control"};
  }
  return framework;
}

Result<std::vector<Framework>> LoadFrameworks(const std::string& folder) {
  RINGFENCE_ASSIGN(const auto names, os::ListDir(folder));
  std::vector<std::string> files;
  std::copy_if(names.begin(), names.end(), std::back_inserter(files),
               [](const std::string& name) { return name.ends_with(".yaml"); });
  std::sort(files.begin(), files.end());
  std::vector<Framework> frameworks;
  for (const std::string& name : files) {
    RINGFENCE_ASSIGN(const std::string text,
                     os::ReadText(folder + "/" + name, wire::kYamlBytesMax));
    RINGFENCE_ASSIGN(Framework framework, ParseFramework(text, name));
    for (const Framework& other : frameworks) {
      if (other.id == framework.id || other.prefix == framework.prefix) {
        return Error{Code::kInvalidArgument,
                     name + ": framework: \"" + framework.id + "\" or its prefix \"" +
                         framework.prefix + "\" is in another file of " + folder + " too",
                     "take one of the files away"};
      }
    }
    frameworks.push_back(std::move(framework));
  }
  if (frameworks.empty()) {
    return Error{Code::kNotFound, folder + " holds no *.yaml with controls"};
  }
  return frameworks;
}

Result<const ControlSpec*> FindControl(const std::vector<Framework>& frameworks,
                                       std::string_view text) {
  const std::size_t colon = text.find(':');
  const std::string wanted_prefix(colon == std::string_view::npos ? "" : text.substr(0, colon));
  const std::string id =
      PlainControlId(colon == std::string_view::npos ? text : text.substr(colon + 1));
  const ControlSpec* found = nullptr;
  std::string candidates;
  for (const Framework& framework : frameworks) {
    if (!wanted_prefix.empty() && wanted_prefix != framework.prefix &&
        wanted_prefix != framework.id) {
      continue;
    }
    for (const ControlSpec& control : framework.controls) {
      if (control.id == id) {
        candidates += (candidates.empty() ? "" : ", ") + framework.prefix + ":" + control.id;
        found = found == nullptr ? &control : found;
      }
    }
  }
  if (found == nullptr) {
    return Error{Code::kNotFound, "there is no control \"" + std::string(text) + "\"",
                 "`ringfence comply status` lists them"};
  }
  if (candidates.find(',') != std::string::npos) {
    return Error{Code::kInvalidArgument, "\"" + std::string(text) + "\" could be " + candidates,
                 "name one of them"};
  }
  return found;
}

}  // namespace ringfence::assure
