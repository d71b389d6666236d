// What comes from boxes and from resolvers above, and what a taken-over resolver says to the
// jailer. Whatever is accepted stays within its bounds.

#include <cstddef>
#include <cstdint>

#include "base/check.h"
#include "resolve/dns.h"
#include "resolve/messages.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace ringfence;           // NOLINT(google-build-using-namespace)
  using namespace ringfence::resolve;  // NOLINT(google-build-using-namespace)
  const ByteView bytes(reinterpret_cast<const std::byte*>(data), size);
  if (const auto question = ParseQuestion(bytes); question.has_value()) {
    Found found;
    found.addresses.assign(kAddressesMax, 0);
    RINGFENCE_CHECK(MakeAnswer(*question, found).size() <= kQuestionBytesMax);
  }
  // As it is, and with the id and question that we wait for in front.
  const Query query{0x1234, WireName("www.acme.org")};
  Bytes framed = QueryBytes(query);
  framed[2] = std::byte{0x81};
  if (size >= 2) {
    framed[3] = bytes[0];
    framed[7] = bytes[1];
    Append(framed, bytes.subspan(2));
  }
  for (const ByteView message : {bytes, ByteView(framed)}) {
    if (const auto answer = ParseAnswer(message, query); answer.has_value()) {
      RINGFENCE_CHECK(answer->found.addresses.size() <= kAddressesMax);
    }
  }
  if (const auto wanted = ParseOpenName(bytes); wanted.has_value()) {
    const Bytes again = Encode(*wanted);
    RINGFENCE_CHECK(ByteView(again).size() == bytes.size());
  }
  if (const auto said = ParseToResolver(bytes); said.has_value()) {
    RINGFENCE_CHECK(ParseToResolver(Encode(*said)).has_value());
  }
  return 0;
}
