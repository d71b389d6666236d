#include "sigma/announce.h"

#include <re2/filtered_re2.h>

#include <algorithm>
#include <charconv>

#include "sigma/text.h"

namespace ringfence::sigma {
namespace {

// Texts that very many events have. A literal that is part of one says little.
bool IsCommon(std::string_view literal) {
  static constexpr std::string_view kCommon[] = {
      "c:\\windows\\system32\\",
      "c:\\windows\\syswow64\\",
      "c:\\program files (x86)\\",
      "c:\\program files\\",
      "c:\\users\\",
      "\\appdata\\local\\temp\\",
      "\\appdata\\roaming\\",
      "c:\\programdata\\",
      "microsoft corporation",
      "nt authority\\system",
      "\\desktop\\",
      "\\downloads\\",
      "hklm\\software\\microsoft\\windows\\currentversion\\",
      "\\cmd.exe",
      "\\powershell.exe",
      "https://",
      "http://www.",
      "/usr/bin/bash",
      "/usr/sbin/",
      "/usr/lib/",
      "/home/",
      "/tmp/",
      ".dll",
      ".txt",
      ".com",
      "root",
      "system",
      "high",
      "medium",
      "explorer.exe",
      "operating system",
      "true",
      "false"};
  return std::any_of(std::begin(kCommon), std::end(kCommon), [&](std::string_view text) {
    return text.find(literal) != std::string_view::npos;
  });
}

constexpr double kCommonShare = 0.3;
constexpr std::size_t kListMost = 64;  // literals that announce one expression

double ShareOfAll(const std::vector<std::string>& literals) {
  double share = 0;
  for (const std::string& literal : literals) {
    share += ShareOf(literal);
  }
  return share;
}

// The least met of: one literal that is always there, all literals of which one is.
void Improve(const std::string& regex, int length_least, std::vector<std::string>& best,
             double& best_share) {
  re2::FilteredRE2 filter(length_least);
  int id = 0;
  std::vector<std::string> literals;
  if (filter.Add(regex, RE2::Options(RE2::Quiet), &id) != RE2::NoError) {
    return;
  }
  filter.Compile(&literals);
  const bool ascii = std::all_of(literals.begin(), literals.end(), [](const std::string& text) {
    return !text.empty() && std::all_of(text.begin(), text.end(), [](char c) {
      return static_cast<unsigned char>(c) < 0x80;
    });
  });
  if (literals.empty() || literals.size() > kListMost || !ascii) {
    return;
  }
  const auto offer = [&](std::vector<std::string> list) {
    const double share = ShareOfAll(list);
    if (best.empty() || share < best_share) {
      best = std::move(list);
      best_share = share;
    }
  };
  const auto passes = [&](const std::vector<int>& found) {
    std::vector<int> passed;
    filter.AllPotentials(found, &passed);
    return !passed.empty();
  };
  if (passes({})) {
    return;
  }
  for (std::size_t i = 0; i < literals.size(); ++i) {
    std::vector<int> others;
    for (std::size_t k = 0; k < literals.size(); ++k) {
      if (k != i) {
        others.push_back(static_cast<int>(k));
      }
    }
    if (!passes(others)) {
      offer({literals[i]});
    }
  }
  offer(std::move(literals));
}

}  // namespace

double ShareOf(std::string_view literal) {
  if (IsCommon(literal)) {
    return kCommonShare;
  }
  if (literal.size() == 1) {
    constexpr std::string_view kRare = "`^{}<>|~$;&!@#[]";
    return kRare.find(literal[0]) != std::string_view::npos ? 0.03 : kCommonShare;
  }
  return literal.size() >= 10  ? 0.0005
         : literal.size() >= 6 ? 0.002
         : literal.size() >= 4 ? 0.01
                               : 0.1;
}

std::vector<std::string> Announcers(const std::string& regex) {
  std::vector<std::string> best;
  double share = 0;
  for (const int length_least : {3, 2, 1}) {
    Improve(regex, length_least, best, share);
  }
  for (std::string& literal : best) {
    literal = Fold(literal);
  }
  return best;
}

std::size_t LeastBytes(std::string_view regex) {
  constexpr std::string_view kBegin = ".{";  // as in .{1000,}
  constexpr std::string_view kEnd = ",}";
  if (!regex.starts_with(kBegin) || !regex.ends_with(kEnd)) {
    return 0;
  }
  const std::string_view digits =
      regex.substr(kBegin.size(), regex.size() - kBegin.size() - kEnd.size());
  std::size_t least = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), least);
  return error == std::errc() && end == digits.data() + digits.size() ? least : 0;
}

}  // namespace ringfence::sigma
