#include "sigma/text.h"

#include <algorithm>
#include <cstring>

#include "sigma/fold_table.h"

namespace ringfence::sigma {
namespace {

std::uint32_t FoldCodePoint(std::uint32_t c) {
  const FoldRange* end = kFoldRanges + kFoldRangeCount;
  const FoldRange* range = std::lower_bound(
      kFoldRanges, end, c, [](const FoldRange& r, std::uint32_t value) { return r.last < value; });
  if (range == end || c < range->first || (c - range->first) % range->step != 0) {
    return c;
  }
  return static_cast<std::uint32_t>(static_cast<std::int64_t>(c) + range->delta);
}

// Bytes of the character that begins with `lead`; 1 for a byte that begins none.
std::size_t CharacterBytes(unsigned char lead) {
  return lead < 0xc0 ? 1 : lead < 0xe0 ? 2 : lead < 0xf0 ? 3 : 4;
}

char* Put(std::uint32_t c, char* out) {
  if (c < 0x80) {
    *out++ = static_cast<char>(c);
  } else if (c < 0x800) {
    *out++ = static_cast<char>(0xc0U | (c >> 6U));
    *out++ = static_cast<char>(0x80U | (c & 0x3fU));
  } else if (c < 0x10000) {
    *out++ = static_cast<char>(0xe0U | (c >> 12U));
    *out++ = static_cast<char>(0x80U | ((c >> 6U) & 0x3fU));
    *out++ = static_cast<char>(0x80U | (c & 0x3fU));
  } else {
    *out++ = static_cast<char>(0xf0U | (c >> 18U));
    *out++ = static_cast<char>(0x80U | ((c >> 12U) & 0x3fU));
    *out++ = static_cast<char>(0x80U | ((c >> 6U) & 0x3fU));
    *out++ = static_cast<char>(0x80U | (c & 0x3fU));
  }
  return out;
}

char LowerAscii(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + ('a' - 'A')) : c; }

char* FoldSlow(std::string_view text, char* out) {
  std::size_t i = 0;
  while (i < text.size()) {
    const auto lead = static_cast<unsigned char>(text[i]);
    const std::size_t bytes = CharacterBytes(lead);
    if (bytes == 1 || i + bytes > text.size()) {
      *out++ = LowerAscii(text[i++]);
      continue;
    }
    std::uint32_t c = lead & (0xffU >> (bytes + 1));
    for (std::size_t k = 1; k < bytes; ++k) {
      c = (c << 6U) | (static_cast<unsigned char>(text[i + k]) & 0x3fU);
    }
    const std::uint32_t folded = FoldCodePoint(c);
    if (folded == c) {
      std::memcpy(out, text.data() + i, bytes);
      out += bytes;
    } else {
      out = Put(folded, out);
    }
    i += bytes;
  }
  return out;
}

}  // namespace

// Eight bytes at a time while they are ASCII: the top bit of each sum says whether the byte is at
// least 'A', or more than 'Z'.
char* FoldInto(std::string_view text, char* out) {
  constexpr std::uint64_t kOnes = 0x0101010101010101ULL;
  constexpr std::uint64_t kTops = 0x8080808080808080ULL;
  const char* in = text.data();
  std::size_t i = 0;
  for (; i + 8 <= text.size(); i += 8) {
    std::uint64_t word = 0;
    std::memcpy(&word, in + i, 8);
    if ((word & kTops) != 0) {
      return FoldSlow(text.substr(i), out + i);
    }
    const std::uint64_t least = word + kOnes * (0x80 - 'A');
    const std::uint64_t more = word + kOnes * (0x80 - 'Z' - 1);
    word |= ((least & ~more & kTops) >> 2U);
    std::memcpy(out + i, &word, 8);
  }
  for (; i < text.size(); ++i) {
    if ((static_cast<unsigned char>(in[i]) & 0x80U) != 0) {
      return FoldSlow(text.substr(i), out + i);
    }
    out[i] = LowerAscii(in[i]);
  }
  return out + i;
}

void FoldTo(std::string_view text, std::string& out) {
  const std::size_t at = out.size();
  out.resize(at + text.size() + text.size() / 2 + 4);
  const char* end = FoldInto(text, out.data() + at);
  out.resize(static_cast<std::size_t>(end - out.data()));
}

std::string Fold(std::string_view text) {
  std::string out;
  FoldTo(text, out);
  return out;
}

Pattern Pattern::Literal(std::string_view text) {
  Pattern pattern;
  pattern.Add(Kind::kText, text);
  return pattern;
}

Pattern Pattern::Parse(std::string_view text) {
  Pattern pattern;
  std::string literal;
  const auto flush = [&] {
    pattern.Add(Kind::kText, literal);
    literal.clear();
  };
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (c == '\\' && i + 1 < text.size() &&
        (text[i + 1] == '*' || text[i + 1] == '?' || text[i + 1] == '\\')) {
      literal += text[++i];
    } else if (c == '*' || c == '?') {
      flush();
      pattern.Add(c == '*' ? Kind::kAny : Kind::kOne);
    } else {
      literal += c;
    }
  }
  flush();
  return pattern;
}

void Pattern::Add(Kind kind, std::string_view text) {
  if (kind == Kind::kText && text.empty()) {
    return;
  }
  if (!parts.empty() && parts.back().kind == kind && kind != Kind::kOne) {
    parts.back().text += text;
    return;
  }
  parts.push_back({kind, std::string(text)});
}

void Pattern::AnyBefore() {
  if (parts.empty() || parts.front().kind != Kind::kAny) {
    parts.insert(parts.begin(), Part{Kind::kAny});
  }
}

void Pattern::AnyAfter() { Add(Kind::kAny); }

bool Pattern::HasWildcard() const {
  return std::any_of(parts.begin(), parts.end(),
                     [](const Part& part) { return part.kind != Kind::kText; });
}

std::string Pattern::LiteralText() const {
  std::string text;
  for (const Part& part : parts) {
    text += part.text;
  }
  return text;
}

std::string Pattern::Text() const {
  std::string text;
  for (const Part& part : parts) {
    if (part.kind == Kind::kText) {
      for (const char c : part.text) {
        text += c == '*' || c == '?' ? std::string{'\\', c} : std::string{c};
      }
    } else {
      text += part.kind == Kind::kAny ? '*' : '?';
    }
  }
  return text;
}

Pattern Pattern::Folded() const {
  Pattern folded;
  for (const Part& part : parts) {
    folded.parts.push_back({part.kind, Fold(part.text)});
  }
  return folded;
}

namespace {

// How many bytes of `text` the part takes at `at`; npos where it does not fit there.
std::size_t Takes(const Pattern::Part& part, std::string_view text, std::size_t at) {
  if (part.kind == Pattern::Kind::kText) {
    return text.substr(at).starts_with(part.text) ? part.text.size() : std::string_view::npos;
  }
  if (at >= text.size()) {
    return std::string_view::npos;
  }
  return std::min(CharacterBytes(static_cast<unsigned char>(text[at])), text.size() - at);
}

}  // namespace

// The usual two-pointer walk: after a failure only the last * is tried one character further on,
// as an earlier one could not do better.
bool Matches(const Pattern& pattern, std::string_view text) {
  const auto& parts = pattern.parts;
  std::size_t part = 0;
  std::size_t at = 0;
  std::size_t star = parts.size();  // the last * passed; none yet
  std::size_t star_at = 0;
  while (part < parts.size() || at < text.size()) {
    if (part < parts.size() && parts[part].kind == Pattern::Kind::kAny) {
      if (part + 1 == parts.size()) {
        return true;
      }
      star = part++;
      star_at = at;
      continue;
    }
    if (part < parts.size()) {
      const std::size_t taken = Takes(parts[part], text, at);
      if (taken != std::string_view::npos) {
        at += taken;
        ++part;
        continue;
      }
    }
    if (star == parts.size() || star_at >= text.size()) {
      return false;
    }
    star_at +=
        std::min(CharacterBytes(static_cast<unsigned char>(text[star_at])), text.size() - star_at);
    // A literal after the * can only begin where it is found.
    if (parts[star + 1].kind == Pattern::Kind::kText) {
      star_at = text.find(parts[star + 1].text, star_at);
      if (star_at == std::string_view::npos) {
        return false;
      }
    }
    at = star_at;
    part = star + 1;
  }
  return true;
}

}  // namespace ringfence::sigma
