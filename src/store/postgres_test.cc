// Goal: several servers on one PostgreSQL write one after the other and lose nothing, whatever dies
// and whenever; nobody holds the others up; no secret gets out.
// Method: a real PostgreSQL, killed, stopped and restarted under load; a proxy that cuts the line
// at a COMMIT; a process that stops in the middle of a write.

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <condition_variable>
#include <fstream>
#include <map>
#include <mutex>
#include <set>
#include <thread>

#include "store/database.h"
#include "store/harness_test.h"
#include "store/migrations.h"
#include "store/records.h"

namespace ringfence::store {
namespace {

std::unique_ptr<Database> OpenAt(const std::string& url) {
  auto opened = Open(url);
  EXPECT_TRUE(opened.has_value()) << (opened.has_value() ? "" : opened.error().message);
  return std::move(opened).value();
}

Status Append(Database& db, const std::string& text) {
  return db.Write([&](Connection& c) { return AppendAudit(c, "test.entry", "", ToBytes(text)); });
}

// How often each entry is there; checks that they are numbered from 0 without a gap.
std::map<std::string, int> Entries(Database& db) {
  std::map<std::string, int> entries;
  EXPECT_TRUE(db.Read([&](Connection& c) -> Status {
                  AuditFilter all;
                  all.limit = 1000000;
                  RINGFENCE_ASSIGN(const auto rows, ListAudit(c, all));
                  for (std::size_t i = 0; i < rows.size(); ++i) {
                    EXPECT_EQ(rows[i].seq, static_cast<std::int64_t>(i));
                    ++entries[ToText(rows[i].entry)];
                  }
                  return {};
                }).has_value());
  return entries;
}

// Tries until it works; what it is waited for is in the tests' hands, so it will.
template <typename Try>
void Until(Try attempt) {
  while (!attempt()) {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
}

// Writes from many threads and remembers what each was told.
class Load {
 public:
  explicit Load(std::vector<Database*> databases) {
    for (std::size_t t = 0; t < databases.size() * 4; ++t) {
      Database* const db = databases[t % databases.size()];
      threads_.emplace_back([this, db, t](const std::stop_token& stop) {
        for (int i = 0; !stop.stop_requested(); ++i) {
          const std::string text = std::to_string(t) + "/" + std::to_string(i);
          const Status status = Append(*db, text);
          const std::lock_guard lock(mutex_);
          if (status.has_value()) {
            good_.insert(text);
          } else {
            EXPECT_EQ(status.error().code, Code::kUnavailable) << status.error().message;
            (IsOutcomeUnknown(status.error()) ? unknown_ : bad_).insert(text);
          }
        }
      });
    }
  }
  void WaitForGood(std::size_t more) {
    const std::size_t from = good();
    Until([&] { return good() >= from + more; });
  }
  void WaitForBad() {
    const std::size_t from = bad();
    Until([&] { return bad() > from; });
  }
  void Stop() { threads_.clear(); }
  // Call after Stop.
  void Check(const std::map<std::string, int>& entries) const {
    for (const auto& [text, count] : entries) {
      EXPECT_EQ(count, 1) << text;
      EXPECT_FALSE(bad_.contains(text)) << text << " was refused and is there";
    }
    for (const std::string& text : good_) {
      EXPECT_TRUE(entries.contains(text)) << text << " was acknowledged and is not there";
    }
  }

 private:
  std::size_t good() {
    const std::lock_guard lock(mutex_);
    return good_.size();
  }
  std::size_t bad() {
    const std::lock_guard lock(mutex_);
    return bad_.size() + unknown_.size();
  }

  std::mutex mutex_;
  std::set<std::string> good_;
  std::set<std::string> bad_;
  std::set<std::string> unknown_;
  std::vector<std::jthread> threads_;
};

TEST(PostgresTest, SeveralServersStartAtOnceAndWriteOneAfterTheOther) {
  const std::string url = NewPostgresDatabase();
  std::vector<std::unique_ptr<Database>> servers(4);
  {
    std::vector<std::jthread> starts;
    for (auto& server : servers) {
      starts.emplace_back([&] { server = OpenAt(url); });
    }
  }
  Load load({servers[0].get(), servers[1].get(), servers[2].get(), servers[3].get()});
  load.WaitForGood(200);
  load.Stop();
  load.Check(Entries(*servers[0]));
}

TEST(PostgresTest, WhatAWriteHasReadHoldsUntilItIsCommitted) {
  const std::string url = NewPostgresDatabase();
  auto one = OpenAt(url);
  auto two = OpenAt(url);
  constexpr int kEach = 40;
  {
    std::vector<std::jthread> threads;
    for (Database* db : {one.get(), two.get()}) {
      threads.emplace_back([db] {
        for (int i = 0; i < kEach; ++i) {
          EXPECT_TRUE(db->Write([](Connection& c) -> Status {
                          RINGFENCE_ASSIGN(const auto rows,
                                           c.Run("SELECT record FROM nodes WHERE name = 'n'", {}));
                          const int have = rows.empty() ? 0 : std::stoi(TextAt(rows[0], 0));
                          RINGFENCE_TRY(
                              c.Run("INSERT INTO nodes (name, record) VALUES ('n', $1)"
                                    " ON CONFLICT (name) DO UPDATE SET record = $1",
                                    {std::to_string(have + 1)}));
                          return {};
                        }).has_value());
        }
      });
    }
  }
  EXPECT_TRUE(one->Read([](Connection& c) -> Status {
                   RINGFENCE_ASSIGN(const auto rows, c.Run("SELECT record FROM nodes", {}));
                   EXPECT_EQ(TextAt(rows[0], 0), std::to_string(2 * kEach));
                   return {};
                 })
                  .has_value());
}

TEST(PostgresTest, AKilledDatabaseLosesNothingAndIsFoundAgain) {
  const OwnPostgres postgres;
  auto one = OpenAt(postgres.url());
  auto two = OpenAt(postgres.url());
  Load load({one.get(), two.get()});
  for (int round = 0; round < 3; ++round) {
    load.WaitForGood(20);
    postgres.Kill();
    load.WaitForBad();
    const Status refused = Append(*one, "refused");
    if (!refused.has_value()) {
      EXPECT_EQ(refused.error().message.find(postgres.folder()), std::string::npos)
          << "where the database is goes into the log, not to clients";
    }
    postgres.Restart();
  }
  load.WaitForGood(20);  // by the same two: nobody had to start again
  load.Stop();
  load.Check(Entries(*one));
}

TEST(PostgresTest, ADatabaseThatHangsHoldsNobodyForEver) {
  const OwnPostgres postgres;
  auto db = OpenAt(postgres.url());
  ASSERT_TRUE(Append(*db, "before").has_value());
  postgres.Pause();
  const Status hung = Append(*db, "while");  // comes back at all: that is the test
  ASSERT_FALSE(hung.has_value());
  EXPECT_EQ(hung.error().code, Code::kUnavailable);
  postgres.Resume();
  Until([&] { return Append(*db, "after").has_value(); });
  if (!IsOutcomeUnknown(hung.error())) {
    EXPECT_EQ(Entries(*db).count("while"), 0U);
  }
}

TEST(PostgresTest, ACommitWhoseAnswerIsLostIsAskedFor) {
  const std::string url = NewPostgresDatabase();
  Proxy proxy(url);
  auto db = OpenAt(proxy.url());
  proxy.Cut(Proxy::OnCommit::kCutAfter);
  const Status done = Append(*db, "done");
  EXPECT_TRUE(done.has_value()) << done.error().message;
  proxy.Cut(Proxy::OnCommit::kCutBefore);
  const Status lost = Append(*db, "lost");
  ASSERT_FALSE(lost.has_value());
  EXPECT_EQ(lost.error().code, Code::kUnavailable);
  EXPECT_FALSE(IsOutcomeUnknown(lost.error())) << lost.error().message;
  proxy.Cut(Proxy::OnCommit::kCutAfter, true);  // and nobody answers afterwards
  const Status unknown = Append(*db, "unknown");
  ASSERT_FALSE(unknown.has_value());
  EXPECT_EQ(unknown.error().code, Code::kUnavailable);
  EXPECT_TRUE(IsOutcomeUnknown(unknown.error())) << unknown.error().message;
  proxy.Open();
  Until([&] { return Append(*db, "last").has_value(); });
  EXPECT_EQ(Entries(*db), (std::map<std::string, int>{{"done", 1}, {"unknown", 1}, {"last", 1}}));
}

// Stops itself in the middle of a write. Exits with 0 if it was told that nothing was written.
[[noreturn]] void StopInsideAWrite(const std::string& url) {
  (void)::prctl(PR_SET_PDEATHSIG, SIGKILL);
  auto db = Open(url);
  const Status status = (*db)->Write([](Connection& c) -> Status {
    RINGFENCE_TRY(AppendAudit(c, "test.entry", "", ToBytes("stopped")));
    ::raise(SIGSTOP);
    return AppendAudit(c, "test.entry", "", ToBytes("stopped, second half"));
  });
  ::_exit(!status.has_value() && status.error().code == Code::kUnavailable &&
                  !IsOutcomeUnknown(status.error())
              ? 0
              : 1);
}

TEST(PostgresTest, AServerThatStopsInsideAWriteLosesItsTurn) {
  const std::string url = NewPostgresDatabase();
  const pid_t stopped = ::fork();
  if (stopped == 0) {
    StopInsideAWrite(url);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(stopped, &status, WUNTRACED), stopped);
  ASSERT_TRUE(WIFSTOPPED(status)) << status;
  auto db = OpenAt(url);
  const Status other = Append(*db, "other");
  EXPECT_TRUE(other.has_value()) << other.error().message;
  ASSERT_EQ(::kill(stopped, SIGCONT), 0);
  ASSERT_EQ(::waitpid(stopped, &status, 0), stopped);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
  EXPECT_EQ(Entries(*db), (std::map<std::string, int>{{"other", 1}}));
}

class Ear {
 public:
  std::function<void(const std::string&)> Listener() {
    return [this](const std::string& topic) {
      const std::lock_guard lock(mutex_);
      heard_.insert(topic);
      changed_.notify_all();
    };
  }
  void WaitFor(const std::string& topic) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return heard_.contains(topic); });
  }
  bool Heard(const std::string& topic) {
    const std::lock_guard lock(mutex_);
    return heard_.contains(topic);
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::set<std::string> heard_;
};

TEST(PostgresTest, AnnouncementsReachTheOthersAndABrokenLineIsSaid) {
  const OwnPostgres postgres;
  Ear one_hears;
  Ear two_hears;
  auto one = OpenAt(postgres.url());
  auto two = OpenAt(postgres.url());
  one->Listen(one_hears.Listener());
  two->Listen(two_hears.Listener());
  // It is a wake-up: what is announced before the other listens may be missed.
  Until([&] {
    one->Announce("lease:1");
    return two_hears.Heard("lease:1");
  });
  Until([&] {
    two->Announce("lease:2");
    return one_hears.Heard("lease:2");
  });
  EXPECT_FALSE(one_hears.Heard("lease:1")) << "nobody hears itself";
  EXPECT_FALSE(one_hears.Heard("")) << "nothing was missed yet";
  for (int i = 0; i < 300; ++i) {  // more than one payload
    one->Announce("burst:" + std::string(100, 'x') + std::to_string(i));
  }
  two_hears.WaitFor("burst:" + std::string(100, 'x') + "299");
  two_hears.WaitFor("burst:" + std::string(100, 'x') + "0");
  postgres.Kill();
  one->Announce("while it is down");
  postgres.Restart();
  one_hears.WaitFor("");
  two_hears.WaitFor("");
  one->Announce(std::string(1000, 'x'));  // too long to be said: then look at everything
  Until([&] {
    one->Announce("lease:3");
    return two_hears.Heard("lease:3");
  });
}

TEST(PostgresTest, ErrorsSayWhatCanBeDone) {
  auto db = OpenAt(NewPostgresDatabase());
  for (const auto& [state, code] : {std::pair{"53100", Code::kUnavailable},
                                    {"53300", Code::kUnavailable},
                                    {"57P01", Code::kUnavailable},
                                    {"58030", Code::kUnavailable},
                                    {"40001", Code::kUnavailable},
                                    {"55P03", Code::kUnavailable},
                                    {"23505", Code::kConflict},
                                    {"23514", Code::kConflict},
                                    {"42P01", Code::kInternal},
                                    {"XX001", Code::kCorrupt}}) {
    const Status status = db->Write([&, raised = std::string(state)](Connection& c) -> Status {
      RINGFENCE_TRY(c.Run("DO 'BEGIN RAISE EXCEPTION ''no'' USING ERRCODE = ''" + raised +
                              "'', DETAIL = ''of a record''; END'",
                          {}));
      return {};
    });
    ASSERT_FALSE(status.has_value());
    EXPECT_EQ(status.error().code, code) << state;
    EXPECT_EQ(status.error().message, "database: no") << "the detail may hold a record";
  }
  const Status bytes = db->Read([](Connection& c) -> Status {
    return GetLease(c, std::string("\xff\0", 2)).has_value() ? Status() : Status(Error{});
  });
  EXPECT_FALSE(bytes.has_value());
}

TEST(PostgresTest, ADatabaseThatWouldForgetIsRefused) {
  const OwnPostgres postgres;
  const auto set = [&](const std::string& change) {
    postgres.Sql("ALTER SYSTEM " + change);
    postgres.Sql("SELECT pg_reload_conf()");
  };
  for (const std::string setting : {"fsync", "full_page_writes"}) {
    set("SET " + setting + " = off");
    Error error;
    Until([&] {  // it reads its settings when it gets to it
      const auto opened = Open(postgres.url());
      error = opened.has_value() ? Error{} : opened.error();
      return !opened.has_value();
    });
    EXPECT_EQ(error.code, Code::kFailedPrecondition);
    EXPECT_NE(error.message.find(setting), std::string::npos) << error.message;
    set("RESET " + setting);
    Until([&] { return Open(postgres.url()).has_value(); });
  }
  set("SET synchronous_commit = off");
  Until([&] { return postgres.Sql("SHOW synchronous_commit") == "off"; });
  auto db = OpenAt(postgres.url());
  EXPECT_TRUE(db->Read([](Connection& c) -> Status {
                  RINGFENCE_ASSIGN(const auto rows,
                                   c.Run("SELECT current_setting('synchronous_commit')", {}));
                  EXPECT_EQ(TextAt(rows[0], 0), "on");
                  return {};
                }).has_value());
}

TEST(PostgresTest, NoUnsafeWayAndNoPasswordInSight) {
  const std::string secret = "very-secret";
  for (const std::string& url :
       {"postgresql://rf:" + secret + "@localhost/rf", "postgresql:///rf?password=" + secret,
        "postgresql://rf@localhost/rf?no_such_option=" + secret,
        "postgresql://rf@db.example/rf?application_name=" + secret,
        "postgresql://rf@db.example/rf?sslmode=require&application_name=" + secret,
        "postgresql://rf@localhost,db.example/rf?application_name=" + secret,
        "postgresql://rf@localhost/rf?hostaddr=192.0.2.1&application_name=" + secret,
        "postgresql://rf@127.0.0.1.evil.example/rf?application_name=" + secret,
        std::string("postgresql:///?service=rf")}) {
    const auto refused = Open(url);
    ASSERT_FALSE(refused.has_value()) << url;
    EXPECT_EQ(refused.error().code, Code::kInvalidArgument) << url << refused.error().message;
    EXPECT_EQ((refused.error().message + refused.error().hint).find(secret), std::string::npos);
  }
}

TEST(PostgresTest, APasswordComesFromAFile) {
  const OwnPostgres postgres;
  postgres.Sql("CREATE ROLE with_password LOGIN SUPERUSER PASSWORD 'very-secret'");
  std::string url = postgres.url();
  url.replace(url.find("ringfence@"), 10, "with_password@");
  const std::string file = postgres.folder() / "pgpass";
  const auto open_with = [&](const std::string& password) {
    std::ofstream(file) << "*:*:*:with_password:" << password << "\n";
    EXPECT_EQ(::chmod(file.c_str(), 0600), 0);
    return Open(url + "&passfile=" + file);
  };
  EXPECT_TRUE(open_with("very-secret").has_value());
  const auto refused = open_with("very-wrong");
  ASSERT_FALSE(refused.has_value());
  EXPECT_EQ(refused.error().code, Code::kUnavailable);
  EXPECT_EQ(refused.error().message.find("very-wrong"), std::string::npos);
}

}  // namespace
}  // namespace ringfence::store
