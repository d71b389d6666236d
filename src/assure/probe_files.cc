// Probes of files and of settings in them.

#include <algorithm>

#include "assure/probe.h"
#include "base/json.h"

namespace ringfence::assure {
namespace {

std::string Lower(std::string_view text) {
  std::string out(text);
  std::transform(out.begin(), out.end(), out.begin(), [](unsigned char c) {
    return static_cast<char>(c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c);
  });
  return out;
}

std::string_view Unquote(std::string_view text) {
  text = Trim(text);
  if (text.size() >= 2 && (text.front() == '"' || text.front() == '\'') &&
      text.back() == text.front()) {
    return text.substr(1, text.size() - 2);
  }
  return text;
}

bool IsComment(std::string_view line) {
  return line.empty() || line.front() == '#' || line.front() == ';';
}

Observed Nothing(const std::vector<std::string>& paths, const std::string& problem) {
  std::string names;
  for (const std::string& path : paths) {
    names += (names.empty() ? "" : ", ") + path;
  }
  return problem.empty() ? Observed::Absent("there is no " + names) : Observed::Unknown(problem);
}

Found FindAll(const ProbeSpec& probe, const ProbeContext& context) {
  Found all;
  for (const std::string& pattern : probe.paths) {
    Found found = FindPaths(context.machine, pattern);
    std::move(found.paths.begin(), found.paths.end(), std::back_inserter(all.paths));
    all.problem = all.problem.empty() ? found.problem : all.problem;
  }
  return all;
}

std::string Octal(unsigned mode) {
  std::string out;
  for (int shift = 9; shift >= 0; shift -= 3) {
    out += static_cast<char>('0' + (mode >> static_cast<unsigned>(shift) & 7U));
  }
  return out;
}

// key and value of a line, by the probe's separator; false: none.
bool SplitAssignment(std::string_view line, const std::string& separator, std::string_view& key,
                     std::string_view& value) {
  const std::size_t at = separator == "space" ? line.find_first_of(" \t") : line.find(separator);
  if (at == std::string_view::npos) {
    return false;
  }
  key = Unquote(line.substr(0, at));
  value = Trim(line.substr(at + (separator == "space" ? 1 : separator.size())));
  return true;
}

const Json* Follow(const Json& json, std::string_view pointer) {
  const Json* at = &json;
  while (!pointer.empty() && at != nullptr) {
    pointer.remove_prefix(1);
    const std::size_t end = std::min(pointer.find('/'), pointer.size());
    const JsonObject* object = at->if_object();
    at = object == nullptr ? nullptr : object->if_contains(pointer.substr(0, end));
    pointer.remove_prefix(end);
  }
  return at;
}

std::string JsonText(const Json& value) {
  if (const auto* text = value.if_string()) {
    return {text->data(), text->size()};
  }
  if (value.is_bool()) {
    return value.get_bool() ? "true" : "false";
  }
  if (value.is_null()) {
    return "null";
  }
  return value.is_int64() ? std::to_string(value.get_int64()) : PrettyJson(value);
}

// The lines of sshd's settings in the order it reads them: an Include where it stands.
void SshdLines(const ProbeContext& context, const std::string& path, int depth,
               std::vector<Observation>& lines, std::string& problem) {
  const auto text = context.machine.Read(path, kProbeBytesMax);
  if (!text.has_value()) {
    problem = text.error().message;
    return;
  }
  std::size_t number = 0;
  for (const std::string_view raw : SplitLines(*text)) {
    ++number;
    const std::string_view line = Trim(raw);
    if (IsComment(line)) {
      continue;
    }
    const auto fields = SplitFields(line);
    const std::string key = Lower(fields.front());
    if (key == "match") {
      return;  // what follows is for some, not for all
    }
    if (key == "include" && depth < 4) {
      for (std::size_t i = 1; i < fields.size(); ++i) {
        std::string pattern(fields[i]);
        pattern = pattern.starts_with('/') ? pattern : "/etc/ssh/" + pattern;
        const Found found = FindPaths(context.machine, pattern);
        problem = problem.empty() ? found.problem : problem;
        for (const std::string& file : found.paths) {
          SshdLines(context, file, depth + 1, lines, problem);
        }
      }
      continue;
    }
    lines.push_back({path + ":" + std::to_string(number), std::string(line)});
  }
}

}  // namespace

std::vector<std::string_view> SplitLines(std::string_view text) {
  std::vector<std::string_view> lines;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    lines.push_back(text.substr(at, end - at));
    at = end + 1;
  }
  return lines;
}

std::string_view Trim(std::string_view text) {
  const std::size_t first = text.find_first_not_of(" \t\r\n");
  if (first == std::string_view::npos) {
    return {};
  }
  return text.substr(first, text.find_last_not_of(" \t\r\n") - first + 1);
}

std::vector<std::string_view> SplitFields(std::string_view line) {
  std::vector<std::string_view> fields;
  for (std::size_t at = 0; at < line.size();) {
    const std::size_t end = std::min(line.find_first_of(" \t", at), line.size());
    if (end > at) {
      fields.push_back(line.substr(at, end - at));
    }
    at = end + 1;
  }
  return fields;
}

TextOrSeen ReadFor(const ProbeContext& context, const std::string& path) {
  auto text = context.machine.Read(path, kProbeBytesMax);
  if (text.has_value()) {
    return {std::move(*text), {}, true};
  }
  return {"",
          text.error().code == Code::kNotFound ? Observed::Absent("there is no " + path)
                                               : Observed::Unknown(text.error().message),
          false};
}

Observed ObserveFile(const ProbeSpec& probe, const ProbeContext& context) {
  const Found found = FindAll(probe, context);
  if (found.paths.empty()) {
    return Nothing(probe.paths, found.problem);
  }
  Observed seen;
  for (const std::string& path : found.paths) {
    if (probe.get == "text") {
      const auto text = context.machine.Read(path, kProbeBytesMax);
      if (!text.has_value()) {
        return Observed::Unknown(text.error().message);
      }
      seen.values.push_back({path, std::string(Trim(*text))});
      continue;
    }
    const auto facts = context.machine.Look(path);
    if (!facts.has_value()) {
      return Observed::Unknown(facts.error().message);
    }
    const std::int64_t now_s =
        std::chrono::duration_cast<std::chrono::seconds>(context.now.time_since_epoch()).count();
    seen.values.push_back({path, probe.get == "mode"    ? Octal(facts->mode)
                                 : probe.get == "owner" ? std::to_string(facts->uid)
                                 : probe.get == "group" ? std::to_string(facts->gid)
                                 : probe.get == "age_days"
                                     ? std::to_string((now_s - facts->modified_s) / 86'400)
                                     : "exists"});
  }
  return seen;
}

Observed ObserveLines(const ProbeSpec& probe, const ProbeContext& context) {
  const Found found = FindAll(probe, context);
  if (found.paths.empty()) {
    return Nothing(probe.paths, found.problem);
  }
  Observed seen;
  for (const std::string& path : found.paths) {
    const auto text = context.machine.Read(path, kProbeBytesMax);
    if (!text.has_value()) {
      return Observed::Unknown(text.error().message);
    }
    std::size_t number = 0;
    for (const std::string_view raw : SplitLines(*text)) {
      ++number;
      const std::string_view line = Trim(raw);
      if (!IsComment(line) && GlobMatches(probe.match, line)) {
        seen.values.push_back({path + ":" + std::to_string(number), std::string(line)});
      }
    }
  }
  return seen;
}

// The last setting of a key wins; with `each`, all of them count.
Observed ObserveValue(const ProbeSpec& probe, const ProbeContext& context) {
  const Found found = FindAll(probe, context);
  if (found.paths.empty()) {
    return Nothing(probe.paths, found.problem);
  }
  const std::string separator = probe.separator.empty() ? "=" : probe.separator;
  Observed seen;
  for (const std::string& path : found.paths) {
    const auto text = context.machine.Read(path, kProbeBytesMax);
    if (!text.has_value()) {
      return Observed::Unknown(text.error().message);
    }
    std::string section;
    std::size_t number = 0;
    for (const std::string_view raw : SplitLines(*text)) {
      ++number;
      const std::string_view line = Trim(raw);
      if (IsComment(line)) {
        continue;
      }
      if (line.front() == '[' && line.find(']') != std::string_view::npos) {
        section = std::string(Trim(line.substr(1, line.find_last_of(']') - 1)));
        continue;
      }
      std::string_view key;
      std::string_view value;
      if (section == probe.section && SplitAssignment(line, separator, key, value) &&
          key == probe.key) {
        if (!probe.each) {
          seen.values.clear();
        }
        const std::size_t comment = value.find(" #");
        seen.values.push_back(
            {path + ":" + std::to_string(number), std::string(Unquote(value.substr(0, comment)))});
      }
    }
  }
  if (seen.values.empty()) {
    if (!probe.fallback) {
      return Observed::Absent(probe.key + " is not set in " + found.paths.front());
    }
    seen.values.push_back({found.paths.front() + " (by default)", *probe.fallback});
  }
  return seen;
}

Observed ObserveJson(const ProbeSpec& probe, const ProbeContext& context) {
  const Found found = FindAll(probe, context);
  if (found.paths.empty()) {
    return Nothing(probe.paths, found.problem);
  }
  Observed seen;
  for (const std::string& path : found.paths) {
    const auto text = context.machine.Read(path, kProbeBytesMax);
    if (!text.has_value()) {
      return Observed::Unknown(text.error().message);
    }
    const auto json = ParseJson(*text, kProbeBytesMax);
    if (!json.has_value()) {
      return Observed::Unknown(path + ": " + json.error().message);
    }
    const Json* at = Follow(*json, probe.key);
    const JsonArray* list = at == nullptr ? nullptr : at->if_array();
    if (at == nullptr || (at->is_null() && probe.fallback)) {
      if (probe.fallback) {
        seen.values.push_back({path + " (by default)", *probe.fallback});
      }
    } else if (probe.each && list != nullptr) {
      for (const Json& item : *list) {
        seen.values.push_back({path, JsonText(item)});
      }
    } else if (!(probe.each && at->is_null())) {
      seen.values.push_back({path, JsonText(*at)});
    }
  }
  if (seen.values.empty() && !probe.each) {
    return Observed::Absent(probe.key + " is not set in " + found.paths.front());
  }
  return seen;
}

// The first setting of a key wins.
Observed ObserveSshd(const ProbeSpec& probe, const ProbeContext& context) {
  std::vector<Observation> lines;
  std::string problem;
  const TextOrSeen main = ReadFor(context, "/etc/ssh/sshd_config");
  if (!main.ok) {
    return main.seen;
  }
  SshdLines(context, "/etc/ssh/sshd_config", 0, lines, problem);
  if (!problem.empty()) {
    return Observed::Unknown(problem);
  }
  for (const Observation& line : lines) {
    const auto fields = SplitFields(line.value);
    if (fields.size() >= 2 && Lower(fields[0]) == Lower(probe.key)) {
      const std::string_view rest = line.value;
      return {Observed::State::kSeen,
              "",
              {{line.where, Lower(Unquote(rest.substr(rest.find_first_of(" \t"))))}}};
    }
  }
  if (!probe.fallback) {
    return Observed::Absent(probe.key + " is not set");
  }
  return {Observed::State::kSeen, "", {{"sshd's default", *probe.fallback}}};
}

}  // namespace ringfence::assure
