#pragma once

// The real store, watched: what each committed write touched, and writes that fail or are the last
// thing a server does.

#include <functional>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "store/database.h"

namespace ringfence::simulation {

// Thrown when the server dies at this point. Nothing may catch it on its way to SimServer.
struct ServerKilled {};

struct Touched {
  std::set<std::string> leases;
  std::set<std::string> gpus;
  std::vector<std::string> receipts;
  std::vector<Bytes> entries;
  bool empty() const {
    return leases.empty() && gpus.empty() && receipts.empty() && entries.empty();
  }
};

enum class WriteFate {
  kGood,
  kRefused,       // before it was tried
  kRolledBack,    // at its commit: the disk is full
  kKilledBefore,  // the server dies before the commit
  kKilledAfter,   // the server dies right after the commit
};

struct WatchOptions {
  std::function<WriteFate()> fate;
  // After each commit that touched something, with a view of what is committed.
  std::function<void(store::Connection&, const Touched&)> committed;
};

std::unique_ptr<store::Database> Watch(std::unique_ptr<store::Database> database,
                                       WatchOptions options);

}  // namespace ringfence::simulation
