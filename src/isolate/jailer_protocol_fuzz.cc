// What a taken-over agent may send, and what an agent may be sent: decoders must neither crash nor
// accept what no encoder writes.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>

#include "base/check.h"
#include "isolate/jailer_protocol.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace ringfence;           // NOLINT(google-build-using-namespace)
  using namespace ringfence::isolate;  // NOLINT(google-build-using-namespace)
  const ByteView bytes = std::as_bytes(std::span(data, size));
  const auto same = [&](const Bytes& again) {
    RINGFENCE_CHECK(again.size() == bytes.size() &&
                    std::equal(again.begin(), again.end(), bytes.begin()));
  };
  if (const auto request = DecodeRequest(bytes); request.has_value()) {
    same(EncodeRequest(*request));
  }
  if (const auto reply = DecodeReply(bytes); reply.has_value()) {
    same(EncodeReply(*reply));
  }
  if (const auto records = DecodeRecords(bytes); records.has_value()) {
    same(EncodeRecords(*records));
  }
  if (const auto images = DecodeImages(bytes); images.has_value()) {
    same(EncodeImages(*images));
  }
  if (const auto texts = DecodeTexts(bytes); texts.has_value()) {
    same(EncodeTexts(*texts));
  }
  return 0;
}
