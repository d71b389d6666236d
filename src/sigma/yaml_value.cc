#include "sigma/yaml_value.h"

#include <algorithm>
#include <charconv>
#include <cmath>

#include "base/closest.h"

namespace ringfence::sigma {
namespace {

using wire::YamlNode;

bool Digits(std::string_view text) {
  return !text.empty() &&
         std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; });
}

// A number in the core schema; numbers with leading zeros are text here, as readers disagree.
std::optional<double> CoreNumber(std::string_view text) {
  std::string_view body = text;
  if (body.starts_with("0x")) {
    std::uint64_t value = 0;
    const auto [end, error] =
        std::from_chars(body.data() + 2, body.data() + body.size(), value, 16);
    if (error == std::errc() && end == body.data() + body.size() && body.size() > 2) {
      return static_cast<double>(value);
    }
    return std::nullopt;
  }
  if (body.starts_with('+') || body.starts_with('-')) {
    body.remove_prefix(1);
  }
  const std::string_view whole = body.substr(0, body.find_first_of(".eE"));
  if (!Digits(whole) || (whole.size() > 1 && whole.starts_with('0'))) {
    return std::nullopt;
  }
  if (text.starts_with('+')) {
    text.remove_prefix(1);
  }
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || !std::isfinite(value)) {
    return std::nullopt;
  }
  return value;
}

}  // namespace

std::string NumberText(double number) {
  char buffer[40];
  if (number == std::floor(number) && std::abs(number) < 9007199254740992.0) {
    const auto [end, error] =
        std::to_chars(buffer, buffer + sizeof buffer, static_cast<std::int64_t>(number));
    return {buffer, end};
  }
  const auto [end, error] = std::to_chars(buffer, buffer + sizeof buffer, number);
  return {buffer, end};
}

Scalar ScalarOf(const YamlNode& node) {
  Scalar value;
  value.line = node.line;
  if (node.kind == YamlNode::Kind::kNull) {
    value.kind = Scalar::Kind::kNull;
    return value;
  }
  value.text = node.text;
  if (node.quoted) {
    return value;
  }
  const std::string& text = node.text;
  if (text == "null" || text == "~" || text == "Null" || text == "NULL") {
    value.kind = Scalar::Kind::kNull;
  } else if (text == "true" || text == "True" || text == "TRUE" || text == "false" ||
             text == "False" || text == "FALSE") {
    value.kind = Scalar::Kind::kBool;
    value.truth = text[0] == 't' || text[0] == 'T';
    value.text = value.truth ? "true" : "false";
  } else if (const auto number = CoreNumber(text)) {
    value.kind = Scalar::Kind::kNumber;
    value.number = *number;
    // A whole number keeps its digits: identifiers may have more than a double holds.
    const bool digits = Digits(text.starts_with('-') ? std::string_view(text).substr(1) : text);
    value.text = digits ? text : NumberText(*number);
  }
  return value;
}

std::vector<YamlNode> ReadYaml(std::string_view text, const std::string& file,
                               std::vector<Problem>& problems) {
  wire::YamlProblems found;
  std::vector<YamlNode> documents = wire::ParseYaml(text, file, found);
  if (!found.empty()) {
    // "file:line: what" already, a line each.
    const std::string all = found.Text();
    std::string_view rest = all;
    while (!rest.empty()) {
      const std::size_t end = rest.find('\n');
      std::string_view line = rest.substr(0, end);
      rest.remove_prefix(end == std::string_view::npos ? rest.size() : end + 1);
      Problem problem{{file, 0}, "", ""};
      if (line.starts_with(file + ":")) {
        line.remove_prefix(file.size() + 1);
        int number = 0;
        const auto [stop, error] = std::from_chars(line.data(), line.data() + line.size(), number);
        if (error == std::errc()) {
          problem.place.line = number;
          line.remove_prefix(static_cast<std::size_t>(stop - line.data()));
        }
        line.remove_prefix(std::min(line.size(), line.find_first_not_of(": ")));
      }
      problem.what = line;
      problems.push_back(std::move(problem));
    }
  }
  return documents;
}

void Reader::Bad(int line, std::string field, std::string what, std::string hint) {
  ok_ = false;
  problems_.push_back({{file_, line}, std::move(field), std::move(what), std::move(hint)});
}

std::string PathOf(const std::string& path, std::string_view key) {
  return path.empty() ? std::string(key) : path + "." + std::string(key);
}

bool IsScalar(const YamlNode& node) {
  return node.kind == YamlNode::Kind::kText || node.kind == YamlNode::Kind::kNull;
}

int LineOf(const YamlNode& map, std::string_view key) {
  for (const auto& member : map.members) {
    if (member.key == key) {
      return member.line;
    }
  }
  return map.line;
}

std::string Reader::Text(const YamlNode& map, std::string_view key, const std::string& path,
                         bool required, std::size_t bytes_max) {
  const YamlNode* node = map.Find(key);
  if (node == nullptr || (node->kind == YamlNode::Kind::kNull && !required)) {
    if (required) {
      Bad(map.line, PathOf(path, key), "is missing");
    }
    return {};
  }
  if (node->kind != YamlNode::Kind::kText || (required && node->text.empty())) {
    Bad(node->line, PathOf(path, key), "must be text");
    return {};
  }
  if (node->text.size() > bytes_max) {
    Bad(node->line, PathOf(path, key), "is longer than " + std::to_string(bytes_max) + " bytes");
    return {};
  }
  return node->text;
}

std::vector<std::string> Reader::Texts(const YamlNode& map, std::string_view key,
                                       const std::string& path) {
  std::vector<std::string> texts;
  const YamlNode* node = map.Find(key);
  if (node == nullptr || node->kind == YamlNode::Kind::kNull) {
    return texts;
  }
  if (node->kind == YamlNode::Kind::kText) {
    texts.push_back(node->text);
    return texts;
  }
  for (const YamlNode& item : node->items) {
    if (item.kind != YamlNode::Kind::kText) {
      Bad(item.line, PathOf(path, key), "must be a list of texts");
      return {};
    }
    texts.push_back(item.text);
  }
  if (node->kind == YamlNode::Kind::kMap) {
    Bad(node->line, PathOf(path, key), "must be a list of texts");
  }
  return texts;
}

std::string Reader::Word(const YamlNode& map, std::string_view key, const std::string& path,
                         const std::vector<std::string_view>& words, bool required) {
  std::string text = Text(map, key, path, required);
  if (!text.empty() && std::find(words.begin(), words.end(), text) == words.end()) {
    std::string all;
    for (const std::string_view word : words) {
      all += (all.empty() ? "" : ", ") + std::string(word);
    }
    const auto near = Closest(text, words);
    Bad(LineOf(map, key), PathOf(path, key), "\"" + text + "\" is none of " + all,
        near ? "did you mean \"" + *near + "\"?" : "");
    return {};
  }
  return text;
}

bool Reader::Truth(const YamlNode& map, std::string_view key, const std::string& path,
                   bool fallback) {
  const YamlNode* node = map.Find(key);
  if (node == nullptr) {
    return fallback;
  }
  const Scalar value = IsScalar(*node) ? ScalarOf(*node) : Scalar{};
  if (value.kind != Scalar::Kind::kBool) {
    Bad(node->line, PathOf(path, key), "must be true or false");
    return fallback;
  }
  return value.truth;
}

}  // namespace ringfence::sigma
