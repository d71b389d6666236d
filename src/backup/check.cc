#include "backup/check.h"

#include <algorithm>

#include "audit/entry.h"
#include "audit/verify_note.h"
#include "audit/verify_tree.h"
#include "base/encoding.h"
#include "os/file.h"

namespace ringfence::backup {
namespace {

namespace verify = audit::verify;

constexpr std::size_t kProblemsMax = 20;
constexpr std::size_t kKeyFileBytesMax = 256;
constexpr std::size_t kNodeBytesMax = std::size_t{1} << 20U;
constexpr std::size_t kWitnessesMax = 64;

// The root of what has been added so far; memory for 64 hashes.
class GrowingTree {
 public:
  void Add(ByteView entry) {
    Digest hash = verify::HashEntry(entry);
    std::size_t height = 0;
    for (; ((size_ >> height) & 1U) != 0; ++height) {
      hash = verify::HashPair(peaks_[height], hash);
    }
    peaks_[height] = hash;
    ++size_;
  }
  std::uint64_t size() const { return size_; }
  Digest Root() const {
    bool any = false;
    Digest root = verify::RootOfNothing();
    for (std::size_t height = 0; height < peaks_.size(); ++height) {
      if (((size_ >> height) & 1U) != 0) {
        root = any ? verify::HashPair(peaks_[height], root) : peaks_[height];
        any = true;
      }
    }
    return root;
  }

 private:
  std::array<Digest, 64> peaks_{};
  std::uint64_t size_ = 0;
};

// A head that the entries must lead to.
struct Claim {
  std::string name;
  std::uint64_t size = 0;
  Digest root{};
  bool own = false;  // the backup's own checkpoint
};

class Checker final : public Visitor {
 public:
  explicit Checker(const std::vector<KnownCheckpoint>& known) : known_(known) {}

  Status Begin(const About& about) override {
    const auto key = verify::ReadKey(about.vkey);
    auto note = verify::ReadNote(about.checkpoint);
    if (!key.has_value() || !note.has_value() || note->origin != about.origin) {
      return Error{Code::kCorrupt, "the backup's checkpoint or log key is not one"};
    }
    log_key_ = key->key;
    if (const Status status = verify::CheckSigned(*note, *key); !status.has_value()) {
      Problem("checkpoint: " + status.error().message);
    }
    claims_.push_back({"its own checkpoint", note->size, note->root, true});
    for (const KnownCheckpoint& one : known_) {
      TakeKnown(one, *key);
    }
    std::sort(claims_.begin(), claims_.end(),
              [](const Claim& a, const Claim& b) { return a.size < b.size; });
    note_ = std::move(note).value();
    Compare();
    return {};
  }

  Status File(std::string_view part, const FileHead& head) override {
    in_log_key_ = part == kKeysPart && head.path == "log.key";
    has_log_key_ = has_log_key_ || in_log_key_;
    return {};
  }

  Status Piece(ByteView bytes) override {
    if (!in_log_key_) {
      return {};
    }
    in_log_key_ = false;
    const auto key = ParseLogKey(SecretBytes(bytes));
    if (!key.has_value() || !log_key_.has_value() || !(key->public_key() == *log_key_)) {
      Problem("keys: log.key is not the key that signed the checkpoint");
    }
    return {};
  }

  Status Row(const store::TableSpec& table, const std::vector<std::string_view>& columns,
             const store::Row& row) override {
    if (table.name != "nodes" || witnesses_.size() >= kWitnessesMax) {
      return {};
    }
    for (std::size_t i = 0; i < columns.size(); ++i) {
      const auto* text = std::get_if<std::string>(&row[i]);
      if (columns[i] == "record" && text != nullptr) {
        TakeWitness(*text);
      }
    }
    return {};
  }

  Status Entry(std::uint64_t index, ByteView entry) override {
    if (const auto parsed = audit::Entry::Parse(entry); !parsed.has_value()) {
      Problem("entry " + std::to_string(index) + " is not one: " + parsed.error().message);
    }
    tree_.Add(entry);
    Compare();
    return {};
  }

  CheckReport Finish(Manifest manifest) {
    for (; next_ < claims_.size(); ++next_) {
      const Claim& claim = claims_[next_];
      report_.rollback = report_.rollback || !claim.own;
      Problem((claim.own ? "it lacks entries: " : "rollback: ") + std::string("the backup has ") +
              std::to_string(tree_.size()) + " entries, but " + claim.name + " signs " +
              std::to_string(claim.size));
    }
    if (!has_log_key_) {
      Problem("keys: log.key is missing");
    }
    if (note_.size != manifest.log_size || Base64(note_.root) != manifest.log_root) {
      Problem("its manifest names another head than its checkpoint");
    }
    report_.manifest = std::move(manifest);
    report_.witnesses = witnesses_;
    report_.ok = report_.problems.empty();
    return std::move(report_);
  }

 private:
  void Problem(std::string what) {
    if (report_.problems.size() < kProblemsMax) {
      report_.problems.push_back(std::move(what));
    }
  }

  void TakeKnown(const KnownCheckpoint& one, const verify::Key& key) {
    const auto note = verify::ReadNote(one.note);
    const Status status = note.has_value() ? verify::CheckSigned(*note, key) : Status(note.error());
    if (!status.has_value()) {
      Problem(one.name + " is not a checkpoint of this log: " + status.error().message);
      return;
    }
    claims_.push_back({one.name, note->size, note->root, false});
  }

  // Those of the claims whose size the tree has now reached.
  void Compare() {
    for (; next_ < claims_.size() && claims_[next_].size == tree_.size(); ++next_) {
      const Claim& claim = claims_[next_];
      if (tree_.Root() == claim.root) {
        continue;
      }
      report_.fork = report_.fork || !claim.own;
      Problem((claim.own ? "damage: the first " : "fork: the first ") + std::to_string(claim.size) +
              " entries are not those that " + claim.name + " signs");
    }
  }

  void TakeWitness(const std::string& record) {
    const auto json = ParseJson(record, kNodeBytesMax);
    const Json* vkey = json.has_value() && json->is_object()
                           ? json->get_object().if_contains("witness_vkey")
                           : nullptr;
    if (vkey == nullptr || !vkey->is_string()) {
      return;
    }
    const auto key = verify::ReadKey(std::string(vkey->get_string()));
    if (!key.has_value()) {
      return;
    }
    if (const auto time = verify::CheckCosigned(note_, *key); time.has_value()) {
      witnesses_.push_back(key->name + " at " + FormatTime(*time));
    }
  }

  const std::vector<KnownCheckpoint>& known_;
  verify::Note note_;
  std::optional<crypto::PublicKey> log_key_;
  std::vector<Claim> claims_;  // by size
  std::size_t next_ = 0;
  GrowingTree tree_;
  bool in_log_key_ = false;
  bool has_log_key_ = false;
  std::vector<std::string> witnesses_;
  CheckReport report_;
};

}  // namespace

Result<CheckReport> Check(SealedReader& reader, const std::vector<KnownCheckpoint>& known,
                          const Progress& progress) {
  Checker checker(known);
  RINGFENCE_ASSIGN(Manifest manifest, Walk(reader, checker, progress));
  return checker.Finish(std::move(manifest));
}

Result<crypto::SigningKey> ParseLogKey(const SecretBytes& text) {
  auto seed = FromBase64(AsText(text.Reveal()));
  if (!seed.has_value()) {
    return Error{Code::kCorrupt, "the log's key is damaged"};
  }
  return crypto::SigningKey::FromSeed(SecretBytes(std::move(seed).value()));
}

Result<crypto::SigningKey> ReadLogKey(const std::string& path) {
  RINGFENCE_ASSIGN(Bytes text, os::ReadFile(path, kKeyFileBytesMax));
  return ParseLogKey(SecretBytes(std::move(text)));
}

}  // namespace ringfence::backup
