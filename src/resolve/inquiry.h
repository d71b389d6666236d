#pragma once

// One name asked above, until there is an answer that can be believed or no more to try.

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "os/internet.h"
#include "os/process.h"
#include "resolve/dns.h"

namespace ringfence::resolve {

inline constexpr std::size_t kTriesMax = 4;  // over all resolvers above
// Datagrams that answer something else: someone is guessing.
inline constexpr std::size_t kStrangersMax = 16;

// Each try has an id, a case of letters and a socket (so: a port) of its own. One thread.
class Inquiry {
 public:
  using TimePoint = std::chrono::steady_clock::time_point;

  // `above` must not be empty. `patience` is for each try.
  Inquiry(std::string name, std::vector<os::Ipv4End> above, std::chrono::milliseconds patience,
          TimePoint now);

  os::PollItem Item() const { return {socket_.get(), sending_}; }
  TimePoint deadline() const { return deadline_; }
  // To be called when the item is ready or the deadline has come. Set once: what was found, or
  // kUnavailable.
  const std::optional<Result<Found>>& Continue(TimePoint now);

 private:
  void Try(TimePoint now);
  void AskByStream(TimePoint now);
  void ReadDatagrams(TimePoint now);
  void GoOnByStream(TimePoint now);
  void Take(const Answer& answer, TimePoint now);

  std::string name_;
  std::vector<os::Ipv4End> above_;
  std::chrono::milliseconds patience_;
  TimePoint deadline_;
  std::size_t tries_ = 0;
  std::size_t strangers_ = 0;
  Query query_;
  os::UniqueFd socket_;
  bool by_stream_ = false;
  bool sending_ = false;
  Bytes out_;
  Bytes in_;
  std::optional<Result<Found>> result_;
};

}  // namespace ringfence::resolve
