#include "resolve/dns.h"

#include <algorithm>
#include <optional>

namespace ringfence::resolve {
namespace {

constexpr std::size_t kHeaderBytes = 12;
constexpr std::size_t kLabelBytesMax = 63;
constexpr std::size_t kNameBytesMax = 255;  // on the wire
constexpr std::uint16_t kTypeCname = 5;
constexpr std::uint16_t kIsAnswer = 0x8000;
constexpr std::uint16_t kOpcode = 0x7800;
constexpr std::uint16_t kTruncated = 0x0200;
constexpr std::uint16_t kRecursionDesired = 0x0100;
constexpr std::uint16_t kRecursionAvailable = 0x0080;
constexpr std::uint16_t kRcode = 0x000f;
constexpr std::uint8_t kPointer = 0xc0;
constexpr std::uint16_t kPointerToQuestion = 0xc00c;

char Lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }
bool IsLetter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }

std::string Lowered(std::string_view text) {
  std::string lowered(text);
  // Lengths are at most 63 and never letters.
  std::transform(lowered.begin(), lowered.end(), lowered.begin(), Lower);
  return lowered;
}

Error Corrupt(const char* what) { return Error{Code::kCorrupt, std::string("DNS: ") + what}; }

template <typename Unsigned>
void Put(Bytes& to, Unsigned value) {
  const auto bytes = PutBigEndian(value);
  Append(to, bytes);
}

// Walks one message from its start to its end.
class Reader {
 public:
  explicit Reader(ByteView message) : message_(message) {}

  std::size_t at() const { return at_; }
  bool done() const { return at_ == message_.size(); }

  template <typename Unsigned>
  Result<Unsigned> Number() {
    if (message_.size() - at_ < sizeof(Unsigned)) {
      return Corrupt("a message ends too early");
    }
    const auto value = GetBigEndian<Unsigned>(message_.subspan(at_));
    at_ += sizeof(Unsigned);
    return value;
  }

  // With its pointers followed. Each must lead further back than the last, so that there is an end.
  Result<std::string> Name() {
    std::string name;
    std::size_t at = at_;
    std::size_t before = at_;
    bool jumped = false;
    for (;;) {
      if (at >= message_.size()) {
        return Corrupt("a name ends too early");
      }
      const auto length = std::to_integer<std::uint8_t>(message_[at]);
      if ((length & kPointer) == kPointer) {
        if (at + 1 >= message_.size()) {
          return Corrupt("a name ends too early");
        }
        const std::size_t to = GetBigEndian<std::uint16_t>(message_.subspan(at)) & 0x3fffU;
        at_ = jumped ? at_ : at + 2;
        if (to >= before || to < kHeaderBytes) {
          return Corrupt("a name points forward");
        }
        jumped = true;
        before = to;
        at = to;
        continue;
      }
      if (length > kLabelBytesMax || message_.size() - at - 1 < length ||
          name.size() + 1 + length > kNameBytesMax) {
        return Corrupt("a name has a wrong label");
      }
      name += AsText(message_.subspan(at, 1U + length));
      at += 1U + length;
      if (length == 0) {
        at_ = jumped ? at_ : at;
        return name;
      }
    }
  }

  Status Skip(std::size_t count) {
    if (message_.size() - at_ < count) {
      return Corrupt("a record ends too early");
    }
    at_ += count;
    return {};
  }

 private:
  ByteView message_;
  std::size_t at_ = 0;
};

struct Header {
  std::uint16_t id = 0;
  std::uint16_t flags = 0;
  std::uint16_t questions = 0;
  std::uint16_t answers = 0;
  std::uint16_t authorities = 0;
  std::uint16_t additional = 0;
};

Result<Header> ReadHeader(Reader& reader) {
  Header header;
  for (std::uint16_t* field : {&header.id, &header.flags, &header.questions, &header.answers,
                               &header.authorities, &header.additional}) {
    RINGFENCE_ASSIGN(*field, reader.Number<std::uint16_t>());
  }
  return header;
}

struct Alias {
  std::string from;
  std::string to;
  std::uint32_t ttl = 0;
};
struct Address {
  std::string name;
  std::uint32_t address = 0;
  std::uint32_t ttl = 0;
};
struct Records {
  std::vector<Alias> aliases;
  std::vector<Address> addresses;
};

Result<Records> ReadRecords(Reader& reader, std::size_t count) {
  Records records;
  for (std::size_t i = 0; i < count; ++i) {
    RINGFENCE_ASSIGN(const std::string owner, reader.Name());
    RINGFENCE_ASSIGN(const std::uint16_t type, reader.Number<std::uint16_t>());
    RINGFENCE_ASSIGN(const std::uint16_t kind, reader.Number<std::uint16_t>());
    RINGFENCE_ASSIGN(std::uint32_t ttl, reader.Number<std::uint32_t>());
    RINGFENCE_ASSIGN(const std::uint16_t length, reader.Number<std::uint16_t>());
    ttl = (ttl & 0x80000000U) != 0 ? 0 : ttl;  // RFC 2181: as if it were zero
    const std::size_t begin = reader.at();
    if (kind == kClassInternet && type == kTypeA) {
      RINGFENCE_ASSIGN(const std::uint32_t address, reader.Number<std::uint32_t>());
      records.addresses.push_back({Lowered(owner), address, ttl});
    } else if (kind == kClassInternet && type == kTypeCname) {
      RINGFENCE_ASSIGN(const std::string to, reader.Name());
      records.aliases.push_back({Lowered(owner), Lowered(to), ttl});
    } else {
      RINGFENCE_TRY(reader.Skip(length));
    }
    if (reader.at() - begin != length) {
      return Corrupt("a record is not as long as it says");
    }
  }
  return records;
}

// From the name that was asked along the aliases of this very answer.
Result<Found> Follow(const Records& records, std::string name) {
  Found found;
  found.ttl_seconds = ~std::uint32_t{0};
  for (std::size_t step = 0;; ++step) {
    const Alias* alias = nullptr;
    for (const Alias& one : records.aliases) {
      if (one.from == name && alias != nullptr && alias->to != one.to) {
        return Corrupt("a name has two aliases");
      }
      if (one.from == name) {
        alias = &one;
      }
    }
    if (alias == nullptr) {
      break;
    }
    if (step >= kAliasesMax) {
      return Corrupt("a chain of aliases has no end");
    }
    found.ttl_seconds = std::min(found.ttl_seconds, alias->ttl);
    name = alias->to;
  }
  for (const Address& one : records.addresses) {
    const bool known = std::find(found.addresses.begin(), found.addresses.end(), one.address) !=
                       found.addresses.end();
    if (one.name == name && !known && found.addresses.size() < kAddressesMax) {
      found.addresses.push_back(one.address);
      found.ttl_seconds = std::min(found.ttl_seconds, one.ttl);
    }
  }
  if (found.addresses.empty()) {
    found.ttl_seconds = 0;
  }
  return found;
}

}  // namespace

std::string WireName(std::string_view text) {
  std::string name;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('.'), text.size());
    name += static_cast<char>(end);
    name += Lowered(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  name += '\0';
  return name;
}

Result<Question> ParseQuestion(ByteView message) {
  Reader reader(message);
  RINGFENCE_ASSIGN(const Header header, ReadHeader(reader));
  if ((header.flags & kIsAnswer) != 0) {
    return Corrupt("an answer where a question belongs");
  }
  Question question;
  question.id = header.id;
  question.recursion = (header.flags & kRecursionDesired) != 0;
  if ((header.flags & kOpcode) != 0) {
    question.wrong = Rcode::kNotImplemented;
    return question;
  }
  question.wrong = Rcode::kFormat;
  if (header.questions != 1 || header.answers != 0 || header.authorities != 0 ||
      header.additional > 1) {  // one: its EDNS options, which we pass over
    return question;
  }
  const auto name = reader.Name();
  const auto type = reader.Number<std::uint16_t>();
  const auto kind = reader.Number<std::uint16_t>();
  if (!name.has_value() || !type.has_value() || !kind.has_value()) {
    return question;
  }
  const ByteView asked = message.subspan(kHeaderBytes, reader.at() - kHeaderBytes);
  if (asked.size() != name->size() + 4) {
    return question;  // compressed, where there is nothing to point at
  }
  question.name = Lowered(*name);
  question.type = *type;
  question.asked.assign(asked.begin(), asked.end());
  question.wrong = *kind == kClassInternet ? Rcode::kOk : Rcode::kRefused;
  return question;
}

Bytes MakeAnswer(const Question& question, const Found& found) {
  Bytes bytes;
  const auto flags = static_cast<std::uint16_t>(kIsAnswer | kRecursionAvailable |
                                                (question.recursion ? kRecursionDesired : 0U) |
                                                static_cast<std::uint16_t>(found.rcode));
  Put(bytes, question.id);
  Put(bytes, flags);
  Put(bytes, static_cast<std::uint16_t>(question.asked.empty() ? 0 : 1));
  Put(bytes, static_cast<std::uint16_t>(found.addresses.size()));
  Put(bytes, std::uint32_t{0});
  Append(bytes, question.asked);
  for (const std::uint32_t address : found.addresses) {
    Put(bytes, kPointerToQuestion);
    Put(bytes, kTypeA);
    Put(bytes, kClassInternet);
    Put(bytes, found.ttl_seconds);
    Put(bytes, std::uint16_t{4});
    Put(bytes, address);
  }
  return bytes;
}

Query MakeQuery(const std::string& name, std::uint16_t id, ByteView coins) {
  Query query{id, name};
  for (std::size_t i = 0; i < name.size() && i < coins.size(); ++i) {
    if (IsLetter(name[i]) && (coins[i] & std::byte{1}) != std::byte{0}) {
      query.name[i] = static_cast<char>(name[i] - 'a' + 'A');
    }
  }
  return query;
}

Bytes QueryBytes(const Query& query) {
  Bytes bytes;
  Put(bytes, query.id);
  Put(bytes, kRecursionDesired);
  Put(bytes, std::uint16_t{1});
  Put(bytes, std::uint16_t{0});
  Put(bytes, std::uint32_t{0});
  Append(bytes, AsBytes(query.name));
  Put(bytes, kTypeA);
  Put(bytes, kClassInternet);
  return bytes;
}

Result<Answer> ParseAnswer(ByteView message, const Query& query) {
  const Error other{Code::kNotFound, "DNS: no answer to this question"};
  const Bytes asked = QueryBytes(query);
  const ByteView section = ByteView(asked).subspan(kHeaderBytes);
  Reader reader(message);
  const auto header = ReadHeader(reader);
  if (!header.has_value() || header->id != query.id || (header->flags & kIsAnswer) == 0 ||
      (header->flags & kOpcode) != 0 || header->questions != 1 || message.size() < asked.size() ||
      !std::equal(section.begin(), section.end(), message.begin() + kHeaderBytes)) {
    return other;  // the case of every letter counts
  }
  Answer answer;
  answer.truncated = (header->flags & kTruncated) != 0;
  if (answer.truncated) {
    return answer;
  }
  const auto rcode = static_cast<Rcode>(header->flags & kRcode);
  if (rcode != Rcode::kOk) {
    answer.found.rcode = rcode;
    return answer;
  }
  if (header->answers > kRecordsMax) {
    return Corrupt("too many records");
  }
  RINGFENCE_TRY(reader.Skip(section.size()));
  RINGFENCE_ASSIGN(const Records records, ReadRecords(reader, header->answers));
  RINGFENCE_ASSIGN(answer.found, Follow(records, Lowered(query.name)));
  return answer;
}

}  // namespace ringfence::resolve
