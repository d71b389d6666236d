// Goal: no text crashes the readers of rules and pipelines, the condition parser or the compiler.

#include <cstdint>
#include <string_view>

#include "sigma/matcher.h"
#include "sigma/pipeline.h"
#include "sigma/ruleset.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace ringfence::sigma;  // NOLINT(google-build-using-namespace): one short program
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  std::vector<Problem> problems;
  std::vector<Pipeline> pipelines;
  if (auto pipeline = Pipeline::Read(text, "fuzz.yml", problems)) {
    pipelines.push_back(std::move(*pipeline));
  }
  auto rules = ReadRules(text, "fuzz.yml", problems);
  const RuleSet set = MakeReady(std::move(rules), pipelines, problems);
  (void)ParseCondition(text.substr(0, kConditionBytesMax), {"a", "selection_b", "_c"});
  if (!set.rules.empty()) {
    const auto matcher = Matcher::Build(set);
    Matcher::Session session(*matcher);
    (void)session.Match(R"({"a":"b","EventID":1})");
  }
  return 0;
}
