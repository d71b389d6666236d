#pragma once

// What jailer and resolver say to each other over their socket pair, a message each. The resolver
// reads from the network, so its side may be an attacker's: it has one thing to say, of fixed
// fields, and whatever else comes ends it. docs/formats/jailer.md.

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "base/bytes.h"
#include "base/result.h"

namespace ringfence::resolve {

inline constexpr std::size_t kNamesPerBoxMax = 256;
inline constexpr std::size_t kToResolverBytesMax = std::size_t{80} * 1024;
inline constexpr std::size_t kToJailerBytesMax = 128;

struct AddBox {
  std::uint32_t slot = 0;
  std::uint32_t mark = 0;     // of this box and no later one
  std::uint32_t address = 0;  // from which it asks
  std::vector<std::string> names;
};
struct RemoveBox {
  std::uint32_t slot = 0;
  std::uint32_t mark = 0;
};
struct Opened {  // or not
  std::uint32_t id = 0;
  bool opened = false;
};
using ToResolver = std::variant<AddBox, RemoveBox, Opened>;
Bytes Encode(const ToResolver& message);
Result<ToResolver> ParseToResolver(ByteView bytes);

// These addresses are what the name stands for: open them to the box for so long.
struct OpenName {
  std::uint32_t id = 0;
  std::uint32_t slot = 0;
  std::uint32_t mark = 0;
  std::uint16_t name = 0;  // which of the box's
  std::uint32_t seconds = 0;
  std::vector<std::uint32_t> addresses;  // 1 to kAddressesMax
};
Bytes Encode(const OpenName& message);
Result<OpenName> ParseOpenName(ByteView bytes);

}  // namespace ringfence::resolve
