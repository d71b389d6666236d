#pragma once

// Turns committed audit entries into the log: *acknowledged* becomes *proven*. One thread of its
// own; it is the only writer of the log's folder.

#include <atomic>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>

#include "audit/log.h"
#include "base/result.h"
#include "store/database.h"

namespace ringfence::server {

// Any thread.
class Sequencer {
 public:
  // `database` and `key` must outlive it. `on_checkpoint` is called, on its thread, after each new
  // checkpoint. kCorrupt when the log holds other entries than the database: that is tampering or
  // a restored backup, and nothing is written over it.
  static Result<std::unique_ptr<Sequencer>> Start(store::Database& database,
                                                  const std::string& folder, std::string origin,
                                                  const crypto::SigningKey& key,
                                                  std::function<void()> on_checkpoint);
  ~Sequencer();
  Sequencer(const Sequencer&) = delete;
  Sequencer& operator=(const Sequencer&) = delete;

  // Entries were committed.
  void Wake();
  audit::TreeHead head() const;
  std::string checkpoint() const;  // with the cosignatures so far
  struct Published {
    audit::TreeHead head;
    std::string note;  // of exactly this head, without cosignatures
  };
  Published published() const;
  Status AddCosignature(std::string_view line);
  // Why the log does not grow; empty: it does.
  std::string problem() const;
  const std::string& folder() const { return folder_; }
  const std::string& origin() const { return origin_; }

 private:
  Sequencer(store::Database& database, std::string folder, std::string origin,
            const crypto::SigningKey& key, std::function<void()> on_checkpoint);
  Status OpenLog();
  void Loop(const std::stop_token& stop);
  Result<bool> AppendSome();  // true: there may be more

  store::Database& database_;
  const std::string folder_;
  const std::string origin_;
  const crypto::SigningKey& key_;
  const std::function<void()> on_checkpoint_;
  mutable std::mutex mutex_;               // of the members below
  std::unique_ptr<audit::LogWriter> log_;  // none after a failed append, until it is opened again
  Published published_;                    // what the log last said, also while there is none
  std::string cosignatures_;               // of exactly that head
  std::string problem_;
  bool pending_ = true;
  std::condition_variable_any wake_;
  std::jthread thread_;  // last: stops before what it uses goes
};

}  // namespace ringfence::server
