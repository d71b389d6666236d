// Asio itself, compiled once. Its settings must come first.

// clang-format off
#include "net/asio.h"
#include <boost/asio/impl/src.hpp>
// clang-format on
