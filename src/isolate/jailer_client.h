#pragma once

// The agent's side of the socketpair to the jailer. The protocol: docs/formats/jailer.md.

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "os/unique_fd.h"

namespace ringfence::isolate {

struct JailerHello {
  std::string version;
  std::string public_key;  // base64 of the 32 bytes that verify this node's receipts
  // Hex HMAC-SHA256 over the public key, keyed with the jailer's half of the join secret; empty
  // when the jailer was not started with a join token. Lets the server know that root, not only
  // the agent, vouches for the key.
  std::string key_proof;
  // Why this machine cannot run boxes, a sentence each with the fix ("not root: start the agent as
  // root"). Empty: it can.
  std::vector<std::string> missing;
};

// A box that was started. The descriptors are the agent's to read.
struct StartedBox {
  os::UniqueFd out;  // the job's standard output, to end of file
  os::UniqueFd err;
  os::UniqueFd exit;  // a line when the box has ended and nothing of it is left:
                      // "exited CODE\n", "signalled N\n", "timeout\n", "oom\n" or "failed
                      // REASON\n"; a second one where the firewall denied it something:
                      // "denied JSON\n"
};

enum class BoxState : std::uint8_t {
  kPreparing = 0,  // a crash while preparing leaves this: end it, then scrub
  kRunning = 1,
  kEnded = 2,     // the box is gone, its GPUs are not scrubbed yet
  kScrubbed = 3,  // receipt made; Forget drops the record
};

struct BoxRecord {
  std::string lease;
  BoxState state = BoxState::kPreparing;
  std::vector<std::string> gpus;
  std::string receipt;  // the envelope, when scrubbed
};

// An image that boxes of this node can be made of.
struct NodeImage {
  std::string digest;
  std::vector<std::string> names;
};

// Any thread; calls of several threads are answered as they finish.
class JailerClient {
 public:
  // `on_lost` is called once, by any thread, when the jailer has gone or makes no sense; no call
  // that waits returns before it has. Not called for our own end.
  static std::unique_ptr<JailerClient> Attach(os::UniqueFd socket,
                                              std::function<void()> on_lost = {});
  virtual ~JailerClient() = default;
  JailerClient(const JailerClient&) = delete;
  JailerClient& operator=(const JailerClient&) = delete;

  // After the pair has ended every call is kUnavailable.
  virtual Result<JailerHello> Hello() = 0;
  // The inventory worker's JSON (gpu::InventoryToJson), not looked at by the jailer.
  virtual Result<std::string> Inventory() = 0;
  // `grant` is the envelope. kPermissionDenied: not granted; kFailedPrecondition: a GPU is in use
  // or not scrubbed, or this machine cannot run boxes; kConflict: this lease was started before.
  virtual Result<StartedBox> Start(std::string_view grant) = 0;
  // SIGTERM now, SIGKILL after ten seconds; OK when the box has already ended. Returns at once.
  virtual Status End(std::string_view lease) = 0;
  // Scrubs the GPUs of an ended lease and returns the receipt's envelope; the same one again when
  // it was scrubbed before. A lease that was never started here is from now on not startable, and
  // `gpus` are scrubbed for it. With an empty `lease`: scrubs `gpus`, which must not be in use.
  virtual Result<std::string> Scrub(std::string_view lease,
                                    const std::vector<std::string>& gpus) = 0;
  virtual Result<std::vector<BoxRecord>> List() = 0;
  // Drops the record of a scrubbed lease, once the server has its receipt.
  virtual Status Forget(std::string_view lease) = 0;
  // Signed statements of what the jailer saw go wrong (out-of-turn or malformed requests), oldest
  // first, kept until AckIncidents(count).
  virtual Result<std::vector<std::string>> Incidents() = 0;
  virtual Status AckIncidents(std::uint32_t count) = 0;
  // Those that a box can be started with: imported, and vouched for where that is asked.
  virtual Result<std::vector<NodeImage>> Images() { return std::vector<NodeImage>(); }
  // Lines of the sensor worker (gpu/readings.h), non-blocking, to end of file when it has ended; an
  // earlier one ends.
  virtual Result<os::UniqueFd> Sense() {
    return Error{Code::kFailedPrecondition, "this node has no sensor"};
  }
  // Obeys a signed order for a GPU's MIG (isolate/mig_order.h) and returns the report's envelope,
  // also where it failed; the same one again for the same order. kUnavailable, kExhausted: not done
  // yet, ask again.
  virtual Result<std::string> Mig(std::string_view /*order*/) {
    return Error{Code::kFailedPrecondition, "this node cuts no GPUs"};
  }

 protected:
  JailerClient() = default;
};

}  // namespace ringfence::isolate
