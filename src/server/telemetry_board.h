#pragma once

// What the nodes' GPUs said last, to this server. Lost with it, and said again within seconds.

#include <map>
#include <mutex>
#include <optional>
#include <string>

#include "store/telemetry_records.h"

namespace ringfence::server {

// Any thread.
class TelemetryBoard {
 public:
  void Set(const store::NodeTelemetry& telemetry) {
    const std::lock_guard lock(mutex_);
    nodes_[telemetry.node] = telemetry;
  }
  std::optional<store::NodeTelemetry> Get(const std::string& node) const {
    const std::lock_guard lock(mutex_);
    const auto found = nodes_.find(node);
    return found == nodes_.end() ? std::nullopt : std::optional(found->second);
  }
  // The database's time of the same node may be newer: another server was told.
  void Improve(store::NodeTelemetry& known) const {
    const auto mine = Get(known.node);
    if (mine.has_value() && mine->heard > known.heard) {
      known = *mine;
    }
  }

 private:
  mutable std::mutex mutex_;
  std::map<std::string, store::NodeTelemetry> nodes_;
};

}  // namespace ringfence::server
