#include "isolate/names.h"

#include <algorithm>

namespace ringfence::isolate {
namespace {

constexpr std::size_t kVariableNameBytesMax = 128;

bool IsLetter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }
bool IsDigit(char c) { return c >= '0' && c <= '9'; }

}  // namespace

bool IsName(std::string_view text) {
  if (text.empty() || text.size() > kNameBytesMax || text[0] == '.' || text[0] == '-') {
    return false;
  }
  return std::all_of(text.begin(), text.end(), [](char c) {
    return IsLetter(c) || IsDigit(c) || c == '.' || c == '_' || c == '-';
  });
}

bool IsGpuUuid(std::string_view text) {
  if (text.size() < 5 || text.size() > kNameBytesMax ||
      !(text.starts_with("GPU-") || text.starts_with("MIG-"))) {
    return false;
  }
  return std::all_of(text.begin(), text.end(),
                     [](char c) { return IsLetter(c) || IsDigit(c) || c == '-'; });
}

bool IsVariableName(std::string_view text) {
  if (text.empty() || text.size() > kVariableNameBytesMax || IsDigit(text[0])) {
    return false;
  }
  return std::all_of(text.begin(), text.end(),
                     [](char c) { return IsLetter(c) || IsDigit(c) || c == '_'; });
}

}  // namespace ringfence::isolate
