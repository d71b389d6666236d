#pragma once

// Between the server and everybody else: messages are late, lost, answered into the void, and
// delivered twice.

#include <cstdint>
#include <functional>
#include <set>
#include <string>

#include "net/http.h"
#include "scheduler.h"
#include "sim_server.h"

namespace ringfence::simulation {

class Network {
 public:
  Network(Scheduler& scheduler, SimServer& server) : scheduler_(scheduler), server_(server) {}

  // `from` is a node's name or "users". Done is called once, unless the caller has gone.
  void Send(const std::string& from, const net::Request& request, SimServer::Done done);

  // Faults, in force until changed.
  int lost_in_1000 = 0;       // the request never arrives
  int unheard_in_1000 = 0;    // it is carried out, the answer never arrives
  int repeated_in_1000 = 0;   // it arrives a second time, later
  int late_in_1000 = 0;       // it arrives when its sender may have given up
  std::set<std::string> cut;  // lines that carry nothing

  // A look at everything that is delivered.
  std::function<void(const std::string& from, const net::Request&)> on_delivery;

 private:
  void Deliver(const std::string& from, const net::Request& request, SimServer::Done done);

  Scheduler& scheduler_;
  SimServer& server_;
};

}  // namespace ringfence::simulation
