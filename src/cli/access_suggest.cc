#include "cli/access_suggest.h"

#include <algorithm>

#include "policy/roles.h"

namespace ringfence::cli {
namespace {

constexpr std::string_view kNewRolesFile = "narrowed-roles.yaml";
constexpr std::size_t kContextLines = 3;

using Lines = std::vector<std::string>;

Lines Split(const std::string& text) {
  Lines lines;
  std::size_t at = 0;
  while (at < text.size()) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    lines.push_back(text.substr(at, end - at));
    at = end + 1;
  }
  return lines;
}

std::string Join(const Lines& lines) {
  std::string text;
  for (const std::string& line : lines) {
    text += line + "\n";
  }
  return text;
}

bool IsDivider(const std::string& line) { return line.starts_with("---"); }

struct Range {
  std::size_t from = 0;
  std::size_t to = 0;  // behind the last
};

// The document that a line is in, without the dividers around it.
Range DocumentAt(const Lines& lines, std::size_t line) {
  Range range{std::min(line, lines.size()), std::min(line, lines.size())};
  while (range.from > 0 && !IsDivider(lines[range.from - 1])) {
    --range.from;
  }
  while (range.to < lines.size() && !IsDivider(lines[range.to])) {
    ++range.to;
  }
  return range;
}

std::string Trimmed(const std::string& line) {
  const std::size_t begin = line.find_first_not_of(' ');
  return begin == std::string::npos ? std::string() : line.substr(begin);
}

// "role" of a line "  role: developer  # why": none for another key.
bool IsRoleLine(const std::string& line, const std::string& role) {
  const std::string text = Trimmed(line);
  if (!text.starts_with("role:")) {
    return false;
  }
  std::string value = Trimmed(text.substr(5));
  value = value.substr(0, value.find_first_of(" #"));
  std::erase_if(value, [](char c) { return c == '"' || c == '\''; });
  return value == role;
}

Error NotThere(const Held& held) {
  return {Code::kInternal,
          held.file + ":" + std::to_string(held.line) + ": the binding of " + held.principal +
              " is not written as expected",
          "change it by hand: role " + held.role + " at " + held.tenant};
}

Status ChangeOne(Lines& lines, const Suggestion& suggestion) {
  const Held& held = suggestion.held;
  if (held.line < 1 || static_cast<std::size_t>(held.line) > lines.size()) {
    return NotThere(held);
  }
  Range document = DocumentAt(lines, static_cast<std::size_t>(held.line) - 1);
  if (suggestion.what == Narrowing::kRemove) {
    const bool has_role =
        std::any_of(lines.begin() + static_cast<std::ptrdiff_t>(document.from),
                    lines.begin() + static_cast<std::ptrdiff_t>(document.to),
                    [&](const std::string& line) { return IsRoleLine(line, held.role); });
    if (!has_role) {
      return NotThere(held);
    }
    // With one of its dividers, so that two documents stay two.
    if (document.to < lines.size()) {
      ++document.to;
    } else if (document.from > 0) {
      --document.from;
    }
    lines.erase(lines.begin() + static_cast<std::ptrdiff_t>(document.from),
                lines.begin() + static_cast<std::ptrdiff_t>(document.to));
    return {};
  }
  for (std::size_t i = document.from; i < document.to; ++i) {
    if (IsRoleLine(lines[i], held.role)) {
      const std::size_t at = lines[i].find("role:");
      lines[i] = lines[i].substr(0, at) + "role: " + suggestion.role;
      return {};
    }
  }
  return NotThere(held);
}

struct NewRole {
  std::set<std::string> actions;
  std::set<std::string> instead_of;  // roles
};

// Whose holders may not hold this one: what holds for the roles that it stands for.
std::set<std::string> ApartFrom(const NewRole& role, const std::map<std::string, NewRole>& all,
                                const policy::Policy& policy) {
  std::set<std::string> apart;
  const auto add = [&](std::string_view mine, std::string_view other) {
    if (!role.instead_of.contains(std::string(mine))) {
      return;
    }
    apart.emplace(other);
    for (const auto& [name, one] : all) {
      if (one.instead_of.contains(std::string(other)) && &one != &role) {
        apart.insert(name);
      }
    }
  };
  for (const auto& [a, b] : policy.DutiesApart()) {
    add(a, b);
    add(b, a);
  }
  return apart;
}

std::string ListOf(const std::set<std::string>& words) {
  std::string list;
  for (const std::string& word : words) {
    list += (list.empty() ? "" : ", ") + word;
  }
  return "[" + list + "]";
}

std::string RoleDocument(const std::string& name, const NewRole& role,
                         const std::set<std::string>& apart) {
  return "apiVersion: ringfence.dev/v1\nkind: Role\nmetadata:\n  name: " + name +
         "\nspec:\n  allows: " + ListOf(role.actions) + "\n" +
         (apart.empty() ? "" : "  apartFrom: " + ListOf(apart) + "\n");
}

// "narrow-lease.read-lease.request" would be long; a role is told apart by what it allows.
std::string NameFor(const std::set<std::string>& actions, const std::string& role,
                    const Roles& roles, std::map<std::set<std::string>, std::string>& made) {
  const auto found = made.find(actions);
  if (found != made.end()) {
    return found->second;
  }
  for (int number = 1;; ++number) {
    std::string name = role + "-narrowed" + (number == 1 ? "" : "-" + std::to_string(number));
    const bool taken =
        roles.contains(name) ||
        std::any_of(made.begin(), made.end(), [&](const auto& one) { return one.second == name; });
    if (!taken) {
      made.emplace(actions, name);
      return name;
    }
  }
}

void AddHunk(std::string& text, const Lines& before, const Lines& after, const Range& old_range,
             const Range& new_range) {
  const std::size_t lead = std::min(kContextLines, old_range.from);
  const std::size_t tail = std::min(kContextLines, before.size() - old_range.to);
  const auto head = [](std::size_t from, std::size_t count) {
    return std::to_string(count == 0 ? from : from + 1) + "," + std::to_string(count);
  };
  text += "@@ -" + head(old_range.from - lead, old_range.to - old_range.from + lead + tail) + " +" +
          head(new_range.from - lead, new_range.to - new_range.from + lead + tail) + " @@\n";
  for (std::size_t i = old_range.from - lead; i < old_range.from; ++i) {
    text += " " + before[i] + "\n";
  }
  // What is the same inside is shown as such: the longest run of lines that both have in order.
  const std::size_t rows = old_range.to - old_range.from;
  const std::size_t columns = new_range.to - new_range.from;
  std::vector<std::vector<std::uint32_t>> same(rows + 1, std::vector<std::uint32_t>(columns + 1));
  for (std::size_t i = rows; i-- > 0;) {
    for (std::size_t j = columns; j-- > 0;) {
      same[i][j] = before[old_range.from + i] == after[new_range.from + j]
                       ? same[i + 1][j + 1] + 1
                       : std::max(same[i + 1][j], same[i][j + 1]);
    }
  }
  std::size_t i = 0;
  std::size_t j = 0;
  while (i < rows || j < columns) {
    const bool equal =
        i < rows && j < columns && before[old_range.from + i] == after[new_range.from + j];
    if (equal) {
      text += " " + before[old_range.from + i++] + "\n";
      ++j;
    } else if (j == columns || (i < rows && same[i + 1][j] >= same[i][j + 1])) {
      text += "-" + before[old_range.from + i++] + "\n";
    } else {
      text += "+" + after[new_range.from + j++] + "\n";
    }
  }
  for (std::size_t k = old_range.to; k < old_range.to + tail; ++k) {
    text += " " + before[k] + "\n";
  }
}

}  // namespace

std::vector<Suggestion> Suggest(const std::vector<Held>& bindings, const Roles& roles) {
  const auto is_admin = [](const Held& held) { return held.role == "admin" && held.tenant == "/"; };
  auto admins = std::count_if(bindings.begin(), bindings.end(), is_admin);
  std::map<std::set<std::string>, std::string> made;
  std::vector<Suggestion> suggestions;
  for (const Held& held : bindings) {
    const auto role = roles.find(held.role);
    if (role == roles.end() || held.used == role->second || (is_admin(held) && admins == 1)) {
      continue;
    }
    Suggestion suggestion{held, Narrowing::kRemove, {}, {}};
    std::set<std::string> kept;
    if (!held.used.empty()) {
      kept = held.used;
      suggestion.what = Narrowing::kNewRole;
      for (const auto& [name, allows] : roles) {
        if (allows == held.used) {
          suggestion.what = Narrowing::kOtherRole;
          suggestion.role = name;
          break;
        }
      }
      if (suggestion.role.empty()) {
        suggestion.role = NameFor(kept, held.role, roles, made);
      }
    }
    std::set_difference(role->second.begin(), role->second.end(), kept.begin(), kept.end(),
                        std::back_inserter(suggestion.unneeded));
    if (suggestion.unneeded.empty()) {
      continue;
    }
    admins -= is_admin(held) ? 1 : 0;
    suggestions.push_back(std::move(suggestion));
  }
  return suggestions;
}

Result<Files> Apply(const Files& files, const std::vector<Suggestion>& suggestions) {
  Files after = files;
  std::map<std::string, std::vector<const Suggestion*>> by_file;
  std::map<std::string, NewRole> new_roles;
  RINGFENCE_ASSIGN(const auto in_force, policy::Policy::Parse(files));
  for (const Suggestion& suggestion : suggestions) {
    by_file[suggestion.held.file].push_back(&suggestion);
    if (suggestion.what == Narrowing::kNewRole) {
      NewRole& role = new_roles[suggestion.role];
      role.actions = suggestion.held.used;
      role.instead_of.insert(suggestion.held.role);
    }
  }
  for (auto& [name, changes] : by_file) {
    const auto found = files.find(name);
    if (found == files.end()) {
      return NotThere(changes.front()->held);
    }
    // From the end: the lines of those before stay where they are.
    std::sort(changes.begin(), changes.end(),
              [](const auto* a, const auto* b) { return a->held.line > b->held.line; });
    Lines lines = Split(found->second);
    for (const Suggestion* const change : changes) {
      RINGFENCE_TRY(ChangeOne(lines, *change));
    }
    after[name] = Join(lines);
  }
  for (const auto& [name, role] : new_roles) {
    std::string& text = after[std::string(kNewRolesFile)];
    text += (text.empty() ? "" : "---\n") +
            RoleDocument(name, role, ApartFrom(role, new_roles, *in_force));
  }
  return after;
}

std::string Diff(const Files& before, const Files& after) {
  std::string text;
  for (const auto& [name, new_text] : after) {
    const auto old = before.find(name);
    const std::string old_text = old == before.end() ? std::string() : old->second;
    if (old_text == new_text) {
      continue;
    }
    const Lines a = Split(old_text);
    const Lines b = Split(new_text);
    std::size_t lead = 0;
    while (lead < a.size() && lead < b.size() && a[lead] == b[lead]) {
      ++lead;
    }
    std::size_t tail = 0;
    while (tail < a.size() - lead && tail < b.size() - lead &&
           a[a.size() - 1 - tail] == b[b.size() - 1 - tail]) {
      ++tail;
    }
    text += "--- " + (old == before.end() ? std::string("/dev/null") : "a/" + name) + "\n+++ b/" +
            name + "\n";
    AddHunk(text, a, b, {lead, a.size() - tail}, {lead, b.size() - tail});
  }
  return text;
}

}  // namespace ringfence::cli
