#pragma once

#include <cstddef>

#include "base/result.h"

namespace ringfence::os {

// Room in the socket's buffer for one message of that size; kExhausted when the system allows less.
Status MakeMessageRoom(int socket, std::size_t message_bytes_max);

}  // namespace ringfence::os
