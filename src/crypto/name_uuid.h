#pragma once

#include <array>
#include <string>
#include <string_view>

namespace ringfence::crypto {

using Uuid = std::array<unsigned char, 16>;

// RFC 9562's name-based UUID, version 5: the same namespace and name always give the same one. Its
// SHA-1 names things; nothing trusts it.
Uuid NameUuid(const Uuid& name_space, std::string_view name);
std::string FormatUuid(const Uuid& uuid);  // "74738ff5-5367-5958-9aee-98fffdcd1876"

// RFC 9562's namespace for names that are URLs.
inline constexpr Uuid kUrlNamespace = {0x6b, 0xa7, 0xb8, 0x11, 0x9d, 0xad, 0x11, 0xd1,
                                       0x80, 0xb4, 0x00, 0xc0, 0x4f, 0xd4, 0x30, 0xc8};

}  // namespace ringfence::crypto
