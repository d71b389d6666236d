// Goal: no event crashes the matcher, and it always agrees with the plain one. The input is rules,
// a line of ===, and events a line each; where the first part is no rule, fixed ones are used.
// Each event comes three times: values that were seen before are answered from memory.

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "sigma/matcher.h"
#include "sigma/plain.h"
#include "sigma/ruleset.h"

namespace {

using namespace ringfence::sigma;  // NOLINT(google-build-using-namespace): one short program

constexpr std::string_view kFixed = R"(title: Fixed
logsource: {product: p}
detection:
    a: {F|contains: [ab, 'c*d', abcde], G|endswith: '\x'}
    b: {F|re: 'a+b', H|gt: 5}
    c: [word, 'two words']
    d: {F: null, 'G|cased': Xy}
    e: {F|fieldref: G, 'H|cidr': '10.0.0.0/8'}
    condition: 1 of them
---
title: Other
logsource: {product: p}
detection:
    a: {F|startswith: '?b', a.b: 'x*'}
    condition: not a and a
---
title: Third
logsource: {product: p}
detection:
    a: {F: 'x?y', G|exists: false}
    b: ['|', é]
    condition: a or not b
)";

RuleSet SetOf(std::string_view text) {
  std::vector<Problem> problems;
  auto rules = ReadRules(text, "fuzz.yml", problems);
  return MakeReady(std::move(rules), {}, problems);
}

void Require(bool condition) {
  if (!condition) {
    std::abort();
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  std::string_view text(reinterpret_cast<const char*>(data), size);
  const std::size_t cut = text.find("\n===\n");
  RuleSet set;
  if (cut != std::string_view::npos) {
    set = SetOf(text.substr(0, cut));
    text.remove_prefix(cut + 5);
  }
  if (set.rules.empty()) {
    set = SetOf(kFixed);
  }
  const auto matcher = Matcher::Build(set);
  Matcher::Session session(*matcher);
  for (int lines = 0; !text.empty() && lines < 64; ++lines) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    std::vector<std::uint32_t> first;
    for (int again = 0; again < 2; ++again) {
      const auto one = session.Match(line);
      first = one.has_value() ? **one : std::vector<std::uint32_t>();
    }
    const auto fast = session.Match(line);
    Require(!fast.has_value() || **fast == first);
    const auto json = ringfence::ParseJson(line, kEventBytesMax);
    if (!fast.has_value() || !json.has_value()) {
      continue;  // what each refuses differs a little: depth, numbers beyond 64 bits
    }
    std::size_t next = 0;
    for (std::uint32_t i = 0; i < set.rules.size(); ++i) {
      const bool in_fast = next < (*fast)->size() && (**fast)[next] == i;
      next += in_fast ? 1 : 0;
      Require(in_fast == PlainMatches(set.rules[i], *json));
    }
  }
  return 0;
}
