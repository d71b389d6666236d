#pragma once

// Turns committed audit entries into the log: *acknowledged* becomes *proven*. Every server keeps
// the whole log in its own folder, built from the same records; one at a time, whose turn it is,
// publishes checkpoints, each in the database before anybody is shown it. So there is no fork to be
// had: a server that was cut off while it led has signed nothing but a prefix of what comes.

#include <chrono>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "audit/log.h"
#include "base/result.h"
#include "store/database.h"
#include "store/log_records.h"

namespace ringfence::server {

// Any thread.
class Sequencer {
 public:
  struct Options {
    std::string folder;
    std::string origin;
    std::string name;     // of this server's run, unlike any other's
    bool shared = false;  // other servers may work on the same database
    // For how long the others see nothing of the one whose turn it is before one of them takes it.
    std::chrono::milliseconds turn_lost_after{4000};
  };
  // `database` and `key` must outlive it. `on_checkpoint` is called, on its thread, after each new
  // checkpoint. kCorrupt when the log holds other entries than the database: that is tampering or
  // a restored backup, and nothing is written over it.
  static Result<std::unique_ptr<Sequencer>> Start(store::Database& database, Options options,
                                                  const crypto::SigningKey& key,
                                                  std::function<void()> on_checkpoint);
  // The same without its thread: whoever opened it calls Step, as the simulation does.
  static Result<std::unique_ptr<Sequencer>> Open(store::Database& database, Options options,
                                                 const crypto::SigningKey& key,
                                                 std::function<void()> on_checkpoint);
  ~Sequencer();
  Sequencer(const Sequencer&) = delete;
  Sequencer& operator=(const Sequencer&) = delete;

  // Makes what was acknowledged part of the log, gives the turn back, and ends the thread.
  void Stop();
  // Entries were committed, here or by another server.
  void Wake();
  // Looks at the database and does what is due; true: there may be more. One thread at a time.
  Result<bool> Step();
  audit::TreeHead head() const;
  std::string checkpoint() const;  // with the cosignatures so far
  struct Published {
    audit::TreeHead head;
    std::string note;  // of exactly this head, without cosignatures
  };
  Published published() const;
  // Kept for all servers. The caller has verified it against the published note of `head`, which
  // may have been followed by another since.
  Status AddCosignature(const audit::TreeHead& head, const std::string& witness,
                        const std::string& line);
  // Whether it is this server's turn to publish.
  bool leads() const;
  // Why the log does not grow; empty: it does.
  std::string problem() const;
  const std::string& folder() const { return options_.folder; }
  const std::string& origin() const { return options_.origin; }

 private:
  // What the database says, in one look.
  struct View {
    store::LogTurn turn;
    store::LogHead head;
    std::vector<Bytes> entries;  // that follow the local log's
    std::vector<std::string> cosignatures;
    std::int64_t size = 0;  // of the audit records
  };

  Sequencer(store::Database& database, Options options, const crypto::SigningKey& key,
            std::function<void()> on_checkpoint);
  Status OpenLog();
  void Loop(const std::stop_token& stop);
  Result<View> Look() const;
  Status SeeTurn(const store::LogTurn& seen);
  Result<bool> CatchUp(View& view);
  Result<bool> Lead(View& view);
  Status Append(const std::vector<Bytes>& entries);
  void Publish(const std::string& note);
  void TakeCosignatures(const std::vector<std::string>& lines);
  void GiveBack();

  store::Database& database_;
  const Options options_;
  const crypto::SigningKey& key_;
  const std::function<void()> on_checkpoint_;
  // The loop's alone.
  std::optional<store::LogTurn> turn_;  // ours
  store::LogTurn watched_;              // another's, and since when it stands still
  std::chrono::steady_clock::time_point watched_since_;
  std::chrono::steady_clock::time_point kept_;

  mutable std::mutex mutex_;               // of the members below
  std::unique_ptr<audit::LogWriter> log_;  // none after a failed append, until it is opened again
  Published published_;                    // what the database has, as far as the log here goes
  std::vector<std::string> cosignatures_;  // of exactly that head
  bool leads_ = false;
  std::string problem_;
  std::string progress_;  // while the local log is far behind
  bool pending_ = true;
  std::condition_variable_any wake_;
  std::jthread thread_;  // last: stops before what it uses goes
};

}  // namespace ringfence::server
