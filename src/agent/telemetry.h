#pragma once

// What the node's GPUs say, from the sensor to the server: spooled on disk in between, so that
// neither a restart nor a server that is away loses it.

#include <memory>
#include <mutex>
#include <string>

#include "agent/link.h"
#include "agent/surroundings.h"
#include "base/result.h"
#include "isolate/jailer_client.h"
#include "sense/digest.h"
#include "sense/spool.h"

namespace ringfence::agent {

class Telemetry {
 public:
  // `jailer` and `surroundings` must outlive it.
  static Result<std::unique_ptr<Telemetry>> Open(const std::string& folder,
                                                 isolate::JailerClient& jailer,
                                                 Surroundings& surroundings);
  // Two threads, until they are told to stop.
  void Start();

 private:
  Telemetry(sense::Spool spool, isolate::JailerClient& jailer, Surroundings& surroundings)
      : jailer_(jailer), surroundings_(surroundings), spool_(std::move(spool)) {}
  void Listen(const std::stop_token& stop);
  void ReadLines(const std::stop_token& stop, int fd);
  void TakeLine(std::string_view text);
  void Deliver(const std::stop_token& stop);
  Result<JsonObject> NextBatch();
  Status TakeAnswer(const Json& answer);

  isolate::JailerClient& jailer_;
  Surroundings& surroundings_;
  std::mutex mutex_;  // of all below
  sense::Spool spool_;
  sense::Digest digest_;
  Milliseconds every_ = std::chrono::seconds(60);
  bool urgent_ = true;
  std::string blind_ =
      "its sensor has not spoken yet";  // why there are no readings; empty: there are
  std::unique_ptr<Thread> listener_;
  std::unique_ptr<Thread> deliverer_;
};

}  // namespace ringfence::agent
