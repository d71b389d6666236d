#pragma once

// DNS messages for tests, written without the code that is tested.

#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/bytes.h"

namespace ringfence::resolve::wire {

inline std::string Number16(std::uint32_t value) {
  return {static_cast<char>(value >> 8U), static_cast<char>(value)};
}
inline std::string Number32(std::uint32_t value) {
  return Number16(value >> 16U) + Number16(value & 0xffffU);
}
inline std::string Name(std::string_view text) {
  std::string name;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('.'), text.size());
    name += static_cast<char>(end) + std::string(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return name + std::string(1, '\0');
}
inline std::string Record(std::string_view owner, std::uint32_t type, std::uint32_t ttl,
                          const std::string& data) {
  return Name(owner) + Number16(type) + Number16(1) + Number32(ttl) +
         Number16(static_cast<std::uint32_t>(data.size())) + data;
}
inline std::string Address(std::string_view owner, std::uint32_t address, std::uint32_t ttl) {
  return Record(owner, 1, ttl, Number32(address));
}
inline std::string Alias(std::string_view owner, std::string_view to, std::uint32_t ttl) {
  return Record(owner, 5, ttl, Name(to));
}

struct Message {
  std::uint32_t id = 0x1234;
  std::uint32_t flags = 0x8180;
  std::uint32_t questions = 1;
  std::string question;  // a name on the wire
  std::uint32_t type = 1;
  std::uint32_t kind = 1;
  std::vector<std::string> records;
  std::uint32_t answers = 0xffffffff;  // as many as there are

  Bytes Write() const {
    const auto count = answers == 0xffffffff ? static_cast<std::uint32_t>(records.size()) : answers;
    std::string text = Number16(id) + Number16(flags) + Number16(questions) + Number16(count) +
                       Number32(0) + question + Number16(type) + Number16(kind);
    for (const std::string& record : records) {
      text += record;
    }
    return ToBytes(text);
  }
};

// The answer to a query as a true resolver would begin it: its id and question.
inline Message AnswerTo(ByteView query) {
  const std::string text = ToText(query);
  Message message;
  message.id = GetBigEndian<std::uint16_t>(query);
  message.question = text.substr(12, text.size() - 16);
  return message;
}
// The name asked for, in small letters and with dots.
inline std::string AskedName(ByteView query) {
  std::string name;
  const std::string wire = AnswerTo(query).question;
  for (std::size_t at = 0; at < wire.size() && wire[at] != 0;) {
    const auto length = static_cast<std::size_t>(wire[at]);
    for (const char c : wire.substr(at + 1, length)) {
      name += c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c;
    }
    name += '.';
    at += 1 + length;
  }
  return name.substr(0, name.empty() ? 0 : name.size() - 1);
}

}  // namespace ringfence::resolve::wire
