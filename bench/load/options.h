#pragma once

// What a run of the load generator does: parsed from its command line.

#include <string>
#include <vector>

#include "base/result.h"

namespace ringfence::bench {

// One kind of request, and how many of all requests are of it.
struct Share {
  std::string op;
  double weight = 1;
};

struct Options {
  bool help = false;
  std::string state;    // of `ringfence up`: server, CA and token are read from it
  std::string server;   // or: address,
  std::string ca_file;  // CA, and a token in RINGFENCE_TOKEN
  std::string lease;    // the one that reads are of; default: the newest
  std::string tenant = "acme/research/vision";   // leases are asked for here
  std::string denied_tenant = "globex";          // and are denied here
  std::string denied_as = "alice@acme.example";  // to this principal
  std::vector<Share> mix = {{"read", 1}};
  std::vector<double> rates = {0};  // requests a second; 0: as fast as the answers come
  bool fixed_arrivals = false;      // else Poisson
  double seconds = 10;
  double warmup = 1;
  int connections = 32;
  int threads = 1;
  int poll_ms = 1000;
  std::uint64_t seed = 1;
  bool json = false;
};

std::string Help();
Result<Options> ParseOptions(const std::vector<std::string>& words);

}  // namespace ringfence::bench
