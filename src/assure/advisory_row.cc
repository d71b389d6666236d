#include "assure/advisory_row.h"

#include <algorithm>
#include <array>

namespace ringfence::assure {
namespace {

// Branches whose Windows drivers run on above their number ("538.67" is of R535).
constexpr std::array<std::uint32_t, 32> kBranches = {
    340, 375, 384, 390, 396, 410, 418, 430, 435, 440, 445, 450, 455, 460, 465, 470,
    495, 510, 515, 520, 525, 530, 535, 545, 550, 555, 560, 565, 570, 575, 580, 590};

constexpr std::uint32_t kNumbersApart = 10;

const std::vector<ProductVersion>& FixesIn(const BulletinRow& row, Numbers numbers) {
  return numbers == Numbers::kVgpu ? row.vgpu_fixes : row.fixes;
}

const std::vector<VersionSpan>& SpansIn(const VersionText& text, Numbers numbers) {
  return numbers == Numbers::kVgpu ? text.vgpu_spans : text.spans;
}

bool OnWindows(const BulletinRow& row) {
  return (row.platform.families & kWindows) != 0 && (row.platform.families & kLinux) == 0;
}

// Whether two versions are of one numbering.
bool Like(const ProductVersion& version, const ProductVersion& bound, const VersionQuery& query,
          Numbers numbers) {
  if (numbers == Numbers::kDriver) {  // a driver's audio part has numbers of its own: 1.4.5.7
    return bound.numbered() && bound.first() >= 100;
  }
  const bool renumbered = query.product.known != nullptr &&
                          query.product.known->id == "gpu-operator";  // 1.11, then 22.9
  if (numbers == Numbers::kVgpu || renumbered || !bound.numbered() || !version.numbered() ||
      bound.first() == ProductVersion::kAny) {
    return true;
  }
  // Triton is 2.40 and 23.11 at once: of two numberings, one by the calendar, neither says anything
  // about the other.
  const std::uint32_t apart =
      std::max(version.first(), bound.first()) - std::min(version.first(), bound.first());
  return IsCalendar(version) == IsCalendar(bound) || apart <= kNumbersApart;
}

struct Reading {
  bool yes = false;
  bool loosely = false;
  bool below_all = true;
  bool unlike = false;
  bool after_last = false;  // later than a last affected version that is named as such
  bool any = false;
};

Reading ReadAffected(const BulletinRow& row, const VersionQuery& query, Numbers numbers) {
  Reading reading;
  for (const VersionText& text : row.affected) {
    for (const VersionSpan& span : SpansIn(text, numbers)) {
      reading.any = true;
      const bool like = (!span.low || Like(query.version, *span.low, query, numbers)) &&
                        (!span.high || Like(query.version, *span.high, query, numbers));
      const Holds holds = like ? Contains(span, query.version) : Holds::kUnlike;
      reading.yes = reading.yes || holds == Holds::kYes;
      reading.loosely = reading.loosely || holds == Holds::kLoosely;
      reading.unlike = reading.unlike || holds == Holds::kUnlike;
      reading.below_all = reading.below_all && holds == Holds::kBelow;
      const bool single = span.low && span.high && span.low->text == span.high->text;
      reading.after_last =
          reading.after_last || (holds == Holds::kNo && !single && span.high && span.high_included);
    }
  }
  return reading;
}

bool SameSeries(const ProductVersion& a, const ProductVersion& b) {
  const std::size_t count = std::min<std::size_t>(2, std::min(a.parts.size(), b.parts.size()));
  return count > 0 &&
         std::equal(a.parts.begin(), a.parts.begin() + static_cast<long>(count), b.parts.begin());
}

struct Fixes {
  bool reached = false;  // the version is at or after the fix of its series
  bool exactly = false;
  bool before_all = false;
  bool unlike = false;
  bool any = false;
};

Fixes ReadFixes(const BulletinRow& row, const VersionQuery& query, Numbers numbers) {
  Fixes fixes;
  const auto& all = FixesIn(row, numbers);
  std::size_t reached = 0;
  std::size_t like = 0;
  for (const ProductVersion& fix : all) {
    const auto order = Compare(query.version, fix);
    if (!Like(query.version, fix, query, numbers) || order == std::partial_ordering::unordered) {
      fixes.unlike = true;
      continue;
    }
    ++like;
    if (order >= 0) {
      ++reached;
      fixes.exactly = fixes.exactly || order == 0;
      fixes.reached = fixes.reached || all.size() == 1 || SameSeries(query.version, fix);
    }
  }
  fixes.any = like > 0;
  fixes.before_all = like > 0 && reached == 0;
  fixes.reached = fixes.reached || (like > 0 && reached == all.size());
  return fixes;
}

// The release that has the fix is, by its other number, called affected too.
bool VgpuContradicts(const BulletinRow& row) {
  for (const VersionText& text : row.affected) {
    for (const VersionSpan& span : text.vgpu_spans) {
      for (const ProductVersion& fix : row.vgpu_fixes) {
        if (Contains(span, fix) == Holds::kYes) {
          return true;
        }
      }
    }
  }
  return false;
}

bool Understood(const std::vector<VersionText>& texts) {
  return std::all_of(texts.begin(), texts.end(),
                     [](const VersionText& text) { return text.understood; });
}

RowVerdict Weigh(const BulletinRow& row, const Reading& affected, const Fixes& fixes,
                 Numbers numbers) {
  const std::string says = Quoted(row.affected_texts);
  const std::string fixed = Quoted(row.fixed_texts);
  const bool reached = fixes.reached && Understood(row.fixed);
  if (reached && affected.yes) {
    return {Verdict::kAmbiguous,
            "the bulletin calls it affected (" + says + ") and fixed (" + fixed + ") at once"};
  }
  if (affected.yes || (affected.loosely && !reached)) {
    return {Verdict::kAffected, "affected: " + says};
  }
  if (reached && fixes.exactly && numbers == Numbers::kDriver && VgpuContradicts(row)) {
    return {Verdict::kAmbiguous, "the bulletin calls the same vGPU release affected (" + says +
                                     ") and fixed (" + fixed + ")"};
  }
  if (reached) {
    return {Verdict::kFixed, "at or after the fix: " + fixed};
  }
  if (affected.unlike || fixes.unlike) {
    return {Verdict::kAmbiguous,
            "the bulletin counts versions in another way (" + says + "; " + fixed + ")"};
  }
  if (affected.after_last && fixes.before_all) {
    return {Verdict::kAffected, "earlier than the fix (" + fixed + "), though later than " + says};
  }
  if (affected.any && affected.below_all) {
    return {Verdict::kNotAffected, "earlier than the first affected version: " + says};
  }
  if (!fixes.any) {
    return {Verdict::kAmbiguous, "not among the versions called affected (" + says +
                                     "), and no fixed version is named" +
                                     (fixed.empty() ? "" : " (" + fixed + ")")};
  }
  return {Verdict::kAmbiguous, "neither among the versions called affected (" + says +
                                   ") nor at the fix (" + fixed + ")"};
}

}  // namespace

std::string Quoted(const std::vector<std::string>& texts) {
  std::string out;
  for (const std::string& text : texts) {
    out += (out.empty() ? "\"" : ", \"") + text + "\"";
  }
  return out;
}

std::uint32_t DriverBranch(const ProductVersion& version, bool windows) {
  const std::uint32_t first = version.first();
  if (!windows || first < kBranches.front()) {
    return first;
  }
  if (first >= kBranches.back() + 5) {  // newer than what is known here
    return first - first % 5;
  }
  const auto above = std::upper_bound(kBranches.begin(), kBranches.end(), first);
  return *(above - 1);
}

bool MixesPlatforms(const BulletinRow& row) {
  if (!OnWindows(row) || row.platform.text.find("zure") != std::string::npos) {
    return false;
  }
  const auto three = [](const ProductVersion& version) {
    return version.first() >= 100 && version.parts.size() >= 3;
  };
  bool mixes = std::any_of(row.fixes.begin(), row.fixes.end(), three);
  for (const VersionText& text : row.affected) {
    for (const VersionSpan& span : text.spans) {
      mixes = mixes || (span.high && three(*span.high)) || (span.low && three(*span.low));
    }
  }
  return mixes;
}

RowBranches BranchesOf(const BulletinRow& row, Numbers numbers) {
  RowBranches result;
  const bool windows = OnWindows(row);
  const auto branch = [numbers, windows](const ProductVersion& version) {
    return numbers == Numbers::kVgpu ? version.first() : DriverBranch(version, windows);
  };
  for (const ProductVersion& fix : FixesIn(row, numbers)) {
    result.branches.insert(branch(fix));
  }
  for (const VersionText& text : row.affected) {
    for (const VersionSpan& span : SpansIn(text, numbers)) {
      if (span.high) {
        result.branches.insert(branch(*span.high));
      }
    }
  }
  const auto label = numbers == Numbers::kVgpu ? row.platform.vgpu : row.platform.branch;
  if (!label) {
    return result;
  }
  if (result.branches.empty() || result.branches.contains(*label)) {
    result.branches.insert(*label);
  } else {
    result.wrong_label = *label;
  }
  return result;
}

RowVerdict JudgeRow(const BulletinRow& row, const VersionQuery& query, Numbers numbers) {
  if (!Understood(row.affected)) {
    return {Verdict::kAmbiguous, "the text " + Quoted(row.affected_texts) + " is not understood"};
  }
  if (numbers != Numbers::kPlain && MixesPlatforms(row)) {
    return {Verdict::kAmbiguous, "the row \"" + row.platform.text +
                                     "\" has the version numbers of another platform (" +
                                     Quoted(row.fixed_texts) + ")"};
  }
  if (!row.component.empty() && query.product.component != row.component) {
    return {Verdict::kAmbiguous, "the bulletin speaks of its " + row.component +
                                     ": ask with --product \"" + query.product.name + " " +
                                     row.component + "\""};
  }
  const Reading affected = ReadAffected(row, query, numbers);
  const Fixes fixes = ReadFixes(row, query, numbers);
  for (const VersionText& text : row.unaffected) {
    for (const VersionSpan& span : SpansIn(text, numbers)) {
      if (text.understood && Contains(span, query.version) == Holds::kYes && !affected.yes) {
        return {Verdict::kNotAffected, "the bulletin lists it as not affected"};
      }
    }
  }
  if (row.investigated && !affected.yes && !fixes.reached) {
    return {Verdict::kAmbiguous, "still under investigation when the bulletin was published"};
  }
  return Weigh(row, affected, fixes, numbers);
}

}  // namespace ringfence::assure
