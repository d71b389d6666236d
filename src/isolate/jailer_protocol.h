#pragma once

// The messages between agent and jailer, byte for byte: docs/formats/jailer.md.
// Decoders are strict: a frame that no encoder writes is an error, and an error ends the pair.

#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/bytes.h"
#include "base/result.h"
#include "isolate/jailer_client.h"

namespace ringfence::isolate {

inline constexpr std::uint32_t kFrameMagic = 0x52464a01;  // "RFJ", version 1
inline constexpr std::size_t kFrameBytesMax = 300 * 1024;
inline constexpr std::size_t kBodyFileBytesMax = 8 * 1024 * 1024;  // a reply's memory file
inline constexpr std::size_t kInventoryBytesMax = 1024 * 1024;
inline constexpr std::size_t kRequestsOutstandingMax = 64;
inline constexpr std::size_t kBoxRecordsMax = 256;
inline constexpr std::size_t kIncidentsMax = 64;
inline constexpr std::size_t kNodeImagesMax = 256;

enum class RequestType : std::uint16_t {
  kHello = 1,
  kInventory = 2,
  kStart = 3,
  kEnd = 4,
  kScrub = 5,
  kList = 6,
  kForget = 7,
  kIncidents = 8,
  kAckIncidents = 9,
  kImages = 10,
  kSense = 11,
  kMig = 12,
};
std::string_view Name(RequestType type);

struct HelloRequest {};
struct InventoryRequest {};
struct StartRequest {
  std::string grant;
};
struct EndRequest {
  std::string lease;
};
struct ScrubRequest {
  std::string lease;
  std::vector<std::string> gpus;
};
struct ListRequest {};
struct ForgetRequest {
  std::string lease;
};
struct IncidentsRequest {};
struct AckIncidentsRequest {
  std::uint32_t count = 0;
};

struct ImagesRequest {};
struct SenseRequest {};
struct MigRequest {
  std::string order;  // the envelope
};

using RequestBody = std::variant<HelloRequest, InventoryRequest, StartRequest, EndRequest,
                                 ScrubRequest, ListRequest, ForgetRequest, IncidentsRequest,
                                 AckIncidentsRequest, ImagesRequest, SenseRequest, MigRequest>;

struct Request {
  std::uint32_t id = 0;
  RequestBody body;
};
RequestType TypeOf(const RequestBody& body);

Bytes EncodeRequest(const Request& request);
Result<Request> DecodeRequest(ByteView frame);

// A reply is an error, or what its request promises. Inventory, List, Incidents and Images answer
// with one descriptor, a sealed memory file; Start with three pipes, Sense with one; the others
// with none.
struct Reply {
  std::uint32_t id = 0;
  RequestType type = RequestType::kHello;
  Status status;
  JailerHello hello;  // of kHello
  std::string text;   // of kScrub and kMig: the receipt's or the report's envelope
};
std::size_t FdsOf(RequestType type);

Bytes EncodeReply(const Reply& reply);
Result<Reply> DecodeReply(ByteView frame);

// What the memory file of List and of Incidents holds.
Bytes EncodeRecords(const std::vector<BoxRecord>& records);
Result<std::vector<BoxRecord>> DecodeRecords(ByteView bytes);
Bytes EncodeTexts(const std::vector<std::string>& texts);
Result<std::vector<std::string>> DecodeTexts(ByteView bytes);
Bytes EncodeImages(const std::vector<NodeImage>& images);
Result<std::vector<NodeImage>> DecodeImages(ByteView bytes);

}  // namespace ringfence::isolate
