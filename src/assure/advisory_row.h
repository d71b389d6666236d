#pragma once

// One row of a bulletin (a product on a platform) against one version. A part of advisory_match.

#include <set>
#include <string>
#include <vector>

#include "assure/advisory_match.h"

namespace ringfence::assure {

// In which numbers the question was asked.
enum class Numbers { kDriver, kVgpu, kPlain };

// The branch of a driver: 535 of "535.183.01" on Linux, and of "538.67" on Windows.
std::uint32_t DriverBranch(const ProductVersion& version, bool windows);

// The branches that a row speaks of: by its label, and by the versions in it.
struct RowBranches {
  std::set<std::uint32_t> branches;
  std::uint32_t wrong_label = 0;  // a label that no version of the row bears out; 0: none
};
RowBranches BranchesOf(const BulletinRow& row, Numbers numbers);

// Numbers of Linux under a label of Windows: which of the two is meant, nobody can say.
bool MixesPlatforms(const BulletinRow& row);

struct RowVerdict {
  Verdict verdict = Verdict::kAmbiguous;
  std::string why;
};
RowVerdict JudgeRow(const BulletinRow& row, const VersionQuery& query, Numbers numbers);

std::string Quoted(const std::vector<std::string>& texts);

}  // namespace ringfence::assure
