// `ringfence advisory match --inventory`

#include "assure/advisory_inventory.h"

#include <map>
#include <set>

#include "base/code.h"
#include "cli/advisory.h"
#include "cli/console.h"
#include "cli/human.h"
#include "cli/text.h"
#include "os/file.h"

namespace ringfence::cli {
namespace {

using assure::FlawVerdict;
using assure::InventoryItem;
using assure::Verdict;

// The answer for one product, platform and version; many nodes share it.
struct Answer {
  std::vector<FlawVerdict> flaws;
  Counts counts;
  std::string problem;  // why there is none; else empty
  bool trips = false;
};

class Answers {
 public:
  Answers(const assure::AdvisoryIndex& index, int rank) : index_(index), rank_(rank) {}

  const Answer& For(const InventoryItem& item) {
    const std::string key = item.product + '\n' + item.platform + '\n' + item.version;
    const auto [found, fresh] = answers_.try_emplace(key);
    Answer& answer = found->second;
    if (fresh) {
      const auto query = index_.Ask(item.product, item.platform, item.version);
      if (!query.has_value()) {
        answer.problem = query.error().message;
        answer.trips = rank_ != std::numeric_limits<int>::max();
      } else {
        answer.flaws = index_.Match(*query);
        answer.counts = CountOf(answer.flaws);
        answer.trips = Trips(answer.flaws, rank_);
      }
    }
    return answer;
  }

 private:
  const assure::AdvisoryIndex& index_;
  int rank_;
  std::map<std::string, Answer> answers_;
};

Json OpenFlaws(const Answer& answer) {
  JsonArray flaws;
  for (const FlawVerdict& flaw : answer.flaws) {
    if (flaw.verdict < Verdict::kAmbiguous) {
      continue;
    }
    const auto& said = flaw.said.front();
    JsonArray fixed;
    for (const std::string& text : said.fixed) {
      fixed.push_back(Json(text));
    }
    flaws.push_back(JsonObject{{"cve", flaw.cve},
                               {"verdict", std::string(Name(flaw.verdict))},
                               {"why", said.why},
                               {"severity", flaw.severity},
                               {"cvss", ScoreJson(flaw.score_tenths)},
                               {"bulletin", said.bulletin->id},
                               {"fixed", std::move(fixed)}});
  }
  return flaws;
}

Json ItemJson(const InventoryItem& item, const Answer& answer) {
  JsonObject object{{"node", item.node},
                    {"product", item.product},
                    {"platform", item.platform},
                    {"version", item.version}};
  if (!answer.problem.empty()) {
    object["problem"] = answer.problem;
    return object;
  }
  object["counts"] = CountsJson(answer.counts);
  object["open"] = OpenFlaws(answer);
  return object;
}

}  // namespace

Result<int> MatchInventory(Invocation& invocation, const Loaded& loaded, int rank) {
  const std::string file = invocation.parsed.Value("inventory").value_or("");
  RINGFENCE_ASSIGN(const std::string text, os::ReadText(file, assure::kInventoryBytesMax));
  RINGFENCE_ASSIGN(const auto items, assure::ParseInventory(text, file));
  const assure::AdvisoryIndex index(loaded.set.bulletins);
  Answers answers(index, rank);
  Console& console = invocation.console;
  Table table({"NODE", "PRODUCT", "VERSION", "AFFECTED", "AMBIGUOUS", "FIXED", "WORST"});
  JsonArray results;
  bool trips = DataTrips(loaded, rank);
  std::set<std::string> affected_nodes;
  std::set<std::string> nodes;
  for (const InventoryItem& item : items) {
    const Answer& answer = answers.For(item);
    trips = trips || answer.trips;
    nodes.insert(item.node);
    if (answer.counts.Of(Verdict::kAffected) > 0) {
      affected_nodes.insert(item.node);
    }
    if (!console.table()) {
      results.push_back(ItemJson(item, answer));
      continue;
    }
    const bool any = !answer.flaws.empty() && answer.flaws.front().verdict >= Verdict::kAmbiguous;
    table.Add({item.node, item.product, item.version,
               std::to_string(answer.counts.Of(Verdict::kAffected)),
               std::to_string(answer.counts.Of(Verdict::kAmbiguous)),
               std::to_string(answer.counts.Of(Verdict::kFixed)),
               !answer.problem.empty() ? answer.problem
               : any                   ? answer.flaws.front().cve
                                       : ""});
  }
  if (console.table()) {
    WarnOfData(console, loaded);
    table.Print(console);
    console.out() << affected_nodes.size() << " of " << Count(nodes.size(), "node")
                  << " affected\n";
  } else {
    console.Show(JsonObject{{"data", DataJson(loaded)},
                            {"nodes", nodes.size()},
                            {"affected_nodes", affected_nodes.size()},
                            {"results", std::move(results)}});
  }
  return trips ? kExitFindings : kExitOk;
}

}  // namespace ringfence::cli
