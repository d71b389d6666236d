#pragma once

// Offers the log's checkpoints to witnesses outside of this cluster, as C2SP tlog-witness has it,
// and keeps their cosignatures with the checkpoint. In the background: a witness that is slow, gone
// or hostile holds up nothing here.

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "audit/log.h"
#include "audit/note.h"
#include "base/result.h"
#include "net/client.h"

namespace ringfence::server {

inline constexpr std::size_t kOutsideWitnessesMax = 8;

struct OutsideWitness {
  std::string address;  // "witness.example:443"
  std::string target;   // "/prefix/add-checkpoint"
  audit::NamedKey key;
};
// "https://witness.example/prefix VKEY, https://..."; empty: none.
Result<std::vector<OutsideWitness>> ParseWitnesses(std::string_view text);

struct SignedHead {
  audit::TreeHead head;
  std::string note;  // of exactly this head
};

// The body of an add-checkpoint request: from `old_size`, proven by `proof`, to `note`.
std::string AddCheckpointBody(std::uint64_t old_size, const std::vector<Digest>& proof,
                              std::string_view note);

class WitnessFeed {
 public:
  // Each may be called from any thread.
  struct Hooks {
    std::function<std::optional<SignedHead>()> newest;  // nothing: another server's turn
    std::function<Result<std::vector<Digest>>(std::uint64_t from, std::uint64_t to)> proof;
    // Takes a cosignature line, verified against the note of `head`.
    std::function<Status(const audit::TreeHead& head, const std::string& witness,
                         const std::string& line)>
        keep;
  };
  struct Pace {
    std::chrono::milliseconds least{1000};  // between two looks for a new checkpoint
    std::chrono::milliseconds most{60000};  // after failures, doubled each time
  };

  // Trusts `ca_pem` to prove the witnesses' servers. kInvalidArgument when it is no such thing.
  static Result<std::unique_ptr<WitnessFeed>> Start(std::vector<OutsideWitness> witnesses,
                                                    std::string ca_pem, Hooks hooks, Pace pace);
  ~WitnessFeed();  // cancels what is under way
  WitnessFeed(const WitnessFeed&) = delete;
  WitnessFeed& operator=(const WitnessFeed&) = delete;

 private:
  // One witness and what is known of it; its thread's alone, but for client->Cancel().
  struct Line {
    OutsideWitness witness;
    std::unique_ptr<net::Client> client;
    std::uint64_t seen = 0;  // entries that it has cosigned, as far as it told
    std::string problem;     // said last
  };

  WitnessFeed(Hooks hooks, Pace pace) : hooks_(std::move(hooks)), pace_(pace) {}
  void Feed(Line& line, const std::stop_token& stop);
  Status Offer(Line& line, const SignedHead& offered);
  Result<net::Response> Send(Line& line, const SignedHead& offered) const;
  static void Tell(Line& line, const Status& status, std::uint64_t size);

  const Hooks hooks_;
  const Pace pace_;
  std::vector<std::unique_ptr<Line>> lines_;
  std::vector<std::jthread> threads_;  // last: they stop before what they use goes
};

}  // namespace ringfence::server
