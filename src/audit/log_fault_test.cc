// Goal: whatever happens to the disk or to the process, opening the log again finds the old head
// or the new one, never anything else, and a head that was acknowledged is never lost.
// Method: a disk that fails its call number 0, 1, 2... until a run is clean, and that can then
// forget, tear or keep what was not synced, as a power cut does.

#include <gtest/gtest.h>

#include <random>
#include <set>

#include "audit/audit_test_util.h"
#include "audit/log_writer.h"
#include "audit/note.h"
#include "audit/verify.h"

namespace ringfence::audit {
namespace {

using testing::kOrigin;
using testing::Samples;
using testing::TempFolder;

const crypto::SigningKey& LogKey() {
  static const crypto::SigningKey key = testing::KeyOf(1);
  return key;
}

// What a power cut does to what was not synced.
enum class Cut { kKeepAll, kLoseAll, kTear, kMix };

// What happened on the disk, known outside the writer that owns it.
struct DiskState {
  int calls = 0;
  int fail_at = -1;
  bool dead = false;  // after the failure every call fails: the process is gone
  bool only_once = false;
  std::map<std::string, std::string> unsynced_content;  // path: what it durably held before
  std::set<std::string> unsynced_names;                 // files and folders that are new
  std::map<std::string, std::string> renamed_over;      // path: what it durably held before
  std::map<std::string, std::string> removed;           // path: content that may come back

  void PowerCut(Cut cut, unsigned seed) {
    std::mt19937 random(seed);
    const auto lose = [&] {
      return cut == Cut::kLoseAll || (cut == Cut::kMix && random() % 2 == 0);
    };
    for (const auto& [path, before] : removed) {
      if (lose() && std::filesystem::exists(std::filesystem::path(path).parent_path())) {
        testing::Spew(path, before);
      }
    }
    for (const auto& [path, before] : unsynced_content) {
      if (cut == Cut::kTear || lose()) {
        const std::string now = testing::Slurp(path);
        std::string torn = now.substr(0, random() % (now.size() + 1));
        torn.resize(random() % 2 == 0 ? torn.size() : now.size(), '\0');
        testing::Spew(path, torn);
      }
    }
    for (const auto& [path, before] : renamed_over) {
      if (lose()) {
        testing::Spew(path, before);
      }
    }
    for (const std::string& path : unsynced_names) {
      if (lose()) {
        std::filesystem::remove_all(path);
      }
    }
  }
};

class FaultyDisk final : public Disk {
 public:
  explicit FaultyDisk(DiskState& state) : state_(state) {}

  Result<bool> MakeDir(const std::string& path) override {
    RINGFENCE_TRY(Call());
    RINGFENCE_ASSIGN(const bool made, real_.MakeDir(path));
    if (made) {
      state_.unsynced_names.insert(path);
    }
    return made;
  }
  Status Write(const std::string& path, ByteView bytes) override {
    const bool is_new = !os::Exists(path);
    const std::string before = is_new ? "" : testing::Slurp(path);
    if (const Status status = Call(); !status.has_value()) {
      (void)real_.Write(path, bytes.first(bytes.size() / 2));  // a full disk: half of it
      Note(path, before, is_new);
      return status;
    }
    RINGFENCE_TRY(real_.Write(path, bytes));
    Note(path, before, is_new);
    return {};
  }
  Status SyncFile(const std::string& path) override {
    RINGFENCE_TRY(Call());
    state_.unsynced_content.erase(path);
    return {};
  }
  Status SyncDir(const std::string& path) override {
    RINGFENCE_TRY(Call());
    const auto inside = [&](const std::string& name) {
      return name.substr(0, name.find_last_of('/')) == path;
    };
    std::erase_if(state_.unsynced_names, inside);
    std::erase_if(state_.renamed_over, [&](const auto& item) { return inside(item.first); });
    std::erase_if(state_.removed, [&](const auto& item) { return inside(item.first); });
    return {};
  }
  Status Rename(const std::string& from, const std::string& to) override {
    RINGFENCE_TRY(Call());
    if (os::Exists(to)) {
      state_.renamed_over.try_emplace(to, testing::Slurp(to));
    } else {
      state_.unsynced_names.insert(to);
    }
    state_.unsynced_names.erase(from);
    return real_.Rename(from, to);
  }
  Status RemoveTree(const std::string& path) override {
    RINGFENCE_TRY(Call());
    if (os::IsDirectory(path)) {
      for (const auto& [name, content] : testing::FilesOf(path)) {
        state_.removed[path + "/" + name] = content;
      }
    } else if (os::Exists(path)) {
      state_.removed[path] = testing::Slurp(path);
    }
    return real_.RemoveTree(path);
  }

 private:
  Status Call() {
    if (state_.calls++ == state_.fail_at) {
      state_.dead = !state_.only_once;
      return Error{Code::kUnavailable, "injected"};
    }
    return state_.dead ? Status(Error{Code::kUnavailable, "the process is gone"}) : Status();
  }
  void Note(const std::string& path, const std::string& before, bool is_new) {
    state_.unsynced_content.try_emplace(path, before);
    if (is_new) {
      state_.unsynced_names.insert(path);
    }
  }

  DiskState& state_;
  testing::HastyDisk real_;
};

VerifyReport Verify(const std::string& folder) {
  VerifyOptions options;
  options.folder = folder;
  options.vkeys = {VerifierKey(kOrigin, 1, LogKey().public_key())};
  options.settle = std::chrono::milliseconds(0);
  return VerifyLog(options).value();
}

std::string Explain(const VerifyReport& report) {
  std::string text;
  for (const BadRange& range : report.bad) {
    text += range.what + "; ";
  }
  for (const std::string& problem : report.problems) {
    text += problem + "; ";
  }
  return text;
}

constexpr std::uint64_t kBigSize = 10000;  // each accident copies all of it

struct Scenario {
  std::uint64_t old_size;
  std::uint64_t batch;
};

const TreeHead& HeadOf(std::uint64_t size) {
  static std::map<std::uint64_t, TreeHead> known;
  const auto [slot, is_new] = known.try_emplace(size);
  if (is_new) {
    slot->second = {size, testing::Mth(testing::LeavesOf(Samples(0, size)))};
  }
  return slot->second;
}

// Opens the log after the accident and checks all that must hold; then goes on with it.
void CheckRecovery(const std::string& folder, const Scenario& scenario, bool acknowledged,
                   const std::string& where) {
  const std::uint64_t new_size = scenario.old_size + scenario.batch;
  auto opened =
      TileLogWriter::Open(folder, kOrigin, LogKey(), std::make_unique<testing::HastyDisk>());
  ASSERT_TRUE(opened.has_value()) << where << ": " << opened.error().message;
  const auto writer = std::move(opened).value();
  const TreeHead head = writer->head();
  if (acknowledged) {
    ASSERT_EQ(head.size, new_size) << where << ": an acknowledged head is lost";
  }
  ASSERT_TRUE(head == HeadOf(scenario.old_size) || head == HeadOf(new_size)) << where;
  const VerifyReport found = Verify(folder);
  ASSERT_TRUE(found.ok) << where << ": " << Explain(found);
  if (scenario.old_size > kBigSize) {
    return;
  }
  // Other entries than those of the batch that was lost: no trace of it may remain.
  (void)writer->Append(Samples(10000, 3)).value();
  const VerifyReport after = Verify(folder);
  ASSERT_TRUE(after.ok) << where << ", after going on: " << Explain(after);
  ASSERT_EQ(after.size, head.size + 3);
}

// With `link`, full tiles are not copied but linked: nothing changes them.
void CopyLog(const std::string& from, const std::string& to, bool link) {
  for (const auto& item : std::filesystem::recursive_directory_iterator(from)) {
    const std::string path = std::filesystem::relative(item.path(), from);
    if (!item.is_regular_file()) {
      std::filesystem::create_directories(to + "/" + path);
    } else if (link && path.starts_with("tile/") && path.find(".p/") == std::string::npos) {
      std::filesystem::create_hard_link(item.path(), to + "/" + path);
    } else {
      std::filesystem::create_directories(to);
      std::filesystem::copy_file(item.path(), to + "/" + path);
    }
  }
}

// Copies `from`, opens it on a faulty disk, appends, cuts the power, and checks. False when no
// fault was reached any more.
bool OneAccident(const std::string& from, const Scenario& scenario, int fail_at, bool only_once,
                 Cut cut) {
  const TempFolder folder;
  const std::string log = folder.path() + "/log";
  CopyLog(from, log, scenario.old_size > kBigSize);
  DiskState state;
  state.fail_at = fail_at;
  state.only_once = only_once;
  bool acknowledged = false;
  {
    auto writer = TileLogWriter::Open(log, kOrigin, LogKey(), std::make_unique<FaultyDisk>(state));
    if (writer.has_value()) {
      const auto head = (*writer)->Append(Samples(scenario.old_size, scenario.batch));
      acknowledged = head.has_value();
      if (!acknowledged) {
        EXPECT_EQ((*writer)->Append(Samples(0, 1)).error().code, Code::kFailedPrecondition);
        EXPECT_EQ((*writer)->head(), HeadOf(scenario.old_size));
      }
    }
  }
  const bool reached = state.calls > fail_at;
  EXPECT_TRUE(acknowledged || reached);
  state.PowerCut(cut, static_cast<unsigned>(fail_at));
  CheckRecovery(log, scenario, acknowledged,
                std::to_string(scenario.old_size) + "+" + std::to_string(scenario.batch) +
                    " failing call " + std::to_string(fail_at) + " cut " +
                    std::to_string(static_cast<int>(cut)));
  return reached && !::testing::Test::HasFatalFailure();
}

class LogFaultTest : public ::testing::TestWithParam<Scenario> {};

TEST_P(LogFaultTest, EveryFailureLeavesTheOldHeadOrTheNewOne) {
  const Scenario scenario = GetParam();
  const TempFolder folder;
  // Grown one by one at the end, so that there are partial tiles to be superseded.
  {
    auto writer = TileLogWriter::Open(folder.path(), kOrigin, LogKey(),
                                      std::make_unique<testing::HastyDisk>())
                      .value();
    for (std::uint64_t size = 0; size < scenario.old_size;) {
      const std::uint64_t count = size + 3 < scenario.old_size ? scenario.old_size - 3 - size : 1;
      (void)writer->Append(Samples(size, count)).value();
      size += count;
    }
  }
  const bool is_big = scenario.old_size > kBigSize;
  for (const Cut cut : {Cut::kMix, Cut::kKeepAll, Cut::kLoseAll, Cut::kTear}) {
    for (const bool only_once : {false, true}) {
      if ((is_big && cut != Cut::kMix) || (only_once && cut != Cut::kKeepAll)) {
        continue;
      }
      int fail_at = 0;
      while (OneAccident(folder.path(), scenario, fail_at, only_once, cut)) {
        ++fail_at;
      }
      ASSERT_FALSE(HasFatalFailure());
      EXPECT_GE(fail_at, 10) << "write, sync, rename...: each failed once";
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Sizes, LogFaultTest,
                         ::testing::Values(Scenario{0, 1}, Scenario{0, 600}, Scenario{5, 1},
                                           Scenario{5, 600}, Scenario{250, 6}, Scenario{255, 1},
                                           Scenario{256, 1}, Scenario{511, 2}, Scenario{65530, 10}),
                         [](const auto& scenario) {
                           return std::to_string(scenario.param.old_size) + "plus" +
                                  std::to_string(scenario.param.batch);
                         });

TEST(LogFaultTest, RecoveryItselfMayBeInterruptedAnywhere) {
  const TempFolder folder;
  (void)TileLogWriter::Open(folder.path(), kOrigin, LogKey(),
                            std::make_unique<testing::HastyDisk>())
      .value()
      ->Append(Samples(0, 5))
      .value();
  // A batch whose last step, the checkpoint's rename, failed: everything lies beyond.
  const Scenario scenario{5, 600};
  const TempFolder crashed;
  std::filesystem::copy(folder.path(), crashed.path() + "/log",
                        std::filesystem::copy_options::recursive);
  for (int fail_at = 0;; ++fail_at) {
    DiskState state;
    state.fail_at = fail_at;
    auto writer = TileLogWriter::Open(crashed.path() + "/log", kOrigin, LogKey(),
                                      std::make_unique<FaultyDisk>(state));
    if (!writer.has_value()) {
      continue;
    }
    ASSERT_FALSE((*writer)->Append(Samples(5, 600)).has_value());
    if (os::Exists(crashed.path() + "/log/checkpoint.new")) {
      break;
    }
  }
  int fail_at = 0;
  while (OneAccident(crashed.path() + "/log", scenario, fail_at, false, Cut::kMix)) {
    ++fail_at;
  }
  EXPECT_GE(fail_at, 20);
}

// The process dies between a step and its sync, and is started again; only then the power goes.
TEST(LogFaultTest, WhatOpenAnnouncesSurvivesAPowerCut) {
  bool had_new_head = false;
  for (int fail_at = 0;; ++fail_at) {
    const TempFolder folder;
    DiskState state;
    const auto open = [&] {
      return TileLogWriter::Open(folder.path(), kOrigin, LogKey(),
                                 std::make_unique<FaultyDisk>(state));
    };
    (void)open().value()->Append(Samples(0, 5)).value();
    state.calls = 0;
    state.fail_at = fail_at;
    bool acknowledged = false;
    if (auto writer = open(); writer.has_value()) {
      acknowledged = (*writer)->Append(Samples(5, 4)).has_value();
    }
    state.dead = false;
    state.fail_at = -1;
    const TreeHead announced = open().value()->head();
    had_new_head = had_new_head || (!acknowledged && announced == HeadOf(9));
    state.PowerCut(Cut::kLoseAll, 0);
    ASSERT_EQ(open().value()->head(), announced) << fail_at;
    if (acknowledged) {
      break;
    }
  }
  EXPECT_TRUE(had_new_head) << "the case that this is about did not come up";
}

TEST(LogFaultTest, AnInterruptedFirstOpenCanBeRepeated) {
  for (int fail_at = 0;; ++fail_at) {
    ASSERT_LT(fail_at, 100);
    const TempFolder folder;
    DiskState state;
    state.fail_at = fail_at;
    const bool opened =
        TileLogWriter::Open(folder.path(), kOrigin, LogKey(), std::make_unique<FaultyDisk>(state))
            .has_value();
    state.PowerCut(Cut::kMix, static_cast<unsigned>(fail_at));
    const auto again = LogWriter::Open(folder.path(), kOrigin, LogKey());
    ASSERT_TRUE(again.has_value()) << again.error().message;
    EXPECT_EQ((*again)->head().size, 0U);
    if (opened) {
      break;
    }
  }
}

TEST(LogFaultTest, AFailedCosignatureChangesNothing) {
  const crypto::SigningKey witness = testing::KeyOf(7);
  for (int fail_at = 0;; ++fail_at) {
    const TempFolder folder;
    DiskState state;
    auto writer =
        TileLogWriter::Open(folder.path(), kOrigin, LogKey(), std::make_unique<FaultyDisk>(state))
            .value();
    (void)writer->Append(Samples(0, 2)).value();
    state.only_once = true;
    state.calls = 0;
    state.fail_at = fail_at;
    const std::string line =
        Cosign(writer->checkpoint(), "w.test/1", witness, Timestamp(std::chrono::seconds(1)));
    const bool added = writer->AddCosignature(line).has_value();
    state.fail_at = -1;
    EXPECT_EQ(writer->Append(Samples(2, 1)).value(), HeadOf(3));
    writer.reset();
    EXPECT_TRUE(Verify(folder.path()).ok);
    if (added) {
      EXPECT_EQ(fail_at, 4) << "write, sync, rename, sync: each failed once";
      break;
    }
  }
}

}  // namespace
}  // namespace ringfence::audit
