#pragma once

// Beast's parsers, here for heads alone: for the two files that read messages, as it is slow to
// compile. Asio's settings must come first.

// clang-format off
#include "net/asio.h"
#include <boost/beast/http/empty_body.hpp>
#include <boost/beast/http/parser.hpp>
// clang-format on
