#pragma once

// PostgreSQL for tests: databases in one that ctest keeps running, or a whole one to be killed.

#include <atomic>
#include <filesystem>
#include <string>
#include <thread>

namespace ringfence::store {

// The URL of a new, empty database. Where ctest runs no PostgreSQL for us, one is started and lives
// as long as this process.
std::string NewPostgresDatabase();

// A PostgreSQL of the test's own (tests/postgres.sh).
class OwnPostgres {
 public:
  OwnPostgres();
  ~OwnPostgres();
  OwnPostgres(const OwnPostgres&) = delete;
  OwnPostgres& operator=(const OwnPostgres&) = delete;

  const std::string& url() const { return url_; }
  const std::filesystem::path& folder() const { return folder_; }
  void Kill() const { Script("kill"); }
  void Pause() const { Script("pause"); }
  void Resume() const { Script("resume"); }
  void Restart() const { Script("restart"); }
  std::string Sql(const std::string& sql) const;  // what psql prints, as the administrator

 private:
  std::string Script(const std::string& command) const;
  std::filesystem::path folder_;
  std::string url_;
};

// A way to a database that can be cut at the worst moment. Its connections are served one thread
// each; what comes from the client is watched for COMMIT.
class Proxy {
 public:
  enum class OnCommit { kPass, kCutBefore, kCutAfter };  // after: done, but nobody hears of it

  explicit Proxy(const std::string& url);
  ~Proxy();
  Proxy(const Proxy&) = delete;
  Proxy& operator=(const Proxy&) = delete;

  const std::string& url() const { return url_; }
  // For the next COMMIT, once; `closed`: and from then on nobody is let in.
  void Cut(OnCommit when, bool closed = false);
  void Open() { closed_ = false; }

 private:
  void Accept(const std::stop_token& stop);
  void Serve(int client, const std::stop_token& stop);

  std::filesystem::path folder_;
  std::string target_;  // the database's socket
  std::string url_;
  int listener_ = -1;
  std::atomic<OnCommit> on_commit_ = OnCommit::kPass;
  std::atomic<bool> close_then_ = false;
  std::atomic<bool> closed_ = false;
  std::jthread acceptor_;
};

}  // namespace ringfence::store
