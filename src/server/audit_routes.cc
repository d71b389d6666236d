// Reading the audit log. Each reading is an entry itself; a page that goes on from an earlier one
// (its cursor carries our mark) belongs to the reading that was recorded.

#include <charconv>

#include "audit/note.h"
#include "audit/proof.h"
#include "base/encoding.h"
#include "crypto/sha256.h"
#include "os/file.h"
#include "server/routes.h"

namespace ringfence::server {
namespace {

constexpr std::int64_t kWaitMsMax = 30000;
constexpr std::size_t kLogFileBytesMax = std::size_t{24} << 20U;  // 256 entries of the longest kind

// What one recorded reading covers: this token, this question, this hour and the next.
struct Reading {
  std::string token;
  std::string question;  // filter and order
  std::int64_t hour = 0;
};

Reading ReadingOf(const Call& call) {
  return {call.caller.via,
          std::string(call.request.Query("lease")) + "\n" +
              std::string(call.request.Query("action")) + "\n" +
              std::string(call.request.Query("order")),
          call.core.Now().time_since_epoch() / std::chrono::hours(1)};
}

std::string MarkOf(Core& core, const Reading& reading, std::int64_t position) {
  return Hex(crypto::HmacSha256(
                 core.keys().token.Reveal(),
                 AsBytes("audit cursor v2\n" + reading.token + "\n" + reading.question + "\n" +
                         std::to_string(reading.hour) + "\n" + std::to_string(position))))
      .substr(0, 16);
}

std::string CursorOf(Core& core, const Reading& reading, std::int64_t position) {
  return std::to_string(position) + "." + MarkOf(core, reading, position);
}

struct Cursor {
  std::int64_t position = 0;
  bool continues = false;  // our own mark: the reading is on record
};

Result<Cursor> ReadCursor(const Call& call) {
  Cursor cursor;
  const std::string_view text = call.request.Query("cursor");
  if (text.empty()) {
    return cursor;
  }
  const auto [end, error] =
      std::from_chars(text.data(), text.data() + text.size(), cursor.position);
  const std::string_view mark(end, static_cast<std::size_t>(text.data() + text.size() - end));
  if (error != std::errc() || cursor.position < 0 || (!mark.empty() && mark[0] != '.')) {
    return Error{Code::kInvalidArgument, "cursor is not one of ours", "pass back next_cursor",
                 "cursor"};
  }
  Reading reading = ReadingOf(call);
  for (int age = 0; age < 2 && !mark.empty() && !cursor.continues; ++age, --reading.hour) {
    cursor.continues = mark.substr(1) == MarkOf(call.core, reading, cursor.position);
  }
  return cursor;
}

Status RecordReading(const Call& call, const std::string& what) {
  audit::Entry entry = call.core.NewEntry(ActorOf(call.caller), "audit.read");
  Note(call, entry);
  entry.result = "ok";
  entry.detail["what"] = what.substr(0, 512);
  return call.core.RecordAlone(entry);
}

Result<JsonObject> ItemOf(const store::AuditRow& row, std::uint64_t proven) {
  RINGFENCE_ASSIGN(const Json entry, ParseJson(AsText(row.entry), audit::kEntryBytesMax));
  return JsonObject{{"index", row.seq},
                    {"entry", entry},
                    {"proven", static_cast<std::uint64_t>(row.seq) < proven}};
}

// True when something was answered.
bool AnswerList(Core& core, const store::AuditFilter& filter,
                const std::function<std::string(std::int64_t)>& cursor_of, bool even_empty,
                const net::Responder& responder) {
  std::vector<store::AuditRow> rows;
  const Status read = core.database().Read([&](store::Connection& db) -> Status {
    RINGFENCE_ASSIGN(rows, store::ListAudit(db, filter));
    return {};
  });
  if (read.has_value() && rows.empty() && !even_empty) {
    return false;
  }
  Answer(responder, [&]() -> Result<net::Response> {
    RINGFENCE_TRY(read);
    const std::uint64_t proven = core.sequencer().head().size;
    JsonArray items;
    for (const store::AuditRow& row : rows) {
      RINGFENCE_ASSIGN(JsonObject item, ItemOf(row, proven));
      items.emplace_back(std::move(item));
    }
    JsonObject body{{"items", std::move(items)}};
    const bool full = static_cast<std::int64_t>(rows.size()) == filter.limit;
    if (filter.newest_first) {
      if (full && rows.back().seq > 0) {
        body["next_cursor"] = cursor_of(rows.back().seq);
      }
    } else {
      // Always there: a reader that follows the log goes on from it.
      body["next_cursor"] = cursor_of(rows.empty() ? filter.from : rows.back().seq + 1);
    }
    return net::Response::OfJson(200, body);
  });
  return true;
}

Result<std::uint64_t> IndexOf(const Call& call) {
  const std::string& text = call.params.find("index")->second;
  std::uint64_t index = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), index);
  if (error != std::errc() || end != text.data() + text.size() || index > (1ULL << 53U)) {
    return Error{Code::kInvalidArgument, "an entry is named by its number", {}, "index"};
  }
  return index;
}

// "checkpoint" or "tile/..." with digits, x, '.', 'p' and "entries": nothing that leaves the log.
bool IsLogFile(std::string_view name) {
  if (name == "checkpoint") {
    return true;
  }
  if (!name.starts_with("tile/") || name.find("..") != std::string_view::npos ||
      name.find("//") != std::string_view::npos || name.size() > 128) {
    return false;
  }
  name.remove_prefix(5);
  if (name.starts_with("entries/")) {
    name.remove_prefix(8);
  }
  return name.find_first_not_of("0123456789x/.p") == std::string_view::npos;
}

}  // namespace

void ListAuditEntries(const Call& call, const net::Responder& responder) {
  const auto page = PageOf(call.request);
  const auto cursor = ReadCursor(call);
  const auto wait = IntQuery(call.request, "wait_ms", 0, 0, kWaitMsMax);
  const std::string_view order = call.request.Query("order");
  Status good;
  if (!page.has_value()) {
    good = page.error();
  } else if (!cursor.has_value()) {
    good = cursor.error();
  } else if (!wait.has_value()) {
    good = wait.error();
  } else if (!order.empty() && order != "oldest" && order != "newest") {
    good = Error{Code::kInvalidArgument, "order must be oldest or newest", {}, "order"};
  } else if (!cursor->continues) {
    good = RecordReading(call, "entries " + std::string(call.request.Query("lease")) + " " +
                                   std::string(call.request.Query("action")));
  }
  if (!good.has_value()) {
    responder.Send(net::Response::OfError(good.error()));
    return;
  }
  store::AuditFilter filter;
  filter.lease = call.request.Query("lease");
  filter.action = call.request.Query("action");
  filter.newest_first = order == "newest";
  filter.from = cursor->position;
  filter.limit = page->limit;
  Core& core = call.core;
  const auto cursor_of = [&core, reading = ReadingOf(call)](std::int64_t position) {
    return CursorOf(core, reading, position);
  };
  core.waiters().Park("audit", Milliseconds(*wait), [=, &core](bool last) {
    return AnswerList(core, filter, cursor_of, last, responder);
  });
}

void GetAuditEntry(const Call& call, const net::Responder& responder) {
  Answer(responder, [&]() -> Result<net::Response> {
    RINGFENCE_ASSIGN(const std::uint64_t index, IndexOf(call));
    RINGFENCE_TRY(RecordReading(call, "entry " + std::to_string(index)));
    JsonObject body;
    RINGFENCE_TRY(call.core.database().Read([&](store::Connection& db) -> Status {
      store::AuditFilter filter;
      filter.from = static_cast<std::int64_t>(index);
      filter.limit = 1;
      RINGFENCE_ASSIGN(const auto rows, store::ListAudit(db, filter));
      if (rows.empty() || static_cast<std::uint64_t>(rows[0].seq) != index) {
        return Error{Code::kNotFound, "no audit entry " + std::to_string(index),
                     "`ringfence audit list` shows the newest"};
      }
      RINGFENCE_ASSIGN(body, ItemOf(rows[0], call.core.sequencer().head().size));
      return {};
    }));
    return net::Response::OfJson(200, body);
  });
}

void ProveAuditEntry(const Call& call, const net::Responder& responder) {
  Answer(responder, [&]() -> Result<net::Response> {
    RINGFENCE_ASSIGN(const std::uint64_t index, IndexOf(call));
    const Sequencer& log = call.core.sequencer();
    const std::string note = log.checkpoint();
    RINGFENCE_ASSIGN(
        const audit::Checkpoint checkpoint,
        audit::OpenCheckpoint(note, {log.origin(), 1, call.core.keys().log.public_key()}));
    if (index >= checkpoint.head.size) {
      return Error{Code::kNotFound,
                   "no proven audit entry " + std::to_string(index) + " (the checkpoint covers " +
                       std::to_string(checkpoint.head.size) + ")",
                   "a new entry is proven within a second; see `ringfence audit list`"};
    }
    RINGFENCE_TRY(RecordReading(call, "proof of " + std::to_string(index)));
    RINGFENCE_ASSIGN(const std::string proof, audit::ProveEntry(log.folder(), index, log.origin(),
                                                                checkpoint.head.size, note));
    net::Response response;
    response.body = proof;
    return response;
  });
}

void GetCheckpoint(const Call& call, const net::Responder& responder) {
  Answer(responder, [&]() -> Result<net::Response> {
    RINGFENCE_TRY(RecordReading(call, "checkpoint"));
    return net::Response::OfText(200, call.core.sequencer().checkpoint());
  });
}

void GetAuditKeys(const Call& call, const net::Responder& responder) {
  Answer(responder, [&]() -> Result<net::Response> {
    JsonArray witnesses;
    RINGFENCE_TRY(call.core.database().Read([&](store::Connection& db) -> Status {
      RINGFENCE_ASSIGN(const auto nodes, store::ListNodes(db));
      for (const model::Node& node : nodes) {
        if (!node.witness_vkey.empty()) {
          witnesses.emplace_back(node.witness_vkey);
        }
      }
      return {};
    }));
    return net::Response::OfJson(
        200, JsonObject{{"log", audit::VerifierKey(call.core.sequencer().origin(), 1,
                                                   call.core.keys().log.public_key())},
                        {"witnesses", std::move(witnesses)}});
  });
}

void GetLogFile(const Call& call, const net::Responder& responder) {
  Answer(responder, [&]() -> Result<net::Response> {
    const std::string& name = call.params.find("file")->second;
    if (!IsLogFile(name)) {
      return Error{Code::kNotFound, "no such file in the log",
                   "names are those of tlog-tiles: checkpoint, tile/0/000", "file"};
    }
    if (call.core.BeginsLogCopy(call.caller.via)) {
      RINGFENCE_TRY(RecordReading(call, "log file " + name));
    }
    net::Response response;
    response.content_type = "application/octet-stream";
    if (name == "checkpoint") {  // what is durable, not what the disk shows a moment before
      response.body = call.core.sequencer().checkpoint();
      return response;
    }
    RINGFENCE_ASSIGN(response.body,
                     os::ReadText(call.core.sequencer().folder() + "/" + name, kLogFileBytesMax));
    return response;
  });
}

}  // namespace ringfence::server
