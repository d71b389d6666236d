#include "audit/verify.h"

#include <algorithm>
#include <thread>

#include "audit/verify_files.h"
#include "audit/verify_note.h"
#include "audit/verify_pool.h"
#include "audit/verify_tree.h"
#include "base/encoding.h"
#include "os/file.h"

namespace ringfence::audit {
namespace verify {
namespace {

constexpr std::size_t kProblemsLimit = 1000;
// After so many leaf tiles in a row of which nothing is there, the rest is taken as missing: a
// checkpoint can claim any size.
constexpr std::uint64_t kMissingLimit = 1000;
constexpr std::chrono::milliseconds kSettleStep{20};

struct Earlier {
  std::string name;  // for messages
  Note note;
};

class LogCheck {
 public:
  LogCheck(const VerifyOptions& options, Key log, std::vector<Key> witnesses)
      : options_(options), log_(std::move(log)), witnesses_(std::move(witnesses)) {}

  VerifyReport Run() {
    const Result<Note> note = ReadCheckpoint();
    if (!note.has_value()) {
      Problem("checkpoint: " + note.error().message);
      return std::move(report_);
    }
    report_.origin = note->origin;
    report_.size = note->size;
    report_.root = Base64(note->root);
    CheckSignatures(*note);
    ReadEarlier(*note);
    if (CheckTree(*note)) {
      CheckStrays(note->size);
    }
    if (report_.problems.size() > kProblemsLimit) {
      report_.problems.resize(kProblemsLimit);
    }
    report_.ok = report_.bad.empty() && report_.problems.empty();
    return std::move(report_);
  }

 private:
  void Problem(std::string what) { report_.problems.push_back(std::move(what)); }

  Result<Note> ReadCheckpoint() const {
    Bytes bytes;
    RINGFENCE_TRY(ReadInto(options_.folder + "/checkpoint", kNoteBytesLimit, bytes));
    return ReadNote(AsText(bytes));
  }

  void CheckSignatures(const Note& note) {
    if (const Status status = CheckSigned(note, log_); !status.has_value()) {
      Problem("checkpoint: " + status.error().message);
    }
    for (const Key& witness : witnesses_) {
      const Result<Timestamp> time = CheckCosigned(note, witness);
      if (time.has_value()) {
        report_.witnesses.push_back(witness.name + " at " + FormatTime(*time));
      } else {
        Problem("checkpoint: " + time.error().message);
      }
    }
  }

  void ReadEarlier(const Note& now) {
    for (std::size_t i = 0; i < options_.earlier_checkpoints.size(); ++i) {
      const std::string name = "earlier checkpoint " + std::to_string(i + 1);
      Result<Note> note = ReadNote(options_.earlier_checkpoints[i]);
      const Status status = note.has_value() ? CheckSigned(*note, log_) : Status(note.error());
      if (!status.has_value()) {
        Problem(name + ": " + status.error().message);
      } else if (note->size > now.size) {
        Problem("rollback: the log has " + std::to_string(now.size) + " entries, but " + name +
                " signs " + std::to_string(note->size));
      } else {
        earlier_.push_back({name, std::move(note).value()});
      }
    }
    std::sort(earlier_.begin(), earlier_.end(),
              [](const Earlier& a, const Earlier& b) { return a.note.size < b.note.size; });
  }

  // False when so much is missing that looking for strays makes no sense.
  bool CheckTree(const Note& note) {
    TreeCheck tree(options_.folder, report_);
    const std::uint64_t tiles = note.size / kSpan + (note.size % kSpan != 0 ? 1 : 0);
    LeafPool pool(options_.folder, note.size, options_.threads);
    CompareEarlier(tree, 0);
    std::uint64_t missing = 0;
    for (std::uint64_t index = 0; index < tiles; ++index) {
      LeafTile tile = pool.Next();
      const bool nothing =
          tile.clean.empty() && std::none_of(tile.leaves.begin(), tile.leaves.end(),
                                             [](const Subtree& leaf) { return leaf.known; });
      missing = nothing ? missing + 1 : 0;
      tree.Add(std::move(tile));
      const std::uint64_t done = std::min(note.size, (index + 1) * kSpan);
      if (missing > kMissingLimit) {
        report_.bad.push_back({done, note.size - 1, "nothing is there, as of what comes before"});
        return false;
      }
      CompareEarlier(tree, done);
      if (options_.progress != nullptr && (index % 64 == 0 || done == note.size)) {
        options_.progress(done, note.size);
      }
    }
    tree.Finish();
    CompareRoot(tree, note);
    return true;
  }

  // Also says what can still be trusted when something is bad.
  void CompareRoot(const TreeCheck& tree, const Note& note) {
    const std::optional<TreeCheck::Roots> roots = tree.RootAt(note.size);
    const bool entries_match = roots.has_value() && roots->from_entries == note.root;
    const bool tiles_match = roots.has_value() && roots->from_tiles == note.root;
    if (entries_match && tiles_match && report_.bad.empty()) {
      return;
    }
    if (note.size == 0) {
      Problem("root: an empty log has another root");
    } else if (!roots.has_value()) {
      Problem("root: it cannot be computed, as parts are missing");
    } else if (entries_match && report_.entries_read == note.size) {
      Problem("root: the entries lead to the signed root, so each is what was signed");
    } else if (tiles_match) {
      Problem(
          "root: the tiles lead to the signed root, so entries that are not named are what "
          "was signed");
    } else {
      if (report_.bad.empty()) {
        report_.bad.push_back({0, note.size - 1,
                               "entries and tiles agree with each other, but not with the root "
                               "that is signed"});
      }
      Problem("root: neither entries nor tiles lead to the signed root");
    }
  }

  // Those of the earlier checkpoints whose size the tree has now reached.
  void CompareEarlier(const TreeCheck& tree, std::uint64_t done) {
    for (; next_earlier_ < earlier_.size() && earlier_[next_earlier_].note.size <= done;
         ++next_earlier_) {
      const Earlier& earlier = earlier_[next_earlier_];
      const std::optional<TreeCheck::Roots> roots = tree.RootAt(earlier.note.size);
      if (roots.has_value() &&
          (roots->from_entries == earlier.note.root || roots->from_tiles == earlier.note.root)) {
        continue;
      }
      const bool damaged =
          std::any_of(report_.bad.begin(), report_.bad.end(),
                      [&](const BadRange& range) { return range.first < earlier.note.size; });
      Problem((damaged ? "damage or fork: " : "fork: ") + std::string("the first ") +
              std::to_string(earlier.note.size) + " entries are not those that " + earlier.name +
              " signs");
    }
  }

  // Files beyond the checkpoint are there for a moment whenever a log is appended to. They are no
  // finding if a newer signed checkpoint covers them, or if they go.
  void CheckStrays(std::uint64_t size) {
    Strays strays = FindStrays(options_.folder, size);
    for (std::string& problem : strays.problems) {
      Problem(std::move(problem));
    }
    const auto deadline = std::chrono::steady_clock::now() + options_.settle;
    while (!strays.beyond.empty()) {
      const Result<Note> newer = ReadCheckpoint();
      const std::uint64_t covered =
          newer.has_value() && CheckSigned(*newer, log_).has_value() ? newer->size : size;
      std::erase_if(strays.beyond, [&](const Beyond& file) {
        return PartsOf(file.kind, covered) >= file.parts_needed ||
               !os::Exists(options_.folder + "/" + file.path);
      });
      if (std::chrono::steady_clock::now() >= deadline) {
        break;
      }
      if (!strays.beyond.empty()) {
        std::this_thread::sleep_for(kSettleStep);
      }
    }
    for (const Beyond& file : strays.beyond) {
      Problem(file.path + " lies beyond the " + std::to_string(size) +
              " entries that the checkpoint signs");
    }
  }

  const VerifyOptions& options_;
  Key log_;
  std::vector<Key> witnesses_;
  std::vector<Earlier> earlier_;
  std::size_t next_earlier_ = 0;
  VerifyReport report_;
};

}  // namespace
}  // namespace verify

Result<VerifyReport> VerifyLog(const VerifyOptions& options) {
  if (options.vkeys.empty()) {
    return Error{
        Code::kInvalidArgument, "the log's verifier key is needed to verify it", {}, "vkeys"};
  }
  RINGFENCE_ASSIGN(verify::Key log, verify::ReadKey(options.vkeys.front()));
  if (log.algorithm != 1) {
    return Error{Code::kInvalidArgument,
                 "the first verifier key is a witness's: the log's must come first",
                 {},
                 "vkeys"};
  }
  std::vector<verify::Key> witnesses;
  for (std::size_t i = 1; i < options.vkeys.size(); ++i) {
    RINGFENCE_ASSIGN(verify::Key witness, verify::ReadKey(options.vkeys[i]));
    if (witness.algorithm != 4) {
      return Error{Code::kInvalidArgument,
                   "the key of " + witness.name + " is not a witness's",
                   {},
                   "vkeys"};
    }
    witnesses.push_back(std::move(witness));
  }
  if (!os::IsDirectory(options.folder)) {
    return Error{Code::kNotFound, "there is no log folder " + options.folder,
                 "give the folder that holds `checkpoint` and `tile`"};
  }
  return verify::LogCheck(options, std::move(log), std::move(witnesses)).Run();
}

}  // namespace ringfence::audit
