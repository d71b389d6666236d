#pragma once

// DNS messages (RFC 1035), as far as a resolver for boxes needs them. Pure; whatever bytes come in,
// the work is bounded.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/bytes.h"
#include "base/result.h"

namespace ringfence::resolve {

inline constexpr std::size_t kQuestionBytesMax = 512;   // of a datagram from a box
inline constexpr std::size_t kDatagramBytesMax = 4096;  // of one from above
inline constexpr std::size_t kStreamBytesMax = 65535;   // of a message over TCP
inline constexpr std::size_t kRecordsMax = 128;         // in an answer section
inline constexpr std::size_t kAliasesMax = 8;           // CNAMEs from the question to an address
// So that every answer to a box fits into the 512 bytes of a plain datagram.
inline constexpr std::size_t kAddressesMax = 12;

inline constexpr std::uint16_t kTypeA = 1;
inline constexpr std::uint16_t kTypeAaaa = 28;
inline constexpr std::uint16_t kClassInternet = 1;

enum class Rcode : std::uint8_t {
  kOk = 0,
  kFormat = 1,
  kServerFailure = 2,
  kNoName = 3,
  kNotImplemented = 4,
  kRefused = 5,
};

// "\3www\4acme\3org\0": labels with their lengths, in small letters. Unlike text with dots in it,
// it stands for one name only.
std::string WireName(std::string_view text);  // of a name that model::IsDnsName holds for

struct Question {
  std::uint16_t id = 0;
  bool recursion = false;
  Rcode wrong = Rcode::kOk;  // what to answer without looking further
  std::string name;          // WireName
  std::uint16_t type = 0;
  Bytes asked;  // the question section, as it came
};
// What a box sent. An error: not a question at all, and not to be answered.
Result<Question> ParseQuestion(ByteView message);

struct Found {
  Rcode rcode = Rcode::kOk;
  std::uint32_t ttl_seconds = 0;  // the least on the way
  std::vector<std::uint32_t> addresses;
};
Bytes MakeAnswer(const Question& question, const Found& found);

// What we ask above: the id and the case of every letter are random, and come back in an answer.
struct Query {
  std::uint16_t id = 0;
  std::string name;  // WireName with letters of either case
};
Query MakeQuery(const std::string& name, std::uint16_t id, ByteView coins);
Bytes QueryBytes(const Query& query);

struct Answer {
  bool truncated = false;  // and nothing else is known
  Found found;
};
// kNotFound: no answer to this query; another may still come. kCorrupt: the answer to it, and
// wrong.
Result<Answer> ParseAnswer(ByteView message, const Query& query);

}  // namespace ringfence::resolve
