// Between YAML and JSON; declared in wire/yaml.h.

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>

#include "wire/yaml.h"

namespace ringfence::wire {
namespace {

constexpr std::string_view kHexDigits = "0123456789abcdef";

bool IsOneOf(std::string_view text, std::initializer_list<std::string_view> words) {
  return std::find(words.begin(), words.end(), text) != words.end();
}

// Digits in the given base; false when they are not, or do not fit.
bool ParseInteger(std::string_view digits, int base, std::int64_t& number) {
  const char* const end = digits.data() + digits.size();
  const auto parsed = std::from_chars(digits.data(), end, number, base);
  return parsed.ec == std::errc() && parsed.ptr == end;
}

class Converter {
 public:
  Converter(const std::string& file, YamlProblems& problems) : file_(file), problems_(problems) {}

  // Recursion is bounded by kYamlDepthMax.
  Json Convert(const YamlNode& node, const std::string& path) {
    switch (node.kind) {
      case YamlNode::Kind::kNull:
        return nullptr;
      case YamlNode::Kind::kText:
        return Scalar(node, path);
      case YamlNode::Kind::kList: {
        JsonArray array;
        array.reserve(node.items.size());
        for (const YamlNode& item : node.items) {
          array.push_back(Convert(item, path + "[" + std::to_string(array.size()) + "]"));
        }
        return array;
      }
      case YamlNode::Kind::kMap: {
        JsonObject object;
        for (const YamlMember& member : node.members) {
          object[member.key] =
              Convert(member.value, path.empty() ? member.key : path + "." + member.key);
        }
        return object;
      }
    }
    return nullptr;
  }

 private:
  Json Scalar(const YamlNode& node, const std::string& path) {
    const std::string& text = node.text;
    if (!node.LooksTyped()) {
      return Json(text);
    }
    if (IsOneOf(text, {"", "~", "null", "Null", "NULL"})) {
      return nullptr;
    }
    if (IsOneOf(text, {"true", "True", "TRUE", "false", "False", "FALSE"})) {
      return text[0] == 't' || text[0] == 'T';
    }
    std::int64_t number = 0;
    if (text.starts_with("0x") || text.starts_with("0o")) {
      if (ParseInteger(std::string_view(text).substr(2), text[1] == 'x' ? 16 : 8, number) &&
          number >= 0) {
        return number;
      }
      return Wrong(node, path);
    }
    const std::string_view unsigned_text =
        std::string_view(text).substr(text[0] == '+' || text[0] == '-' ? 1 : 0);
    if (unsigned_text.size() > 1 && unsigned_text[0] == '0' && unsigned_text[1] != '.' &&
        unsigned_text[1] != 'e' && unsigned_text[1] != 'E') {
      return Wrong(node, path);
    }
    const std::string_view digits = text[0] == '+' ? unsigned_text : std::string_view(text);
    if (ParseInteger(digits, 10, number)) {
      return number;
    }
    double real = 0;
    const char* const end = digits.data() + digits.size();
    const auto parsed = std::from_chars(digits.data(), end, real);
    const bool whole = digits.find_first_of(".eE") == std::string_view::npos;
    if (whole || parsed.ec != std::errc() || parsed.ptr != end || !std::isfinite(real)) {
      return Wrong(node, path);
    }
    return real;
  }

  Json Wrong(const YamlNode& node, const std::string& path) {
    problems_.Add(YamlProblem{file_, node.line, path,
                              node.text + " is neither plainly a number nor plainly text",
                              "put text in quotes; write numbers without leading zeros"});
    return nullptr;
  }

  const std::string& file_;
  YamlProblems& problems_;
};

bool IsPlainSafe(std::string_view text) {
  const auto letter = [](char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); };
  const auto inside = [&](char c) {
    return letter(c) || (c >= '0' && c <= '9') || IsOneOf({&c, 1}, {"_", "-", ".", "/", "@", " "});
  };
  if (text.empty() || text.size() > 200 || !(letter(text[0]) || text[0] == '/') ||
      text.back() == ' ' || !std::all_of(text.begin(), text.end(), inside)) {
    return false;
  }
  std::string lower(text);
  std::transform(lower.begin(), lower.end(), lower.begin(), [](char c) {
    return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  });
  return !IsOneOf(lower, {"null", "true", "false", "yes", "no", "on", "off", "y", "n"});
}

// The code point that begins at `at`, and how many bytes it has. `text` is UTF-8.
std::pair<std::uint32_t, std::size_t> CodePoint(std::string_view text, std::size_t at) {
  const auto byte = [&](std::size_t i) {
    return i < text.size() ? static_cast<std::uint32_t>(static_cast<unsigned char>(text[i])) : 0U;
  };
  const std::uint32_t lead = byte(at);
  if (lead < 0xc0) {
    return {lead, 1};
  }
  if (lead < 0xe0) {
    return {((lead & 0x1fU) << 6U) | (byte(at + 1) & 0x3fU), 2};
  }
  if (lead < 0xf0) {
    return {((lead & 0x0fU) << 12U) | ((byte(at + 1) & 0x3fU) << 6U) | (byte(at + 2) & 0x3fU), 3};
  }
  return {0x10000, 4};  // never escaped, so which one does not matter
}

bool NeedsEscape(std::uint32_t c) {
  return c < 0x20 || (c >= 0x7f && c <= 0x9f) || (c >= 0x200b && c <= 0x200f) ||
         (c >= 0x2028 && c <= 0x202e) || (c >= 0x2066 && c <= 0x2069) || c == 0xfeff ||
         c == 0xfffe || c == 0xffff;
}

void AppendText(std::string& out, std::string_view text) {
  if (IsPlainSafe(text)) {
    out += text;
    return;
  }
  out += '"';
  for (std::size_t at = 0; at < text.size();) {
    const auto [c, bytes] = CodePoint(text, at);
    if (c == '\n') {
      out += "\\n";
    } else if (c == '\t') {
      out += "\\t";
    } else if (c == '"' || c == '\\') {
      out += '\\';
      out += static_cast<char>(c);
    } else if (NeedsEscape(c)) {
      out += "\\u";
      for (unsigned shift = 16; shift > 0; shift -= 4) {
        out += kHexDigits[(c >> (shift - 4)) & 15U];
      }
    } else {
      out += text.substr(at, bytes);
    }
    at += bytes;
  }
  out += '"';
}

std::string_view View(boost::json::string_view text) { return {text.data(), text.size()}; }

bool IsBlock(const Json& value) {
  return (value.is_object() && !value.get_object().empty()) ||
         (value.is_array() && !value.get_array().empty());
}

// Writes `value` from where the line stands; a block's later lines are indented by `indent`.
void AppendYaml(std::string& out, const Json& value, std::size_t indent) {
  bool first = true;
  const auto line = [&] {
    if (!first) {
      out.append(indent, ' ');
    }
    first = false;
  };
  if (const auto* object = value.if_object(); object != nullptr && !object->empty()) {
    for (const auto& member : *object) {
      line();
      AppendText(out, View(member.key()));
      out += ':';
      if (IsBlock(member.value())) {
        out += '\n';
        out.append(indent + 2, ' ');
      } else {
        out += ' ';
      }
      AppendYaml(out, member.value(), indent + 2);
    }
  } else if (const auto* array = value.if_array(); array != nullptr && !array->empty()) {
    for (const Json& item : *array) {
      line();
      out += "- ";
      AppendYaml(out, item, indent + 2);
    }
  } else if (const auto* text = value.if_string()) {
    AppendText(out, View(*text));
    out += '\n';
  } else {
    out += PrettyJson(value);  // {}, [], null, true, false and numbers are the same in both
    out += '\n';
  }
}

}  // namespace

Result<Json> YamlToJson(std::string_view text, const std::string& file) {
  YamlProblems problems;
  const std::vector<YamlNode> documents = ParseYaml(text, file, problems);
  Json json = nullptr;
  if (documents.size() > 1) {
    problems.Add(YamlProblem{
        file, documents[1].line, {}, "a second document", "keep one document in this file"});
  } else if (documents.size() == 1) {
    json = Converter(file, problems).Convert(documents[0], {});
  }
  if (!problems.empty()) {
    return Error{Code::kInvalidArgument, problems.Text()};
  }
  return json;
}

std::string JsonToYaml(const Json& value) {
  std::string out;
  AppendYaml(out, value, 0);
  return out;
}

}  // namespace ringfence::wire
