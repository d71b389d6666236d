#pragma once

#include "net/http.h"

namespace ringfence::net {

// Like Response::OfError, with a status that is HTTP's own affair (413, 431) and has no code.
Response Problem(int status, const Error& error);

}  // namespace ringfence::net
