#pragma once

#include <string>
#include <utility>
#include <vector>

#include "base/result.h"

namespace ringfence::store {

struct PostgresOptions {
  std::vector<std::pair<std::string, std::string>> keywords;  // for libpq
  std::string shown;  // "db.example/ringfence": for messages
};

// Reads a URL and refuses what is unsafe: a password in it (its place is a file of libpq's, by
// ?passfile=FILE, or a client certificate), and a way over the network that does not prove who the
// database is (sslmode=verify-full). kInvalidArgument; never repeats the URL.
Result<PostgresOptions> ParsePostgresUrl(const std::string& url);

}  // namespace ringfence::store
