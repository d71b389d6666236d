#pragma once

// Which server a client command talks to, how that server proves itself, and as whom we speak.

#include <string>

#include "base/result.h"
#include "base/secret.h"
#include "cli/settings.h"

namespace ringfence::cli {

inline constexpr std::size_t kContextBytesMax = 1024 * 1024;

struct Connection {
  std::string server;  // "127.0.0.1:8443"
  std::string ca_pem;
  SecretBytes token;
  std::string principal;  // as `up` wrote it; for people
  std::string log_vkey;   // the audit log's key as it was when `up` made the log
};

// <state>/cli/context.json, as `up` writes it (mode 0600):
//   {"server","ca_pem","token","principal","log_vkey"}
std::string ContextPath(const Settings& settings);
// That file, or where there is none, what a server that systemd started leaves for root:
// <state>/server/local.json, which holds the same.
std::string FindContext(const Settings& settings);
Result<Connection> ReadContext(const std::string& path);
Status WriteContext(const std::string& path, const Connection& connection);

// The state folder's context with client.server, client.ca and client.token over it. A token that
// comes from the state folder is only ever sent to a server that the state folder's CA vouches for.
// kUnavailable when there is nothing to connect to.
Result<Connection> Connect(const Settings& settings);

}  // namespace ringfence::cli
