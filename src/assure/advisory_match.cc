#include "assure/advisory_match.h"

#include <algorithm>

#include "assure/advisory_row.h"

namespace ringfence::assure {
namespace {

// A branch this much above the highest of a bulletin was begun after it.
constexpr std::uint32_t kDriverStep = 10;
constexpr std::uint32_t kVgpuStep = 2;

// What a question says about the platform.
struct PlatformQuery {
  std::string name;  // normal
  unsigned families = 0;
  std::uint32_t release = 0;  // of Windows; 0: any
};

bool PlatformMatches(const BulletinRow& row, const PlatformQuery& query) {
  const Platform& platform = row.platform;
  if (platform.families == 0 && query.families == 0) {  // both name a machine: "DGX A100"
    const std::string name = NormalName(platform.name);
    return query.name.empty() || name.empty() || name == "n a" || name.starts_with("all") ||
           name.find(query.name) != std::string::npos || query.name.find(name) != std::string::npos;
  }
  if (query.families == 0 || platform.families == 0) {
    return true;
  }
  if ((platform.families & query.families) == 0) {
    return false;
  }
  return query.release == 0 || platform.releases.empty() ||
         std::find(platform.releases.begin(), platform.releases.end(), query.release) !=
             platform.releases.end();
}

std::string BranchName(std::uint32_t branch, Numbers numbers) {
  return (numbers == Numbers::kVgpu ? "vGPU " : "R") + std::to_string(branch);
}

struct RowSaid {
  const BulletinRow* row;
  RowVerdict said;
};

// Rows of several editions: all of one mind, or the reader must say which is meant.
RowVerdict Combine(const std::vector<RowSaid>& rows) {
  const RowSaid* by_verdict[4] = {};
  for (const RowSaid& row : rows) {
    const RowSaid*& place = by_verdict[static_cast<std::size_t>(row.said.verdict)];
    place = place == nullptr ? &row : place;
  }
  const RowSaid* affected = by_verdict[static_cast<std::size_t>(Verdict::kAffected)];
  const RowSaid* ambiguous = by_verdict[static_cast<std::size_t>(Verdict::kAmbiguous)];
  const RowSaid* fixed = by_verdict[static_cast<std::size_t>(Verdict::kFixed)];
  const RowSaid* clean = by_verdict[static_cast<std::size_t>(Verdict::kNotAffected)];
  const RowSaid* good = fixed != nullptr ? fixed : clean;
  if (affected != nullptr && good != nullptr) {
    const auto named = [](const RowSaid& row) {
      return row.row->product + " on " + row.row->platform.text + " (" + row.said.why + ")";
    };
    return {Verdict::kAmbiguous, "it depends on the edition: affected as " + named(*affected) +
                                     ", not as " + named(*good)};
  }
  const RowSaid* decides = affected != nullptr ? affected : ambiguous != nullptr ? ambiguous : good;
  return decides->said;
}

void AddFixed(const BulletinRow& row, std::vector<std::string>& fixed) {
  for (const std::string& text : row.fixed_texts) {
    if (std::find(fixed.begin(), fixed.end(), text) == fixed.end()) {
      fixed.push_back(text);
    }
  }
}

std::string ConditionOf(const BulletinRow& row) {
  for (const VersionText& text : row.affected) {
    if (!text.condition.empty()) {
      return text.condition;
    }
  }
  return "";
}

}  // namespace

std::string_view Name(Verdict verdict) {
  switch (verdict) {
    case Verdict::kNotAffected:
      return "not_affected";
    case Verdict::kFixed:
      return "fixed";
    case Verdict::kAmbiguous:
      return "ambiguous";
    case Verdict::kAffected:
      return "affected";
  }
  return "ambiguous";
}

int SeverityRank(std::string_view severity) {
  return severity == "none"       ? 0
         : severity == "low"      ? 1
         : severity == "medium"   ? 2
         : severity == "critical" ? 4
                                  : 3;
}

struct RowFacts {
  RowNames names;
  RowBranches driver;
  RowBranches vgpu;
};

struct AdvisoryIndex::Facts {
  // [bulletin][flaw][row]
  std::vector<std::vector<std::vector<RowFacts>>> rows;
  struct Highest {
    std::uint32_t branch[2] = {0, 0};  // Linux and others, Windows
    std::uint32_t vgpu = 0;
  };
  std::vector<Highest> highest;  // [bulletin]
  struct Later {
    Timestamp published;
    const ProductVersion* fix;
  };
  std::map<std::uint32_t, std::vector<Later>> fixes[2];  // of a branch; Linux and others, Windows

  void AddRow(const Bulletin& bulletin, const BulletinRow& row, Highest& top) {
    const bool windows = (row.platform.families & (kWindows | kLinux)) == kWindows;
    const std::size_t os = windows ? 1 : 0;
    if (MixesPlatforms(row)) {
      return;
    }
    for (const ProductVersion& fix : row.fixes) {
      if (!fix.numbered() || fix.first() < 100 || fix.first() == ProductVersion::kAny) {
        continue;
      }
      const std::uint32_t branch = DriverBranch(fix, windows);
      top.branch[os] = std::max(top.branch[os], branch);
      fixes[os][branch].push_back({bulletin.first, &fix});
    }
    for (const ProductVersion& fix : row.vgpu_fixes) {
      top.vgpu = std::max(top.vgpu, fix.first());
    }
  }
};

AdvisoryIndex::AdvisoryIndex(const std::vector<Bulletin>& bulletins)
    : bulletins_(bulletins), facts_(std::make_unique<Facts>()) {
  for (const Bulletin& bulletin : bulletins_) {
    auto& flaws = facts_->rows.emplace_back();
    Facts::Highest& top = facts_->highest.emplace_back();
    for (const Flaw& flaw : bulletin.flaws) {
      auto& rows = flaws.emplace_back();
      for (const BulletinRow& row : flaw.rows) {
        rows.push_back(
            {NamesOf(row), BranchesOf(row, Numbers::kDriver), BranchesOf(row, Numbers::kVgpu)});
        facts_->AddRow(bulletin, row, top);
      }
    }
  }
}

AdvisoryIndex::~AdvisoryIndex() = default;

Result<VersionQuery> AdvisoryIndex::Ask(std::string_view product, std::string_view platform,
                                        std::string_view version) const {
  VersionQuery query;
  RINGFENCE_ASSIGN(query.product, ResolveProduct(product, bulletins_));
  query.platform = std::string(platform.substr(0, 128));
  auto parsed = ParseProductVersion(version);
  const Line line = query.product.line;
  const bool driver = line == Line::kDriver || line == Line::kGaming;
  if (!parsed || parsed->series ||
      (driver && (parsed->first() < 100 || parsed->parts.size() < 2)) ||
      (line == Line::kVgpu && parsed->parts.size() < 2)) {
    return Error{Code::kInvalidArgument,
                 "\"" + std::string(version.substr(0, 64)) + "\" is no version of that product",
                 driver                ? "a driver's version looks like 535.183.01"
                 : line == Line::kVgpu ? "give the driver's version (535.183.01) or the vGPU "
                                         "software's (16.6)"
                                       : "a version looks like 1.16.2"};
  }
  query.version = std::move(*parsed);
  return query;
}

namespace {

// One question to one bulletin; what needs all of its rows is looked up once.
class Asking {
 public:
  using Rows = std::vector<std::vector<RowFacts>>;

  Asking(const Bulletin& bulletin, const Rows& rows, const VersionQuery& query)
      : bulletin_(bulletin), rows_(rows), query_(query) {
    const Platform platform = ReadPlatform(query.platform);
    platform_.name = NormalName(platform.name);
    platform_.families = platform.families;
    platform_.release = platform.releases.empty() ? 0 : platform.releases.front();
    windows_ = (platform_.families & kWindows) != 0;
    numbers_ = query.product.line == Line::kPlain ? Numbers::kPlain
               : query.product.line == Line::kVgpu && query.version.first() < 100
                   ? Numbers::kVgpu
                   : Numbers::kDriver;
    branched_ = query.product.line == Line::kDriver || query.product.line == Line::kVgpu;
    branch_ =
        numbers_ == Numbers::kVgpu ? query.version.first() : DriverBranch(query.version, windows_);
  }

  struct Outside {  // what the index knows beyond this bulletin
    std::uint32_t highest = 0;
    bool later_fix_reached = false;
  };

  Numbers numbers() const { return numbers_; }
  bool windows() const { return windows_; }
  std::uint32_t branch() const { return branch_; }

  // False: the flaw is not listed for the product.
  bool Judge(std::size_t number, const Outside& outside, BulletinVerdict& result) {
    const Flaw& flaw = bulletin_.flaws[number];
    std::vector<std::size_t> listed;
    std::vector<std::size_t> here;
    for (std::size_t i = 0; i < flaw.rows.size(); ++i) {
      if (IsRowOf(flaw.rows[i], rows_[number][i].names, query_.product)) {
        listed.push_back(i);
        if (PlatformMatches(flaw.rows[i], platform_) ||
            (branched_ && MixesPlatforms(flaw.rows[i]))) {
          here.push_back(i);
        }
      }
    }
    if (listed.empty()) {
      return false;
    }
    result.bulletin = &bulletin_;
    result.flaw = &flaw;
    if (here.empty()) {
      result.verdict = Verdict::kNotAffected;
      result.why = "the bulletin lists it only for " + PlatformsOf(flaw, listed);
      return true;
    }
    std::vector<std::size_t> own = here;
    if (branched_) {
      std::erase_if(own, [&](std::size_t i) { return !IsOwn(number, i); });
    }
    if (own.empty()) {
      JudgeUnlisted(number, here, outside, result);
      return true;
    }
    std::vector<RowSaid> said;
    for (const std::size_t i : own) {
      const BulletinRow& row = flaw.rows[i];
      RowVerdict verdict = JudgeRow(row, query_, numbers_);
      if (BranchFacts(number, i).wrong_label == branch_ && branched_) {
        verdict = {Verdict::kAmbiguous, "the row is labelled \"" + row.platform.text +
                                            "\" but its versions are of another branch (" +
                                            Quoted(row.fixed_texts) + ")"};
      }
      said.push_back({&row, std::move(verdict)});
      AddFixed(row, result.fixed);
      result.condition = result.condition.empty() ? ConditionOf(row) : result.condition;
    }
    const RowVerdict combined = Combine(said);
    result.verdict = combined.verdict;
    result.why = combined.why;
    return true;
  }

 private:
  const RowBranches& BranchFacts(std::size_t flaw, std::size_t row) const {
    return numbers_ == Numbers::kVgpu ? rows_[flaw][row].vgpu : rows_[flaw][row].driver;
  }

  bool IsOwn(std::size_t flaw, std::size_t row) const {
    const RowBranches& branches = BranchFacts(flaw, row);
    return branches.branches.contains(branch_) || branches.wrong_label == branch_ ||
           branches.branches.empty() || MixesPlatforms(bulletin_.flaws[flaw].rows[row]);
  }

  static std::string PlatformsOf(const Flaw& flaw, const std::vector<std::size_t>& rows) {
    std::set<std::string> names;
    for (const std::size_t i : rows) {
      names.insert(flaw.rows[i].platform.name);
    }
    std::string out;
    for (const std::string& name : names) {
      out += (out.empty() ? "" : "; ") + name;
    }
    return out;
  }

  // Whether the bulletin lists the branch for any flaw of products of this line, and its last fix.
  void LookUpBranch() {
    if (looked_up_) {
      return;
    }
    looked_up_ = true;
    for (std::size_t f = 0; f < bulletin_.flaws.size(); ++f) {
      const auto& rows = bulletin_.flaws[f].rows;
      for (std::size_t i = 0; i < rows.size(); ++i) {
        if (!IsRowOfLine(rows_[f][i].names, query_.product.line) ||
            !PlatformMatches(rows[i], {platform_.name, platform_.families, 0}) ||
            !BranchFacts(f, i).branches.contains(branch_)) {
          continue;
        }
        branch_listed_ = true;
        const auto& fixes = numbers_ == Numbers::kVgpu ? rows[i].vgpu_fixes : rows[i].fixes;
        for (const ProductVersion& fix : fixes) {
          if (branch_fix_ == nullptr || Compare(fix, *branch_fix_) > 0) {
            branch_fix_ = &fix;
          }
        }
      }
    }
  }

  // No row of the flaw is of the version's branch.
  void JudgeUnlisted(std::size_t number, const std::vector<std::size_t>& here,
                     const Outside& outside, BulletinVerdict& result) {
    LookUpBranch();
    bool older = false;
    bool newer = false;
    for (const std::size_t i : here) {
      for (const std::uint32_t branch : BranchFacts(number, i).branches) {
        older = older || branch < branch_;
        newer = newer || branch > branch_;
      }
      AddFixed(bulletin_.flaws[number].rows[i], result.fixed);
    }
    result.other_branch = true;
    const std::string name = BranchName(branch_, numbers_);
    result.verdict = Verdict::kAmbiguous;
    if (newer && branch_listed_) {
      result.why = name +
                   " is listed in this bulletin for other flaws and not for this one; its "
                   "table may be incomplete";
    } else if (newer && older) {
      result.verdict = Verdict::kAffected;
      result.why = name + " gets no fix: older and newer branches than it are affected";
    } else if (newer) {
      result.why = name +
                   " is older than every branch that is listed, and earlier branches may be "
                   "affected too; it gets no fix";
    } else {
      JudgeNewer(name, outside, result);
    }
  }

  // The branch is newer than every one that the flaw is listed for.
  void JudgeNewer(const std::string& name, const Outside& outside, BulletinVerdict& result) {
    const std::uint32_t step = numbers_ == Numbers::kVgpu ? kVgpuStep : kDriverStep;
    if (branch_listed_) {
      if (branch_fix_ != nullptr && Compare(query_.version, *branch_fix_) >= 0) {
        result.verdict = Verdict::kNotAffected;
        result.why = "no version of " + name +
                     " is called affected, and this one has the "
                     "bulletin's own update of it (" +
                     branch_fix_->text + ")";
      } else {
        result.why = name +
                     " is listed in this bulletin for other flaws and not for this one, and "
                     "this version is earlier than the bulletin's update of it";
      }
    } else if (outside.highest != 0 && branch_ >= outside.highest + step) {
      result.verdict = Verdict::kFixed;
      result.why = name + " was begun after the bulletin: its newest fix was in " +
                   BranchName(outside.highest, numbers_);
    } else if (outside.later_fix_reached) {
      result.verdict = Verdict::kFixed;
      result.why = "of a newer branch (" + name +
                   "), and at or after a fix of that branch from a "
                   "later bulletin";
    } else {
      result.why = name +
                   " is newer than every branch that is listed, but near enough to have been "
                   "begun before the fix; the bulletin is silent about it";
    }
  }

  const Bulletin& bulletin_;
  const Rows& rows_;
  const VersionQuery& query_;
  PlatformQuery platform_;
  bool windows_ = false;
  Numbers numbers_ = Numbers::kPlain;
  bool branched_ = false;
  std::uint32_t branch_ = 0;
  bool looked_up_ = false;
  bool branch_listed_ = false;
  const ProductVersion* branch_fix_ = nullptr;
};

// The worst bulletin decides; of equals the latest.
void SortSaid(FlawVerdict& flaw) {
  std::stable_sort(flaw.said.begin(), flaw.said.end(),
                   [](const BulletinVerdict& a, const BulletinVerdict& b) {
                     return a.verdict != b.verdict ? a.verdict > b.verdict
                                                   : a.bulletin->first > b.bulletin->first;
                   });
  flaw.verdict = flaw.said.front().verdict;
  for (const BulletinVerdict& said : flaw.said) {
    if (said.flaw->score_tenths > flaw.score_tenths) {
      flaw.score_tenths = said.flaw->score_tenths;
      flaw.severity = said.flaw->severity;
    }
  }
}

}  // namespace

std::vector<FlawVerdict> AdvisoryIndex::Match(const VersionQuery& query) const {
  std::map<std::string_view, FlawVerdict> flaws;
  for (std::size_t b = 0; b < bulletins_.size(); ++b) {
    Asking asking(bulletins_[b], facts_->rows[b], query);
    const Facts::Highest& top = facts_->highest[b];
    const std::size_t os = asking.windows() ? 1 : 0;
    Asking::Outside outside;
    outside.highest = asking.numbers() == Numbers::kVgpu ? top.vgpu : top.branch[os];
    if (asking.numbers() == Numbers::kDriver) {
      const auto fixes = facts_->fixes[os].find(asking.branch());
      if (fixes != facts_->fixes[os].end()) {
        outside.later_fix_reached =
            std::any_of(fixes->second.begin(), fixes->second.end(), [&](const Facts::Later& fix) {
              return fix.published >= bulletins_[b].first && Compare(query.version, *fix.fix) >= 0;
            });
      }
    }
    for (std::size_t f = 0; f < bulletins_[b].flaws.size(); ++f) {
      BulletinVerdict said;
      if (asking.Judge(f, outside, said)) {
        FlawVerdict& flaw = flaws[bulletins_[b].flaws[f].cve];
        flaw.cve = bulletins_[b].flaws[f].cve;
        flaw.said.push_back(std::move(said));
      }
    }
  }
  std::vector<FlawVerdict> result;
  for (auto& [cve, flaw] : flaws) {
    SortSaid(flaw);
    result.push_back(std::move(flaw));
  }
  std::stable_sort(result.begin(), result.end(), [](const FlawVerdict& a, const FlawVerdict& b) {
    return a.verdict != b.verdict ? a.verdict > b.verdict : a.score_tenths > b.score_tenths;
  });
  return result;
}

}  // namespace ringfence::assure
