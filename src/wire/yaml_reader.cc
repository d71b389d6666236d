// Typed reading of a parsed map; declared in wire/yaml.h.

#include <algorithm>
#include <charconv>

#include "base/closest.h"
#include "wire/yaml.h"

namespace ringfence::wire {
namespace {

std::string_view Name(YamlNode::Kind kind) {
  switch (kind) {
    case YamlNode::Kind::kNull:
      return "nothing";
    case YamlNode::Kind::kText:
      return "a single value";
    case YamlNode::Kind::kList:
      return "a list";
    case YamlNode::Kind::kMap:
      return "a map";
  }
  return "unknown";
}

bool IsOneOf(std::string_view text, std::initializer_list<std::string_view> words) {
  return std::find(words.begin(), words.end(), text) != words.end();
}

std::size_t SkipDigits(std::string_view text, std::size_t at) {
  while (at < text.size() && text[at] >= '0' && text[at] <= '9') {
    ++at;
  }
  return at;
}

// The core schema's numbers: [-+]? ( .[0-9]+ | [0-9]+ ( .[0-9]* )? ) ( [eE] [-+]? [0-9]+ )?
bool IsDecimal(std::string_view text) {
  const auto is_one_of = [&](std::size_t at, std::string_view marks) {
    return at < text.size() && marks.find(text[at]) != std::string_view::npos;
  };
  const std::size_t begin = is_one_of(0, "+-") ? 1 : 0;
  std::size_t at = SkipDigits(text, begin);
  std::size_t digits = at - begin;
  if (is_one_of(at, ".")) {
    const std::size_t fraction = SkipDigits(text, at + 1);
    digits += fraction - at - 1;
    at = fraction;
  }
  if (digits == 0) {
    return false;
  }
  if (is_one_of(at, "eE")) {
    const std::size_t exponent = at + (is_one_of(at + 1, "+-") ? 2 : 1);
    at = SkipDigits(text, exponent);
    if (at == exponent) {
      return false;
    }
  }
  return at == text.size();
}

}  // namespace

const YamlNode* YamlNode::Find(std::string_view key) const {
  for (const YamlMember& member : members) {
    if (member.key == key) {
      return &member.value;
    }
  }
  return nullptr;
}

bool YamlNode::LooksTyped() const {
  if (kind != Kind::kText || quoted) {
    return kind == Kind::kNull;
  }
  if (IsOneOf(text, {"", "~", "null", "Null", "NULL", "true", "True", "TRUE", "false", "False",
                     "FALSE", ".nan", ".NaN", ".NAN", ".inf", ".Inf", ".INF", "+.inf", "-.inf"})) {
    return true;
  }
  if (text.starts_with("0x") || text.starts_with("0o")) {
    return text.size() > 2 &&
           text.find_first_not_of("0123456789abcdefABCDEF", 2) == std::string::npos;
  }
  return IsDecimal(text);
}

YamlReader::YamlReader(const YamlNode* node, std::string path, YamlText where,
                       YamlProblems& problems)
    : node_(node),
      path_(std::move(path)),
      file_(std::move(where.text)),
      line_(node != nullptr ? node->line : where.line),
      problems_(&problems) {
  if (node_ == nullptr || node_->kind != YamlNode::Kind::kMap) {
    const std::string found = node_ == nullptr
                                  ? std::string("missing")
                                  : "must be a map, but is " + std::string(Name(node_->kind));
    problems_->Add(YamlProblem{file_, line_, path_, found,
                               "write \"name: value\" lines below it, or {} for none"});
    node_ = nullptr;
  }
}

int YamlReader::LineOf(std::string_view name) const {
  if (node_ != nullptr) {
    for (const YamlMember& member : node_->members) {
      if (member.key == name) {
        return member.line;
      }
    }
  }
  return line_;
}

void YamlReader::Problem(std::string_view name, int line, std::string what, std::string hint) {
  const std::string path =
      path_.empty() || name.empty() ? path_ + std::string(name) : path_ + "." + std::string(name);
  problems_->Add(YamlProblem{file_, line, path, std::move(what), std::move(hint)});
}

const YamlNode* YamlReader::Any(std::string_view name) {
  asked_.push_back(name);
  return node_ == nullptr ? nullptr : node_->Find(name);
}

const YamlNode* YamlReader::Need(std::string_view name, std::string_view what) {
  const YamlNode* const found = Any(name);
  if (found == nullptr || found->kind == YamlNode::Kind::kNull) {
    if (node_ != nullptr) {
      Problem(name, LineOf(name), "missing", "give " + std::string(what));
    }
    return nullptr;
  }
  return found;
}

std::optional<YamlText> YamlReader::TextOf(std::string_view name, const YamlNode& node,
                                           std::size_t bytes_max) {
  if (node.kind != YamlNode::Kind::kText) {
    Problem(name, node.line, "must be text, but is " + std::string(Name(node.kind)));
  } else if (node.LooksTyped()) {
    Problem(name, node.line, "must be text, but " + node.text + " reads as another type",
            "put it in quotes");
  } else if (node.text.empty() || node.text.size() > bytes_max) {
    Problem(name, node.line, "must have from 1 to " + std::to_string(bytes_max) + " bytes");
  } else {
    return YamlText{node.text, node.line};
  }
  return std::nullopt;
}

std::optional<YamlText> YamlReader::Text(std::string_view name, std::size_t bytes_max) {
  const YamlNode* const found = Need(name, "a text");
  return found == nullptr ? std::nullopt : TextOf(name, *found, bytes_max);
}

std::optional<YamlText> YamlReader::TextIfGiven(std::string_view name, std::size_t bytes_max) {
  const YamlNode* const found = Any(name);
  return found == nullptr ? std::nullopt : TextOf(name, *found, bytes_max);
}

std::optional<std::uint64_t> YamlReader::Number(std::string_view name, std::uint64_t most) {
  const std::string range = "a whole number from 0 to " + std::to_string(most);
  const YamlNode* const found = Need(name, range);
  if (found == nullptr) {
    return std::nullopt;
  }
  std::uint64_t number = 0;
  const char* const end = found->text.data() + found->text.size();
  const auto parsed = std::from_chars(found->text.data(), end, number);
  const bool digits = found->kind == YamlNode::Kind::kText && !found->quoted &&
                      parsed.ec == std::errc() && parsed.ptr == end &&
                      (found->text == "0" || found->text[0] != '0');
  if (!digits || number > most) {
    Problem(name, found->line, "must be " + range,
            found->quoted && parsed.ptr == end ? "write it without quotes" : "");
    return std::nullopt;
  }
  return number;
}

std::vector<YamlText> YamlReader::Texts(std::string_view name, std::size_t least,
                                        std::size_t most) {
  const YamlNode* const found = Need(name, "a list");
  if (found == nullptr) {
    return {};
  }
  if (found->kind != YamlNode::Kind::kList) {
    Problem(name, found->line, "must be a list, but is " + std::string(Name(found->kind)),
            "write [a, b], or a \"- \" line for each");
    return {};
  }
  if (found->items.size() < least || found->items.size() > most) {
    const std::string count = least == most
                                  ? "exactly " + std::to_string(least)
                                  : "from " + std::to_string(least) + " to " + std::to_string(most);
    Problem(name, found->line,
            "must have " + count + " entries, but has " + std::to_string(found->items.size()));
    return {};
  }
  std::vector<YamlText> texts;
  bool all = true;
  for (const YamlNode& item : found->items) {
    const auto text = TextOf(name, item, 256);
    all = all && text.has_value();
    if (text.has_value()) {
      texts.push_back(*text);
    }
  }
  return all ? texts : std::vector<YamlText>();
}

void YamlReader::Finish() {
  if (node_ == nullptr) {
    return;
  }
  for (const YamlMember& member : node_->members) {
    if (std::find(asked_.begin(), asked_.end(), member.key) != asked_.end()) {
      continue;
    }
    const auto closest = Closest(member.key, asked_);
    std::string known;
    for (const std::string_view name : asked_) {
      known += (known.empty() ? "" : ", ") + std::string(name);
    }
    Problem(member.key, member.line, "unknown field",
            closest.has_value() ? "did you mean \"" + *closest + "\"?"
                                : "the fields here are " + known);
  }
}

}  // namespace ringfence::wire
