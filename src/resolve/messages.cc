#include "resolve/messages.h"

#include "model/network.h"
#include "resolve/dns.h"

namespace ringfence::resolve {
namespace {

enum class Type : std::uint8_t { kAddBox = 1, kRemoveBox = 2, kOpened = 3, kOpenName = 4 };

template <typename Unsigned>
void Put(Bytes& to, Unsigned value) {
  const auto bytes = PutBigEndian(value);
  Append(to, bytes);
}

Error Bad(const char* what) {
  return Error{Code::kInvalidArgument, std::string("resolver's message: ") + what};
}

class Reader {
 public:
  explicit Reader(ByteView bytes) : bytes_(bytes) {}

  template <typename Unsigned>
  Result<Unsigned> Number() {
    if (bytes_.size() < sizeof(Unsigned)) {
      return Bad("too short");
    }
    const auto value = GetBigEndian<Unsigned>(bytes_);
    bytes_ = bytes_.subspan(sizeof(Unsigned));
    return value;
  }
  Result<std::string> Text() {
    RINGFENCE_ASSIGN(const std::uint8_t size, Number<std::uint8_t>());
    if (bytes_.size() < size) {
      return Bad("too short");
    }
    std::string text = ToText(bytes_.first(size));
    bytes_ = bytes_.subspan(size);
    return text;
  }
  Status Finish() const { return bytes_.empty() ? Status() : Bad("too long"); }

 private:
  ByteView bytes_;
};

Result<ToResolver> ReadAddBox(Reader& reader) {
  AddBox box;
  RINGFENCE_ASSIGN(box.slot, reader.Number<std::uint32_t>());
  RINGFENCE_ASSIGN(box.mark, reader.Number<std::uint32_t>());
  RINGFENCE_ASSIGN(box.address, reader.Number<std::uint32_t>());
  RINGFENCE_ASSIGN(const std::uint16_t count, reader.Number<std::uint16_t>());
  if (count > kNamesPerBoxMax) {
    return Bad("too many names");
  }
  for (std::uint16_t i = 0; i < count; ++i) {
    RINGFENCE_ASSIGN(std::string name, reader.Text());
    if (!model::IsDnsName(name)) {
      return Bad("no DNS name");
    }
    box.names.push_back(std::move(name));
  }
  return ToResolver(std::move(box));
}

}  // namespace

Bytes Encode(const ToResolver& message) {
  Bytes bytes;
  if (const auto* add = std::get_if<AddBox>(&message)) {
    Put(bytes, static_cast<std::uint8_t>(Type::kAddBox));
    Put(bytes, add->slot);
    Put(bytes, add->mark);
    Put(bytes, add->address);
    Put(bytes, static_cast<std::uint16_t>(add->names.size()));
    for (const std::string& name : add->names) {
      Put(bytes, static_cast<std::uint8_t>(name.size()));
      Append(bytes, AsBytes(name));
    }
  } else if (const auto* remove = std::get_if<RemoveBox>(&message)) {
    Put(bytes, static_cast<std::uint8_t>(Type::kRemoveBox));
    Put(bytes, remove->slot);
    Put(bytes, remove->mark);
  } else {
    const auto& opened = std::get<Opened>(message);
    Put(bytes, static_cast<std::uint8_t>(Type::kOpened));
    Put(bytes, opened.id);
    Put(bytes, static_cast<std::uint8_t>(opened.opened ? 1 : 0));
  }
  return bytes;
}

Result<ToResolver> ParseToResolver(ByteView bytes) {
  Reader reader(bytes);
  RINGFENCE_ASSIGN(const std::uint8_t type, reader.Number<std::uint8_t>());
  Result<ToResolver> message = Bad("unknown");
  if (type == static_cast<std::uint8_t>(Type::kAddBox)) {
    message = ReadAddBox(reader);
  } else if (type == static_cast<std::uint8_t>(Type::kRemoveBox)) {
    RemoveBox remove;
    RINGFENCE_ASSIGN(remove.slot, reader.Number<std::uint32_t>());
    RINGFENCE_ASSIGN(remove.mark, reader.Number<std::uint32_t>());
    message = ToResolver(remove);
  } else if (type == static_cast<std::uint8_t>(Type::kOpened)) {
    Opened opened;
    RINGFENCE_ASSIGN(opened.id, reader.Number<std::uint32_t>());
    RINGFENCE_ASSIGN(const std::uint8_t yes, reader.Number<std::uint8_t>());
    if (yes > 1) {
      return Bad("neither yes nor no");
    }
    opened.opened = yes == 1;
    message = ToResolver(opened);
  }
  if (message.has_value()) {
    RINGFENCE_TRY(reader.Finish());
  }
  return message;
}

Bytes Encode(const OpenName& message) {
  Bytes bytes;
  Put(bytes, static_cast<std::uint8_t>(Type::kOpenName));
  Put(bytes, message.id);
  Put(bytes, message.slot);
  Put(bytes, message.mark);
  Put(bytes, message.name);
  Put(bytes, message.seconds);
  Put(bytes, static_cast<std::uint8_t>(message.addresses.size()));
  for (const std::uint32_t address : message.addresses) {
    Put(bytes, address);
  }
  return bytes;
}

Result<OpenName> ParseOpenName(ByteView bytes) {
  Reader reader(bytes);
  RINGFENCE_ASSIGN(const std::uint8_t type, reader.Number<std::uint8_t>());
  if (type != static_cast<std::uint8_t>(Type::kOpenName)) {
    return Bad("unknown");
  }
  OpenName message;
  RINGFENCE_ASSIGN(message.id, reader.Number<std::uint32_t>());
  RINGFENCE_ASSIGN(message.slot, reader.Number<std::uint32_t>());
  RINGFENCE_ASSIGN(message.mark, reader.Number<std::uint32_t>());
  RINGFENCE_ASSIGN(message.name, reader.Number<std::uint16_t>());
  RINGFENCE_ASSIGN(message.seconds, reader.Number<std::uint32_t>());
  RINGFENCE_ASSIGN(const std::uint8_t count, reader.Number<std::uint8_t>());
  if (count == 0 || count > kAddressesMax) {
    return Bad("no address, or too many");
  }
  for (std::uint8_t i = 0; i < count; ++i) {
    RINGFENCE_ASSIGN(const std::uint32_t address, reader.Number<std::uint32_t>());
    message.addresses.push_back(address);
  }
  RINGFENCE_TRY(reader.Finish());
  return message;
}

}  // namespace ringfence::resolve
