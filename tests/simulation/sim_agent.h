#pragma once

// What the real agent stands in, simulated: its line to the server, its threads and clocks, and its
// end of the pair to the jailer.

#include "agent/surroundings.h"
#include "isolate/jailer_client.h"
#include "sim_node.h"

namespace ringfence::simulation {

class SimSurroundings final : public agent::Surroundings {
 public:
  SimSurroundings(SimNode& node, const agent::CredentialHolder& holder)
      : node_(node), holder_(holder), group_(node.agent_) {}

  std::unique_ptr<agent::Line> OpenLine() override;
  std::unique_ptr<agent::Thread> Launch(std::function<void(const std::stop_token&)> work) override;
  void Pause(const std::stop_token& stop, Milliseconds time) override;
  bool WaitForStop(Milliseconds time) override;
  Status Poll(std::vector<os::PollItem>& items, std::optional<Milliseconds> timeout) override;
  Timestamp Now() const override { return node_.clock_.Now(); }
  std::chrono::steady_clock::time_point Steady() const override {
    return std::chrono::steady_clock::time_point(node_.scheduler_.now());
  }
  [[noreturn]] void Exit(const Status& why) override;

 private:
  SimNode& node_;
  const agent::CredentialHolder& holder_;
  Scheduler::Group group_;
};

class SimJailerClient final : public isolate::JailerClient {
 public:
  SimJailerClient(SimNode& node, std::uint64_t epoch) : node_(node), epoch_(epoch) {}

  Result<isolate::JailerHello> Hello() override;
  Result<std::string> Inventory() override;
  Result<isolate::StartedBox> Start(std::string_view grant) override;
  Status End(std::string_view lease) override;
  Result<std::string> Scrub(std::string_view lease, const std::vector<std::string>& gpus) override;
  Result<std::vector<isolate::BoxRecord>> List() override;
  Status Forget(std::string_view lease) override;
  Result<std::vector<std::string>> Incidents() override;
  Status AckIncidents(std::uint32_t count) override;

 private:
  Result<std::shared_ptr<SimNode::Call>> Call(isolate::RequestBody body);
  bool PairIsOpen() const;

  SimNode& node_;
  const std::uint64_t epoch_;
  std::uint32_t next_id_ = 1;
  std::optional<isolate::JailerHello> hello_;
};

}  // namespace ringfence::simulation
