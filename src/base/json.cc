#include "base/json.h"

#include <algorithm>
#include <boost/json/basic_parser_impl.hpp>
#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>

#include "base/check.h"
#include "base/encoding.h"

namespace ringfence {
namespace {

// Boost keeps the last of two members with one name; a reader that keeps the first would see
// another document. So a first pass over the text only looks for repeated names.
struct DuplicateFinder {
  static constexpr std::size_t max_object_size = std::size_t(-1);
  static constexpr std::size_t max_array_size = std::size_t(-1);
  static constexpr std::size_t max_key_size = std::size_t(-1);
  static constexpr std::size_t max_string_size = std::size_t(-1);
  using Ec = boost::json::error_code;

  std::vector<std::vector<std::string>> open;
  std::string key;
  std::string repeated;

  bool on_document_begin(Ec&) { return true; }
  bool on_document_end(Ec&) { return true; }
  bool on_object_begin(Ec&) {
    open.emplace_back();
    return true;
  }
  bool on_object_end(std::size_t, Ec& ec) {
    auto& names = open.back();
    std::sort(names.begin(), names.end());
    const auto twice = std::adjacent_find(names.begin(), names.end());
    if (twice != names.end()) {
      repeated = *twice;
      ec = boost::json::error::syntax;
      return false;
    }
    open.pop_back();
    return true;
  }
  bool on_array_begin(Ec&) { return true; }
  bool on_array_end(std::size_t, Ec&) { return true; }
  bool on_key_part(boost::json::string_view part, std::size_t, Ec&) {
    key.append(part.data(), part.size());
    return true;
  }
  bool on_key(boost::json::string_view part, std::size_t, Ec&) {
    key.append(part.data(), part.size());
    open.back().push_back(std::move(key));
    key.clear();
    return true;
  }
  bool on_string_part(boost::json::string_view, std::size_t, Ec&) { return true; }
  bool on_string(boost::json::string_view, std::size_t, Ec&) { return true; }
  bool on_number_part(boost::json::string_view, Ec&) { return true; }
  bool on_int64(std::int64_t, boost::json::string_view, Ec&) { return true; }
  bool on_uint64(std::uint64_t, boost::json::string_view, Ec&) { return true; }
  bool on_double(double, boost::json::string_view, Ec&) { return true; }
  bool on_bool(bool, Ec&) { return true; }
  bool on_null(Ec&) { return true; }
  bool on_comment_part(boost::json::string_view, Ec&) { return true; }
  bool on_comment(boost::json::string_view, Ec&) { return true; }
};

void AppendQuoted(std::string& out, std::string_view text) {
  out += '"';
  for (const char c : text) {
    switch (c) {
      case '"':
        out += "\\\"";
        break;
      case '\\':
        out += "\\\\";
        break;
      case '\b':
        out += "\\b";
        break;
      case '\f':
        out += "\\f";
        break;
      case '\n':
        out += "\\n";
        break;
      case '\r':
        out += "\\r";
        break;
      case '\t':
        out += "\\t";
        break;
      default:
        if (static_cast<unsigned char>(c) < 0x20) {
          constexpr std::string_view kDigits = "0123456789abcdef";
          out += "\\u00";
          out += kDigits[static_cast<unsigned char>(c) >> 4U];
          out += kDigits[static_cast<unsigned char>(c) & 15U];
        } else {
          out += c;
        }
    }
  }
  out += '"';
}

// Order by UTF-16 code unit differs from byte order only where a supplementary character (lead
// byte 0xf0 and up, in UTF-16 a surrogate) meets one from U+E000 to U+FFFF (lead 0xee, 0xef).
bool Utf16Less(std::string_view a, std::string_view b) {
  const auto [left, right] = std::mismatch(a.begin(), a.end(), b.begin(), b.end());
  if (left == a.end() || right == b.end()) {
    return left == a.end() && right != b.end();
  }
  const auto x = static_cast<unsigned char>(*left);
  const auto y = static_cast<unsigned char>(*right);
  if (x >= 0xee && y >= 0xee && (x >= 0xf0) != (y >= 0xf0)) {
    return x >= 0xf0;
  }
  return x < y;
}

std::string_view View(boost::json::string_view text) { return {text.data(), text.size()}; }

void AppendCanonical(std::string& out, const Json& value) {
  if (const auto* object = value.if_object()) {
    std::vector<const boost::json::key_value_pair*> members;
    members.reserve(object->size());
    for (const auto& member : *object) {
      members.push_back(&member);
    }
    std::sort(members.begin(), members.end(), [](const auto* a, const auto* b) {
      return Utf16Less(View(a->key()), View(b->key()));
    });
    char separator = '{';
    for (const auto* member : members) {
      out += separator;
      separator = ',';
      AppendQuoted(out, View(member->key()));
      out += ':';
      AppendCanonical(out, member->value());
    }
    out += members.empty() ? "{}" : "}";
  } else if (const auto* array = value.if_array()) {
    char separator = '[';
    for (const auto& element : *array) {
      out += separator;
      separator = ',';
      AppendCanonical(out, element);
    }
    out += array->empty() ? "[]" : "]";
  } else if (const auto* text = value.if_string()) {
    AppendQuoted(out, View(*text));
  } else if (value.is_bool()) {
    out += value.get_bool() ? "true" : "false";
  } else if (value.is_null()) {
    out += "null";
  } else {
    constexpr std::int64_t kMost = std::int64_t{1} << 53U;
    std::int64_t number = 0;
    if (const auto* plain = value.if_int64()) {
      number = *plain;
    } else {
      const auto* large = value.if_uint64();
      RINGFENCE_CHECK(large != nullptr && *large <= static_cast<std::uint64_t>(kMost));
      number = static_cast<std::int64_t>(*large);
    }
    RINGFENCE_CHECK(number <= kMost && number >= -kMost);
    out += std::to_string(number);
  }
}

void AppendPretty(std::string& out, const Json& value, std::size_t indent) {
  const auto line = [&](std::size_t depth) {
    out += '\n';
    out.append(depth * 2, ' ');
  };
  if (const auto* object = value.if_object(); object != nullptr && !object->empty()) {
    char separator = '{';
    for (const auto& member : *object) {
      out += separator;
      separator = ',';
      line(indent + 1);
      AppendQuoted(out, View(member.key()));
      out += ": ";
      AppendPretty(out, member.value(), indent + 1);
    }
    line(indent);
    out += '}';
  } else if (const auto* array = value.if_array(); array != nullptr && !array->empty()) {
    char separator = '[';
    for (const auto& element : *array) {
      out += separator;
      separator = ',';
      line(indent + 1);
      AppendPretty(out, element, indent + 1);
    }
    line(indent);
    out += ']';
  } else {
    out += boost::json::serialize(value);
  }
}

}  // namespace

Result<Json> ParseJson(std::string_view text, std::size_t bytes_max) {
  if (text.size() > bytes_max) {
    return Error{Code::kInvalidArgument,
                 "JSON document is over " + std::to_string(bytes_max) + " bytes"};
  }
  if (!IsUtf8(text)) {
    return Error{Code::kInvalidArgument, "JSON document is not UTF-8"};
  }
  boost::json::parse_options options;
  options.max_depth = kJsonDepthMax;
  boost::json::error_code ec;
  boost::json::basic_parser<DuplicateFinder> finder(options);
  const std::size_t used = finder.write_some(false, text.data(), text.size(), ec);
  if (!finder.handler().repeated.empty()) {
    return Error{Code::kInvalidArgument,
                 "JSON object has the member \"" + finder.handler().repeated + "\" twice"};
  }
  if (ec) {
    return Error{Code::kInvalidArgument,
                 "not valid JSON near byte " + std::to_string(used) + ": " + ec.message()};
  }
  Json value =
      boost::json::parse(boost::json::string_view(text.data(), text.size()), ec, {}, options);
  if (ec) {
    return Error{Code::kInvalidArgument, "not valid JSON: " + ec.message()};
  }
  return value;
}

std::string CanonicalJson(const Json& value) {
  std::string out;
  AppendCanonical(out, value);
  return out;
}

std::string PrettyJson(const Json& value) {
  std::string out;
  AppendPretty(out, value, 0);
  return out;
}

Result<JsonReader> JsonReader::Open(const Json& value, std::string path) {
  const auto* object = value.if_object();
  if (object == nullptr) {
    return Error{Code::kInvalidArgument,
                 (path.empty() ? std::string("the document") : path) + " must be a JSON object",
                 {},
                 path};
  }
  return JsonReader(*object, std::move(path));
}

std::string JsonReader::Path(std::string_view name) const {
  return path_.empty() ? std::string(name) : path_ + "." + std::string(name);
}

const Json* JsonReader::Find(std::string_view name) {
  asked_.push_back(name);
  const Json* found = object_->if_contains(boost::json::string_view(name.data(), name.size()));
  return found != nullptr && !found->is_null() ? found : nullptr;
}

Error JsonReader::Wrong(std::string_view name, std::string_view expected) const {
  const std::string path = Path(name);
  return Error{Code::kInvalidArgument, path + " must be " + std::string(expected), {}, path};
}

bool JsonReader::Has(std::string_view name) { return Find(name) != nullptr; }

Result<std::string> JsonReader::String(std::string_view name, std::size_t bytes_max) {
  const Json* found = Find(name);
  const auto* text = found == nullptr ? nullptr : found->if_string();
  if (text == nullptr || text->size() > bytes_max) {
    return Wrong(name, "a string of at most " + std::to_string(bytes_max) + " bytes");
  }
  return std::string(text->data(), text->size());
}

Result<std::int64_t> JsonReader::Int(std::string_view name, std::int64_t least, std::int64_t most) {
  const Json* found = Find(name);
  const std::int64_t* number = found == nullptr ? nullptr : found->if_int64();
  if (number == nullptr || *number < least || *number > most) {
    return Wrong(name,
                 "a whole number from " + std::to_string(least) + " to " + std::to_string(most));
  }
  return *number;
}

Result<bool> JsonReader::Bool(std::string_view name) {
  const Json* found = Find(name);
  const bool* flag = found == nullptr ? nullptr : found->if_bool();
  if (flag == nullptr) {
    return Wrong(name, "true or false");
  }
  return *flag;
}

Result<const Json*> JsonReader::Any(std::string_view name) {
  const Json* found = Find(name);
  if (found == nullptr) {
    return Wrong(name, "given");
  }
  return found;
}

Result<std::vector<const Json*>> JsonReader::Array(std::string_view name, std::size_t count_max) {
  const Json* found = Find(name);
  const auto* array = found == nullptr ? nullptr : found->if_array();
  if (array == nullptr || array->size() > count_max) {
    return Wrong(name, "a list of at most " + std::to_string(count_max));
  }
  std::vector<const Json*> elements;
  elements.reserve(array->size());
  for (const auto& element : *array) {
    elements.push_back(&element);
  }
  return elements;
}

Result<std::vector<std::string>> JsonReader::Strings(std::string_view name, std::size_t count_max,
                                                     std::size_t bytes_max) {
  RINGFENCE_ASSIGN(const auto elements, Array(name, count_max));
  std::vector<std::string> texts;
  texts.reserve(elements.size());
  for (const Json* element : elements) {
    const auto* text = element->if_string();
    if (text == nullptr || text->size() > bytes_max) {
      return Wrong(name, "a list of strings of at most " + std::to_string(bytes_max) + " bytes");
    }
    texts.emplace_back(text->data(), text->size());
  }
  return texts;
}

Result<std::string> JsonReader::StringOr(std::string_view name, std::string fallback,
                                         std::size_t bytes_max) {
  return Has(name) ? String(name, bytes_max) : Result<std::string>(std::move(fallback));
}

Result<std::int64_t> JsonReader::IntOr(std::string_view name, std::int64_t fallback,
                                       std::int64_t least, std::int64_t most) {
  return Has(name) ? Int(name, least, most) : Result<std::int64_t>(fallback);
}

Result<bool> JsonReader::BoolOr(std::string_view name, bool fallback) {
  return Has(name) ? Bool(name) : Result<bool>(fallback);
}

Status JsonReader::Finish() const {
  for (const auto& member : *object_) {
    const std::string_view key = View(member.key());
    if (std::find(asked_.begin(), asked_.end(), key) == asked_.end()) {
      const std::string path = Path(key);
      return Error{Code::kInvalidArgument, "unknown field " + path,
                   "check the spelling, or leave it out", path};
    }
  }
  return {};
}

}  // namespace ringfence
