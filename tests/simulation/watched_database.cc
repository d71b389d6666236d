#include "watched_database.h"

#include "base/check.h"

namespace ringfence::simulation {
namespace {

const Error kDiskFull{Code::kUnavailable, "database: run: database or disk is full"};

class WatchedConnection final : public store::Connection {
 public:
  WatchedConnection(store::Connection& inner, Touched& touched)
      : inner_(inner), touched_(touched) {}

  Result<std::vector<store::Row>> Run(std::string_view sql,
                                      const std::vector<store::Value>& values) override {
    auto rows = inner_.Run(sql, values);
    if (rows.has_value()) {
      Note(sql, values);
    }
    return rows;
  }

 private:
  // By table and first value, so that the statements may change without this knowing.
  void Note(std::string_view sql, const std::vector<store::Value>& values) {
    const auto changes = [&](std::string_view table) {
      return sql.starts_with("INSERT INTO " + std::string(table) + " ") ||
             sql.starts_with("UPDATE " + std::string(table) + " ");
    };
    if (changes("leases")) {
      touched_.leases.insert(std::get<std::string>(values[0]));
    } else if (changes("gpus")) {
      touched_.gpus.insert(std::get<std::string>(values[0]));
    } else if (changes("receipts")) {
      touched_.receipts.push_back(std::get<std::string>(values[0]));
    } else if (changes("audit")) {
      for (const store::Value& value : values) {
        if (const auto* entry = std::get_if<Bytes>(&value)) {
          touched_.entries.push_back(*entry);
        }
      }
    }
  }

  store::Connection& inner_;
  Touched& touched_;
};

class WatchedDatabase final : public store::Database {
 public:
  WatchedDatabase(std::unique_ptr<store::Database> inner, WatchOptions options)
      : inner_(std::move(inner)), options_(std::move(options)) {}

  Status Write(const std::function<Status(store::Connection&)>& work) override {
    const WriteFate fate = options_.fate();
    if (fate == WriteFate::kRefused) {
      return kDiskFull;
    }
    if (fate == WriteFate::kKilledBefore) {
      throw ServerKilled{};
    }
    Touched touched;
    const Status written = inner_->Write([&](store::Connection& db) -> Status {
      touched = {};
      WatchedConnection watched(db, touched);
      RINGFENCE_TRY(work(watched));
      return fate == WriteFate::kRolledBack ? Status(kDiskFull) : Status();
    });
    if (written.has_value() && !touched.empty()) {
      const Status seen = inner_->Read([&](store::Connection& db) -> Status {
        options_.committed(db, touched);
        return {};
      });
      RINGFENCE_CHECK(seen.has_value());
    }
    if (written.has_value() && fate == WriteFate::kKilledAfter) {
      throw ServerKilled{};
    }
    return written;
  }

  Status Read(const std::function<Status(store::Connection&)>& work) override {
    return inner_->Read(work);
  }
  void Announce(const std::string& topic) override { inner_->Announce(topic); }
  void Listen(std::function<void(const std::string&)> listener) override {
    inner_->Listen(std::move(listener));
  }

 private:
  std::unique_ptr<store::Database> inner_;
  WatchOptions options_;
};

}  // namespace

std::unique_ptr<store::Database> Watch(std::unique_ptr<store::Database> database,
                                       WatchOptions options) {
  return std::make_unique<WatchedDatabase>(std::move(database), std::move(options));
}

}  // namespace ringfence::simulation
