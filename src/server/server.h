#pragma once

// The server, wired: records, policy, keys, audit log and API in one unprivileged process.

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/time.h"

namespace ringfence::server {

struct ServerOptions {
  std::string state_folder;  // ringfence.db, keys/, log/
  std::string policy_folder;
  // A version that the folder replaces if it is in force at the start; 0: none. By its number, so
  // that a setting that is left behind does nothing the next time.
  std::int64_t policy_instead_of = 0;
  std::string database;  // a PostgreSQL URL, or a file of SQLite's; empty: one in the state folder
  std::string listen;    // "127.0.0.1:8443"; port 0 picks one
  std::string address;   // where nodes and users reach it and its peers; empty: where it listens
  std::vector<std::string> names;
  std::string ca_certificate_file;
  std::string ca_key_file;
  std::string witnesses;        // outside of this cluster: see ParseWitnesses
  std::string witness_ca_file;  // proves their servers
  std::string content_folder;   // mappings/, pipelines/ and rules/ as they are shipped
  Milliseconds telemetry_every = std::chrono::seconds(60);  // that one event of readings sums up
  std::string more_rules;     // a folder of rules beside ours; empty: none
  std::string alert_webhook;  // an https URL; empty: none
  std::string alert_webhook_ca_file;
  double requests_per_second_per_address = 2000;
  Milliseconds keep_output = std::chrono::hours(24 * 30);  // after the lease has closed
  // Where to leave what `ringfence up` needs to sign in the local administrator and to let its
  // node join: {"server","ca_pem","token","principal","log_vkey","join_token"}. Empty: nowhere.
  std::string local_file;
  std::string local_principal;
  std::string local_node;
};

// Serves until the process is told to stop (SIGTERM, SIGINT). SIGHUP reads the policy folder
// again. Refuses to run as root.
Status Run(const ServerOptions& options);

}  // namespace ringfence::server
