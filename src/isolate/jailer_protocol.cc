#include "isolate/jailer_protocol.h"

#include "base/code.h"
#include "crypto/dsse.h"
#include "isolate/names.h"
#include "model/lease.h"

namespace ringfence::isolate {
namespace {

constexpr std::uint16_t kReplyBit = 0x8000;
constexpr std::uint8_t kReplyOk = 0xff;  // any other value is a place in kCodeTable
constexpr std::size_t kMessageBytesMax = 4096;
constexpr std::size_t kHelloTextBytesMax = 256;
constexpr std::size_t kMissingMax = 32;
constexpr std::size_t kDigestBytesMax = 80;
constexpr std::size_t kImageNamesMax = 64;
constexpr std::size_t kImageNameBytesMax = 512;

class Writer {
 public:
  template <typename Unsigned>
  void Number(Unsigned value) {
    Append(bytes_, PutBigEndian(value));
  }
  void Text(std::string_view text) {
    Number(static_cast<std::uint32_t>(text.size()));
    Append(bytes_, AsBytes(text));
  }
  void Texts(const std::vector<std::string>& texts) {
    Number(static_cast<std::uint16_t>(texts.size()));
    for (const std::string& text : texts) {
      Text(text);
    }
  }
  Bytes Take() { return std::move(bytes_); }

 private:
  Bytes bytes_;
};

class Reader {
 public:
  explicit Reader(ByteView bytes) : rest_(bytes) {}

  template <typename Unsigned>
  Result<Unsigned> Number() {
    if (rest_.size() < sizeof(Unsigned)) {
      return Cut();
    }
    const auto value = GetBigEndian<Unsigned>(rest_);
    rest_ = rest_.subspan(sizeof(Unsigned));
    return value;
  }
  Result<std::string> Text(std::size_t bytes_max) {
    RINGFENCE_ASSIGN(const auto size, Number<std::uint32_t>());
    if (size > bytes_max) {
      return Error{Code::kInvalidArgument, "a field is longer than it may be"};
    }
    if (rest_.size() < size) {
      return Cut();
    }
    std::string text = ToText(rest_.first(size));
    rest_ = rest_.subspan(size);
    return text;
  }
  Result<std::vector<std::string>> Texts(std::size_t count_max, std::size_t bytes_max) {
    RINGFENCE_ASSIGN(const auto count, Number<std::uint16_t>());
    if (count > count_max) {
      return Error{Code::kInvalidArgument, "a list is longer than it may be"};
    }
    std::vector<std::string> texts;
    for (std::size_t i = 0; i < count; ++i) {
      RINGFENCE_ASSIGN(std::string text, Text(bytes_max));
      texts.push_back(std::move(text));
    }
    return texts;
  }
  Status Finish() const {
    if (!rest_.empty()) {
      return Error{Code::kInvalidArgument, "bytes are left over at the end"};
    }
    return {};
  }

 private:
  static Error Cut() { return Error{Code::kInvalidArgument, "it ends in the middle of a field"}; }
  ByteView rest_;
};

Result<std::string> ReadLease(Reader& reader) {
  RINGFENCE_ASSIGN(std::string lease, reader.Text(kNameBytesMax));
  if (!IsName(lease)) {
    return Error{Code::kInvalidArgument, "a lease's id is not a name"};
  }
  return lease;
}

Result<ScrubRequest> ReadScrub(Reader& reader) {
  ScrubRequest scrub;
  RINGFENCE_ASSIGN(scrub.lease, reader.Text(kNameBytesMax));
  RINGFENCE_ASSIGN(scrub.gpus, reader.Texts(model::kGpusPerLeaseMax, kNameBytesMax));
  if (!scrub.lease.empty() && !IsName(scrub.lease)) {
    return Error{Code::kInvalidArgument, "a lease's id is not a name"};
  }
  for (const std::string& uuid : scrub.gpus) {
    if (!IsGpuUuid(uuid)) {
      return Error{Code::kInvalidArgument, "a GPU's UUID is not one"};
    }
  }
  return scrub;
}

Result<RequestBody> ReadBody(RequestType type, Reader& reader) {
  switch (type) {
    case RequestType::kHello:
      return RequestBody(HelloRequest{});
    case RequestType::kInventory:
      return RequestBody(InventoryRequest{});
    case RequestType::kStart: {
      RINGFENCE_ASSIGN(std::string grant, reader.Text(crypto::kEnvelopeBytesMax));
      return RequestBody(StartRequest{std::move(grant)});
    }
    case RequestType::kEnd: {
      RINGFENCE_ASSIGN(std::string lease, ReadLease(reader));
      return RequestBody(EndRequest{std::move(lease)});
    }
    case RequestType::kScrub: {
      RINGFENCE_ASSIGN(ScrubRequest scrub, ReadScrub(reader));
      return RequestBody(std::move(scrub));
    }
    case RequestType::kList:
      return RequestBody(ListRequest{});
    case RequestType::kForget: {
      RINGFENCE_ASSIGN(std::string lease, ReadLease(reader));
      return RequestBody(ForgetRequest{std::move(lease)});
    }
    case RequestType::kIncidents:
      return RequestBody(IncidentsRequest{});
    case RequestType::kAckIncidents: {
      RINGFENCE_ASSIGN(const auto count, reader.Number<std::uint32_t>());
      return RequestBody(AckIncidentsRequest{count});
    }
    case RequestType::kImages:
      return RequestBody(ImagesRequest{});
    case RequestType::kSense:
      return RequestBody(SenseRequest{});
    case RequestType::kMig: {
      RINGFENCE_ASSIGN(std::string order, reader.Text(crypto::kEnvelopeBytesMax));
      return RequestBody(MigRequest{std::move(order)});
    }
  }
  return Error{Code::kInvalidArgument, "there is no such request"};
}

struct BodyWriter {
  Writer& to;
  void operator()(const HelloRequest&) const {}
  void operator()(const InventoryRequest&) const {}
  void operator()(const StartRequest& body) const { to.Text(body.grant); }
  void operator()(const EndRequest& body) const { to.Text(body.lease); }
  void operator()(const ScrubRequest& body) const {
    to.Text(body.lease);
    to.Texts(body.gpus);
  }
  void operator()(const ListRequest&) const {}
  void operator()(const ForgetRequest& body) const { to.Text(body.lease); }
  void operator()(const IncidentsRequest&) const {}
  void operator()(const AckIncidentsRequest& body) const { to.Number(body.count); }
  void operator()(const ImagesRequest&) const {}
  void operator()(const SenseRequest&) const {}
  void operator()(const MigRequest& body) const { to.Text(body.order); }
};

struct Head {
  std::uint16_t type = 0;
  std::uint32_t id = 0;
};

Result<Head> ReadHead(Reader& reader, std::size_t size) {
  if (size > kFrameBytesMax) {
    return Error{Code::kInvalidArgument, "it is longer than a message may be"};
  }
  RINGFENCE_ASSIGN(const auto magic, reader.Number<std::uint32_t>());
  if (magic != kFrameMagic) {
    return Error{Code::kInvalidArgument, "it is not a message of this protocol's version"};
  }
  Head head;
  RINGFENCE_ASSIGN(head.type, reader.Number<std::uint16_t>());
  RINGFENCE_ASSIGN(head.id, reader.Number<std::uint32_t>());
  return head;
}

Status ReadError(Reader& reader, std::uint8_t place, Error& error) {
  if (place >= std::size(kCodeTable)) {
    return Error{Code::kInvalidArgument, "an error code is unknown"};
  }
  error.code = kCodeTable[place].code;
  RINGFENCE_ASSIGN(error.message, reader.Text(kMessageBytesMax));
  RINGFENCE_ASSIGN(error.hint, reader.Text(kMessageBytesMax));
  RINGFENCE_ASSIGN(error.field, reader.Text(kMessageBytesMax));
  return reader.Finish();
}

void WriteError(Writer& writer, const Error& error) {
  std::uint8_t place = 0;
  while (kCodeTable[place].code != error.code) {
    ++place;
  }
  writer.Number(place);
  writer.Text(error.message.substr(0, kMessageBytesMax));
  writer.Text(error.hint.substr(0, kMessageBytesMax));
  writer.Text(error.field.substr(0, kMessageBytesMax));
}

Status ReadHello(Reader& reader, JailerHello& hello) {
  RINGFENCE_ASSIGN(hello.version, reader.Text(kHelloTextBytesMax));
  RINGFENCE_ASSIGN(hello.public_key, reader.Text(kHelloTextBytesMax));
  RINGFENCE_ASSIGN(hello.key_proof, reader.Text(kHelloTextBytesMax));
  RINGFENCE_ASSIGN(hello.missing, reader.Texts(kMissingMax, kMessageBytesMax));
  return {};
}

}  // namespace

std::string_view Name(RequestType type) {
  switch (type) {
    case RequestType::kHello:
      return "Hello";
    case RequestType::kInventory:
      return "Inventory";
    case RequestType::kStart:
      return "Start";
    case RequestType::kEnd:
      return "End";
    case RequestType::kScrub:
      return "Scrub";
    case RequestType::kList:
      return "List";
    case RequestType::kForget:
      return "Forget";
    case RequestType::kIncidents:
      return "Incidents";
    case RequestType::kAckIncidents:
      return "AckIncidents";
    case RequestType::kImages:
      return "Images";
    case RequestType::kSense:
      return "Sense";
    case RequestType::kMig:
      return "Mig";
  }
  return "unknown";
}

// The variant's alternatives stand in the order of the type numbers.
RequestType TypeOf(const RequestBody& body) { return static_cast<RequestType>(body.index() + 1); }

Bytes EncodeRequest(const Request& request) {
  Writer writer;
  writer.Number(kFrameMagic);
  writer.Number(static_cast<std::uint16_t>(TypeOf(request.body)));
  writer.Number(request.id);
  std::visit(BodyWriter{writer}, request.body);
  return writer.Take();
}

Result<Request> DecodeRequest(ByteView frame) {
  Reader reader(frame);
  RINGFENCE_ASSIGN(const Head head, ReadHead(reader, frame.size()));
  RINGFENCE_ASSIGN(RequestBody body, ReadBody(static_cast<RequestType>(head.type), reader));
  RINGFENCE_TRY(reader.Finish());
  return Request{head.id, std::move(body)};
}

std::size_t FdsOf(RequestType type) {
  switch (type) {
    case RequestType::kInventory:
    case RequestType::kList:
    case RequestType::kIncidents:
    case RequestType::kImages:
    case RequestType::kSense:
      return 1;
    case RequestType::kStart:
      return 3;
    case RequestType::kHello:
    case RequestType::kEnd:
    case RequestType::kScrub:
    case RequestType::kForget:
    case RequestType::kAckIncidents:
    case RequestType::kMig:
      return 0;
  }
  return 0;
}

Bytes EncodeReply(const Reply& reply) {
  Writer writer;
  writer.Number(kFrameMagic);
  writer.Number(static_cast<std::uint16_t>(static_cast<std::uint16_t>(reply.type) | kReplyBit));
  writer.Number(reply.id);
  if (!reply.status.has_value()) {
    WriteError(writer, reply.status.error());
    return writer.Take();
  }
  writer.Number(kReplyOk);
  if (reply.type == RequestType::kHello) {
    writer.Text(reply.hello.version);
    writer.Text(reply.hello.public_key);
    writer.Text(reply.hello.key_proof);
    writer.Texts(reply.hello.missing);
  } else if (reply.type == RequestType::kScrub || reply.type == RequestType::kMig) {
    writer.Text(reply.text);
  }
  return writer.Take();
}

Result<Reply> DecodeReply(ByteView frame) {
  Reader reader(frame);
  RINGFENCE_ASSIGN(const Head head, ReadHead(reader, frame.size()));
  Reply reply;
  reply.id = head.id;
  reply.type = static_cast<RequestType>(head.type & ~kReplyBit);
  if ((head.type & kReplyBit) == 0 || Name(reply.type) == "unknown") {
    return Error{Code::kInvalidArgument, "it is not a reply"};
  }
  RINGFENCE_ASSIGN(const auto place, reader.Number<std::uint8_t>());
  if (place != kReplyOk) {
    Error error;
    RINGFENCE_TRY(ReadError(reader, place, error));
    reply.status = std::move(error);
    return reply;
  }
  if (reply.type == RequestType::kHello) {
    RINGFENCE_TRY(ReadHello(reader, reply.hello));
  } else if (reply.type == RequestType::kScrub || reply.type == RequestType::kMig) {
    RINGFENCE_ASSIGN(reply.text, reader.Text(crypto::kEnvelopeBytesMax));
  }
  RINGFENCE_TRY(reader.Finish());
  return reply;
}

Bytes EncodeRecords(const std::vector<BoxRecord>& records) {
  Writer writer;
  writer.Number(static_cast<std::uint16_t>(records.size()));
  for (const BoxRecord& record : records) {
    writer.Text(record.lease);
    writer.Number(static_cast<std::uint8_t>(record.state));
    writer.Texts(record.gpus);
    writer.Text(record.receipt);
  }
  return writer.Take();
}

Result<std::vector<BoxRecord>> DecodeRecords(ByteView bytes) {
  Reader reader(bytes);
  RINGFENCE_ASSIGN(const auto count, reader.Number<std::uint16_t>());
  if (count > kBoxRecordsMax) {
    return Error{Code::kInvalidArgument, "there are more records than there may be"};
  }
  std::vector<BoxRecord> records;
  for (std::size_t i = 0; i < count; ++i) {
    BoxRecord record;
    RINGFENCE_ASSIGN(record.lease, reader.Text(kNameBytesMax));
    RINGFENCE_ASSIGN(const auto state, reader.Number<std::uint8_t>());
    if (state > static_cast<std::uint8_t>(BoxState::kScrubbed)) {
      return Error{Code::kInvalidArgument, "a record's state is unknown"};
    }
    record.state = static_cast<BoxState>(state);
    RINGFENCE_ASSIGN(record.gpus, reader.Texts(model::kGpusPerLeaseMax, kNameBytesMax));
    RINGFENCE_ASSIGN(record.receipt, reader.Text(crypto::kEnvelopeBytesMax));
    records.push_back(std::move(record));
  }
  RINGFENCE_TRY(reader.Finish());
  return records;
}

Bytes EncodeTexts(const std::vector<std::string>& texts) {
  Writer writer;
  writer.Texts(texts);
  return writer.Take();
}

Result<std::vector<std::string>> DecodeTexts(ByteView bytes) {
  Reader reader(bytes);
  RINGFENCE_ASSIGN(auto texts, reader.Texts(kIncidentsMax, crypto::kEnvelopeBytesMax));
  RINGFENCE_TRY(reader.Finish());
  return texts;
}

Bytes EncodeImages(const std::vector<NodeImage>& images) {
  Writer writer;
  writer.Number(static_cast<std::uint16_t>(images.size()));
  for (const NodeImage& image : images) {
    writer.Text(image.digest);
    writer.Texts(image.names);
  }
  return writer.Take();
}

Result<std::vector<NodeImage>> DecodeImages(ByteView bytes) {
  Reader reader(bytes);
  RINGFENCE_ASSIGN(const auto count, reader.Number<std::uint16_t>());
  if (count > kNodeImagesMax) {
    return Error{Code::kInvalidArgument, "there are more images than there may be"};
  }
  std::vector<NodeImage> images;
  for (std::size_t i = 0; i < count; ++i) {
    NodeImage image;
    RINGFENCE_ASSIGN(image.digest, reader.Text(kDigestBytesMax));
    RINGFENCE_ASSIGN(image.names, reader.Texts(kImageNamesMax, kImageNameBytesMax));
    images.push_back(std::move(image));
  }
  RINGFENCE_TRY(reader.Finish());
  return images;
}

}  // namespace ringfence::isolate
