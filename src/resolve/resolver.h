#pragma once

// Answers the names that a box's grant has, and opens what they stand for before it does. The
// worker's heart; one thread. What is asked by whom is known from the sender's address, which the
// firewall vouches for.

#include <chrono>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "os/internet.h"
#include "resolve/inquiry.h"
#include "resolve/messages.h"

namespace ringfence::resolve {

inline constexpr std::size_t kAskingMax = 256;  // questions under way, of all boxes
inline constexpr std::size_t kAskingPerBoxMax = 16;
inline constexpr std::size_t kStreamsMax = 64;  // TCP connections of all boxes
inline constexpr std::size_t kStreamsPerBoxMax = 4;
inline constexpr std::size_t kAboveMax = 3;  // resolvers above, as resolv.conf has it
// What a box is told; the firewall keeps it open for a little longer.
inline constexpr std::uint32_t kTtlSecondsMin = 5;
inline constexpr std::uint32_t kTtlSecondsMax = 3600;

struct ResolverParts {
  os::UniqueFd jailer;  // SOCK_SEQPACKET
  os::UniqueFd datagrams;
  os::UniqueFd streams;  // listening
  std::vector<os::Ipv4End> above;
  std::chrono::milliseconds patience = std::chrono::seconds(2);  // with each try above
};

class Resolver {
 public:
  explicit Resolver(ResolverParts parts) : parts_(std::move(parts)) {}

  // Until the jailer has gone (OK) or says something that cannot be.
  Status Run();

 private:
  using TimePoint = std::chrono::steady_clock::time_point;
  struct Known {
    Found found;
    TimePoint until;
  };
  struct Box {
    std::uint32_t slot = 0;
    std::uint32_t mark = 0;
    std::vector<std::string> names;        // WireName, by the grant's number
    std::map<std::size_t, Known> answers;  // opened already, and for how long
    std::size_t asking = 0;
    std::size_t streams = 0;
  };
  struct Asker {
    os::Ipv4End from;
    std::uint64_t stream = 0;  // 0: by datagram
  };
  struct Asking {
    std::uint32_t box = 0;  // its address
    std::uint32_t mark = 0;
    std::size_t name = 0;
    Question question;
    Asker asker;
    std::optional<Inquiry> inquiry;  // none: the jailer is asked to open it
    Found found;
    TimePoint give_up;
  };
  struct Stream {
    os::UniqueFd socket;
    os::Ipv4End from;
    Bytes in;
    Bytes out;
    TimePoint deadline;
    bool broken = false;
  };

  Status ReadJailer();
  void OnAdd(const AddBox& add);
  void OnRemove(const RemoveBox& remove);
  void OnOpened(const Opened& opened, TimePoint now);
  void ReadDatagrams(TimePoint now);
  void Accept(TimePoint now);
  void ReadStream(std::uint64_t id, TimePoint now);
  void Ask(const Asker& asker, ByteView message, TimePoint now);
  // nullopt: an inquiry is under way.
  std::optional<Found> AnswerNow(Box& box, const Asker& asker, const Question& question,
                                 TimePoint now);
  void Continue(TimePoint now);
  void Finish(std::map<std::uint32_t, Asking>::iterator asking, const Found& found);
  bool Open(std::uint32_t id, Asking& asking, Found found, TimePoint now);
  void Say(const Asker& asker, const Question& question, const Found& found);
  void DropStreams(TimePoint now);
  Status Wait(TimePoint now);

  ResolverParts parts_;
  std::map<std::uint32_t, Box> boxes_;  // by address
  std::map<std::uint32_t, Asking> asking_;
  std::map<std::uint64_t, Stream> streams_;
  std::uint32_t last_asking_ = 0;
  std::uint64_t last_stream_ = 0;
  bool jailer_gone_ = false;
};

}  // namespace ringfence::resolve
