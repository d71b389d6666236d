#pragma once

// The people: they ask for leases, ask again when no answer comes, end some, and an operator has
// quarantined GPUs scrubbed. And one agent's credentials in wrong hands.

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "judge.h"
#include "network.h"
#include "scheduler.h"
#include "sim_node.h"

namespace ringfence::simulation {

class Users {
 public:
  Users(Scheduler& scheduler, Network& network, SimServer& server, Judge& judge)
      : scheduler_(scheduler), network_(network), server_(server), judge_(judge) {}

  void SignIn();  // while the server is up
  void RequestSomething(std::size_t gpus_max);
  void EndSomething();
  // The operator: whatever was wrong with a card has been mended.
  void ScrubQuarantined();

  // Says something false, or true at the wrong time, with the node's certificate.
  void Lie(SimNode& node);
  void Overhear(const net::Request& request);

  std::uint64_t asked = 0;
  std::uint64_t granted = 0;

 private:
  void Try(const std::string& who, const net::Request& request, const std::string& key,
           int attempts);
  net::Request Make(const std::string& who, const std::string& method, const std::string& path,
                    const Json& body) const;

  Scheduler& scheduler_;
  Network& network_;
  SimServer& server_;
  Judge& judge_;
  std::map<std::string, std::string> tokens_;  // principal -> token
  std::uint64_t next_key_ = 1;
  std::vector<std::string> receipts_;  // bodies overheard
};

// The policy of every simulated world; with a boundary between its two companies, or without.
std::string PolicyText(bool with_boundary);

}  // namespace ringfence::simulation
