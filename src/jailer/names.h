#pragma once

// The jailer's side of the resolver: starts it, tells it which box may ask for what, opens what it
// finds where the grant allows it, ends it when it speaks out of turn, and starts it anew. While
// there is none, names are not answered and nothing new opens. One thread.

#include <chrono>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "base/result.h"
#include "isolate/box_network.h"
#include "isolate/resolver.h"
#include "os/process.h"
#include "resolve/messages.h"

namespace ringfence::jailer {

class Names {
 public:
  using TimePoint = std::chrono::steady_clock::time_point;

  // `network` must outlive this. Where the place names nobody above, the host's resolvers are
  // taken. kFailedPrecondition: there is none that could be asked.
  static Result<std::unique_ptr<Names>> Open(isolate::ResolverPlace place,
                                             isolate::BoxNetwork& network);

  void Add(const resolve::AddBox& box);
  void Remove(const resolve::RemoveBox& box);

  void AddPollItems(std::vector<os::PollItem>& items) const;
  bool OnEnded(const os::Ended& ended, TimePoint now);
  void Tick(TimePoint now);
  std::optional<TimePoint> NextDeadline() const { return start_at_; }

 private:
  Names(isolate::ResolverPlace place, isolate::BoxNetwork& network,
        isolate::BoxNetwork::ResolverPort port)
      : place_(std::move(place)), network_(&network), port_(std::move(port)) {}

  Status Start(TimePoint now);
  void Say(const resolve::ToResolver& message);
  void Flush();
  void Read();
  void Answer(const resolve::OpenName& wanted);
  void End(const std::string& why);

  isolate::ResolverPlace place_;
  isolate::BoxNetwork* network_;
  isolate::BoxNetwork::ResolverPort port_;
  int pid_ = 0;  // 0: none runs
  os::UniqueFd process_;
  os::UniqueFd socket_;
  std::deque<Bytes> out_;
  std::map<std::uint32_t, resolve::AddBox> boxes_;  // by slot
  TimePoint started_;
  std::chrono::milliseconds pause_{};
  std::optional<TimePoint> start_at_;
};

}  // namespace ringfence::jailer
