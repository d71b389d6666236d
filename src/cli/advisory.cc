// `ringfence advisory ...`: NVIDIA's security bulletins, offline.

#include "cli/advisory.h"

#include "assure/advisory_match.h"
#include "base/code.h"
#include "cli/commands.h"
#include "cli/console.h"
#include "cli/human.h"
#include "cli/suggest.h"
#include "cli/text.h"
#include "os/file.h"

namespace ringfence::cli {

using assure::Bulletin;
using assure::BulletinVerdict;
using assure::FlawVerdict;
using assure::Verdict;

std::string DateOf(Timestamp time) { return FormatTime(time).substr(0, 10); }

std::string ScoreText(int tenths) {
  return tenths < 0 ? "" : std::to_string(tenths / 10) + "." + std::to_string(tenths % 10);
}

Json ScoreJson(int tenths) {
  return tenths < 0 ? Json(nullptr) : Json(static_cast<double>(tenths) / 10.0);
}

Result<Loaded> LoadFor(Invocation& invocation) {
  const auto folder = invocation.parsed.Value("csaf");
  if (!folder) {
    return Error{
        Code::kInvalidArgument, "--csaf is missing",
        "name the folder with the bulletins: a copy of github.com/NVIDIA/product-security"};
  }
  auto set = assure::LoadBulletins(*folder);
  if (!set.has_value()) {
    return Prefix("--csaf", set.error());
  }
  Loaded loaded;
  loaded.set = std::move(*set);
  if (loaded.set.bulletins.empty()) {
    return Error{Code::kNotFound,
                 *folder + ": no CSAF 2.0 bulletin" +
                     (loaded.set.problems.empty() ? "" : "; " + loaded.set.problems.front()),
                 "name the folder with the bulletins: their *.json may lie in folders below"};
  }
  loaded.now = invocation.clock.Now();
  if (const auto text = invocation.parsed.Value("now")) {
    const auto now = ParseTime(text->size() == 10 ? *text + "T00:00:00Z" : *text);
    if (!now.has_value()) {
      return Prefix("--now", now.error());
    }
    loaded.now = *now;
  }
  Milliseconds most = std::chrono::hours(24 * 90);
  if (const auto text = invocation.parsed.Value("max-age")) {
    const auto duration = ParseDuration(*text);
    if (!duration.has_value()) {
      return Prefix("--max-age", duration.error());
    }
    most = *duration;
  }
  for (const Bulletin& bulletin : loaded.set.bulletins) {
    loaded.newest = std::max(loaded.newest, bulletin.current);
  }
  loaded.stale = loaded.now - loaded.newest > most;
  loaded.most = most;
  return loaded;
}

Json DataJson(const Loaded& loaded) {
  JsonArray problems;
  for (const std::string& problem : loaded.set.problems) {
    problems.push_back(Json(problem));
  }
  const auto age = std::chrono::duration_cast<std::chrono::hours>(loaded.now - loaded.newest);
  return JsonObject{{"bulletins", loaded.set.bulletins.size()},
                    {"newest", DateOf(loaded.newest)},
                    {"age_days", std::max<std::int64_t>(0, age.count() / 24)},
                    {"stale", loaded.stale},
                    {"passed_over", loaded.set.passed_over},
                    {"problems", std::move(problems)}};
}

void WarnOfData(Console& console, const Loaded& loaded) {
  for (const std::string& problem : loaded.set.problems) {
    console.Warn("not used: " + problem);
  }
  if (loaded.stale) {
    console.Warn("the newest bulletin is of " + DateOf(loaded.newest) + ", more than " +
                 FormatDuration(loaded.most) +
                 " ago: flaws found since are not in here; fetch the bulletins again");
  }
}

Json SaidJson(const BulletinVerdict& said) {
  JsonArray fixed;
  for (const std::string& text : said.fixed) {
    fixed.push_back(Json(text));
  }
  JsonObject object{{"id", said.bulletin->id},
                    {"title", said.bulletin->title},
                    {"date", DateOf(said.bulletin->current)},
                    {"file", said.bulletin->file},
                    {"verdict", std::string(Name(said.verdict))},
                    {"why", said.why},
                    {"fixed", std::move(fixed)},
                    {"fixed_in_other_branches_only", said.other_branch}};
  if (!said.condition.empty()) {
    object["condition"] = said.condition;
  }
  return object;
}

Json FlawJson(const FlawVerdict& flaw) {
  const BulletinVerdict& first = flaw.said.front();
  JsonArray bulletins;
  for (const BulletinVerdict& said : flaw.said) {
    bulletins.push_back(SaidJson(said));
  }
  JsonObject object{{"cve", flaw.cve},
                    {"verdict", std::string(Name(flaw.verdict))},
                    {"why", first.why},
                    {"severity", flaw.severity},
                    {"cvss", ScoreJson(flaw.score_tenths)},
                    {"vector", first.flaw->vector},
                    {"summary", first.flaw->summary},
                    {"bulletin", first.bulletin->id},
                    {"date", DateOf(first.bulletin->current)}};
  object["fixed"] = bulletins.front().as_object().at("fixed");
  object["bulletins"] = std::move(bulletins);
  return object;
}

Counts CountOf(const std::vector<FlawVerdict>& flaws) {
  Counts counts;
  for (const FlawVerdict& flaw : flaws) {
    ++counts.by_verdict[static_cast<std::size_t>(flaw.verdict)];
  }
  return counts;
}

Json CountsJson(const Counts& counts) {
  JsonObject object;
  for (const Verdict verdict :
       {Verdict::kAffected, Verdict::kAmbiguous, Verdict::kFixed, Verdict::kNotAffected}) {
    object[std::string(Name(verdict))] = counts.Of(verdict);
  }
  return object;
}

Result<int> FailRank(const Parsed& parsed) {
  const auto text = parsed.Value("fail-on");
  if (!text) {
    return kNeverFails;
  }
  for (const std::string_view name : {"low", "medium", "high", "critical"}) {
    if (*text == name) {
      return assure::SeverityRank(name);
    }
  }
  return Error{Code::kInvalidArgument,
               "--fail-on: \"" + *text + "\" is none of low, medium, high, critical",
               DidYouMean(*text, {"low", "medium", "high", "critical"}, "choose one of them")};
}

bool Trips(const std::vector<FlawVerdict>& flaws, int rank) {
  return std::any_of(flaws.begin(), flaws.end(), [rank](const FlawVerdict& flaw) {
    return flaw.verdict >= Verdict::kAmbiguous && assure::SeverityRank(flaw.severity) >= rank;
  });
}

bool DataTrips(const Loaded& loaded, int rank) {
  return rank != kNeverFails &&
         ((loaded.stale && rank <= assure::SeverityRank("medium")) || !loaded.set.problems.empty());
}

namespace {

std::string Styled(const Console& console, Verdict verdict) {
  const std::string name(Name(verdict));
  return verdict == Verdict::kAffected    ? console.Bad(name)
         : verdict == Verdict::kAmbiguous ? console.Doubtful(name)
                                          : console.Good(name);
}

std::string Joined(const std::vector<std::string>& texts) {
  std::string out;
  for (const std::string& text : texts) {
    out += (out.empty() ? "" : ", ") + text;
  }
  return out;
}

void PrintFlaws(Console& console, const std::vector<FlawVerdict>& flaws, bool all) {
  for (const FlawVerdict& flaw : flaws) {
    if (!all && flaw.verdict < Verdict::kAmbiguous) {
      continue;
    }
    const BulletinVerdict& said = flaw.said.front();
    console.out() << Styled(console, flaw.verdict) << "  " << console.Bold(Safe(flaw.cve)) << "  "
                  << Safe(flaw.severity) << ' ' << ScoreText(flaw.score_tenths) << "  bulletin "
                  << Safe(said.bulletin->id) << " of " << DateOf(said.bulletin->current) << '\n'
                  << "  why: " << Safe(said.why) << '\n';
    if (!said.condition.empty()) {
      console.out() << "  if: " << Safe(said.condition) << '\n';
    }
    if (flaw.verdict >= Verdict::kAmbiguous && !said.fixed.empty()) {
      console.out() << (said.other_branch ? "  fixed in other branches: " : "  fixed in: ")
                    << Safe(Joined(said.fixed)) << '\n';
    }
  }
}

Result<int> MatchOne(Invocation& invocation, const Loaded& loaded, int rank) {
  const Parsed& parsed = invocation.parsed;
  const assure::AdvisoryIndex index(loaded.set.bulletins);
  const std::string product = parsed.Value("product").value_or("");
  const std::string platform = parsed.Value("platform").value_or("Linux");
  const std::string version = parsed.Value("version").value_or("");
  RINGFENCE_ASSIGN(const auto query, index.Ask(product, platform, version));
  auto flaws = index.Match(query);
  const auto cve = parsed.Value("cve");
  if (cve) {
    std::erase_if(flaws, [&cve](const FlawVerdict& flaw) { return flaw.cve != *cve; });
  }
  const Counts counts = CountOf(flaws);
  Console& console = invocation.console;
  if (!console.table()) {
    JsonArray results;
    for (const FlawVerdict& flaw : flaws) {
      results.push_back(FlawJson(flaw));
    }
    console.Show(
        JsonObject{{"product", query.product.known != nullptr ? std::string(query.product.known->id)
                                                              : query.product.name},
                   {"platform", platform},
                   {"version", version},
                   {"data", DataJson(loaded)},
                   {"counts", CountsJson(counts)},
                   {"results", std::move(results)}});
  } else {
    WarnOfData(console, loaded);
    PrintFlaws(console, flaws, parsed.Has("all") || cve.has_value());
    if (cve && flaws.empty()) {
      console.Note("no bulletin lists " + *cve + " for this product");
    }
    console.out() << Safe(product) << ' ' << Safe(version) << " on " << Safe(platform) << ": "
                  << counts.Of(Verdict::kAffected) << " affected, "
                  << counts.Of(Verdict::kAmbiguous) << " ambiguous, " << counts.Of(Verdict::kFixed)
                  << " fixed, " << counts.Of(Verdict::kNotAffected) << " not affected; "
                  << Count(loaded.set.bulletins.size(), "bulletin") << ", the newest of "
                  << DateOf(loaded.newest) << '\n';
  }
  return Trips(flaws, rank) || DataTrips(loaded, rank) ? kExitFindings : kExitOk;
}

Result<int> Match(Invocation& invocation) {
  RINGFENCE_ASSIGN(const int rank, FailRank(invocation.parsed));
  const bool many = invocation.parsed.Has("inventory");
  if (many == (invocation.parsed.Has("product") || invocation.parsed.Has("version"))) {
    return Error{Code::kInvalidArgument,
                 "give --product and --version, or --inventory, and not both",
                 "ringfence advisory match --help"};
  }
  if (!many && !(invocation.parsed.Has("product") && invocation.parsed.Has("version"))) {
    return Error{Code::kInvalidArgument, "--product and --version go together",
                 "ringfence advisory products"};
  }
  RINGFENCE_ASSIGN(const Loaded loaded, LoadFor(invocation));
  return many ? MatchInventory(invocation, loaded, rank) : MatchOne(invocation, loaded, rank);
}

Result<int> List(Invocation& invocation) {
  RINGFENCE_ASSIGN(const Loaded loaded, LoadFor(invocation));
  Console& console = invocation.console;
  Table table({"BULLETIN", "PUBLISHED", "REVISED", "FLAWS", "WORST", "TITLE"});
  JsonArray items;
  for (auto bulletin = loaded.set.bulletins.rbegin(); bulletin != loaded.set.bulletins.rend();
       ++bulletin) {
    int worst = -1;
    for (const assure::Flaw& flaw : bulletin->flaws) {
      worst = std::max(worst, flaw.score_tenths);
    }
    table.Add({bulletin->id, DateOf(bulletin->first), DateOf(bulletin->current),
               std::to_string(bulletin->flaws.size()), ScoreText(worst), bulletin->title});
    items.push_back(JsonObject{{"id", bulletin->id},
                               {"title", bulletin->title},
                               {"published", DateOf(bulletin->first)},
                               {"revised", DateOf(bulletin->current)},
                               {"flaws", bulletin->flaws.size()},
                               {"worst_cvss", ScoreJson(worst)},
                               {"file", bulletin->file}});
  }
  if (console.table()) {
    WarnOfData(console, loaded);
    table.Print(console);
  } else {
    console.Show(JsonObject{{"data", DataJson(loaded)}, {"bulletins", std::move(items)}});
  }
  return kExitOk;
}

Json RowJson(const assure::BulletinRow& row) {
  JsonArray affected;
  for (const std::string& text : row.affected_texts) {
    affected.push_back(Json(text));
  }
  JsonArray fixed;
  for (const std::string& text : row.fixed_texts) {
    fixed.push_back(Json(text));
  }
  const bool understood = std::all_of(row.affected.begin(), row.affected.end(),
                                      [](const auto& text) { return text.understood; });
  return JsonObject{{"product", row.product},
                    {"platform", row.platform.text},
                    {"affected", std::move(affected)},
                    {"fixed", std::move(fixed)},
                    {"understood", understood}};
}

Result<int> Show(Invocation& invocation) {
  RINGFENCE_ASSIGN(const Loaded loaded, LoadFor(invocation));
  const std::string id = invocation.parsed.Argument(0);
  Console& console = invocation.console;
  bool found = false;
  JsonArray items;
  for (const Bulletin& bulletin : loaded.set.bulletins) {
    for (const assure::Flaw& flaw : bulletin.flaws) {
      if (bulletin.id != id && flaw.cve != id) {
        continue;
      }
      found = true;
      JsonArray rows;
      Table table({"PRODUCT", "PLATFORM", "AFFECTED", "FIXED"});
      for (const assure::BulletinRow& row : flaw.rows) {
        rows.push_back(RowJson(row));
        table.Add(
            {row.product, row.platform.text, Joined(row.affected_texts), Joined(row.fixed_texts)});
      }
      items.push_back(JsonObject{{"cve", flaw.cve},
                                 {"bulletin", bulletin.id},
                                 {"title", bulletin.title},
                                 {"date", DateOf(bulletin.current)},
                                 {"severity", flaw.severity},
                                 {"cvss", ScoreJson(flaw.score_tenths)},
                                 {"vector", flaw.vector},
                                 {"summary", flaw.summary},
                                 {"rows", std::move(rows)}});
      if (console.table()) {
        console.out() << console.Bold(Safe(flaw.cve)) << "  " << Safe(flaw.severity) << ' '
                      << ScoreText(flaw.score_tenths) << "  bulletin " << Safe(bulletin.id)
                      << " of " << DateOf(bulletin.current) << '\n'
                      << Safe(flaw.summary) << '\n';
        table.Print(console);
        console.out() << '\n';
      }
    }
  }
  if (!found) {
    return Error{Code::kNotFound, "no bulletin or flaw \"" + id + "\"",
                 "`ringfence advisory list` shows the bulletins; a flaw is CVE-2024-0132"};
  }
  if (!console.table()) {
    console.Show(items);
  }
  return kExitOk;
}

Result<int> Products(Invocation& invocation) {
  Console& console = invocation.console;
  Table table({"PRODUCT", "MEANS", "ALSO CALLED"});
  JsonArray items;
  for (const assure::KnownProduct& product : assure::KnownProducts()) {
    std::string aliases;
    JsonArray names;
    for (const std::string_view alias : product.aliases) {
      aliases += (aliases.empty() ? "" : ", ") + std::string(alias);
      names.push_back(Json(std::string(alias)));
    }
    table.Add({std::string(product.id), std::string(product.title), aliases});
    items.push_back(JsonObject{{"product", std::string(product.id)},
                               {"title", std::string(product.title)},
                               {"aliases", std::move(names)}});
  }
  if (console.table()) {
    table.Print(console);
    console.Note(
        "any other product is found by the words of its name in the bulletins; its firmware by "
        "\"DGX A100 BMC\" or \"DGX A100 SBIOS\"");
  } else {
    console.Show(items);
  }
  return kExitOk;
}

}  // namespace

CommandTable AdvisoryCommands() {
  const OptionSpec csaf = {.name = "csaf",
                           .value = "DIR",
                           .help = "folder with the bulletins (CSAF 2.0), or one file",
                           .completes = Completes::kFolder};
  const OptionSpec now = {
      .name = "now", .value = "DATE", .help = "the day to measure the data's age from"};
  const OptionSpec age = {.name = "max-age",
                          .value = "DURATION",
                          .help = "data older than this is a finding (default 90d)"};
  return {
      {.path = "advisory match",
       .group = Group::kEvidence,
       .summary = "Say which flaws of NVIDIA's bulletins a version has.",
       .details =
           "Each flaw is affected, fixed, not_affected or ambiguous, and why. Branches are judged\n"
           "one by one: 535.183.01 may be fixed while the higher 545.29.06 is not. Where a\n"
           "bulletin contradicts itself or is silent, the verdict is ambiguous, never fixed. Data\n"
           "older than --max-age and files that cannot be read are findings too.",
       .options = {csaf,
                   {.name = "product",
                    .value = "NAME",
                    .help = "see `ringfence advisory products`"},
                   {.name = "platform",
                    .value = "NAME",
                    .help = "Linux, Windows 10, VMware vSphere, ... (default Linux)"},
                   {.name = "version", .value = "V", .help = "the installed version"},
                   {.name = "inventory",
                    .value = "FILE",
                    .help = "many nodes: CSV or JSON with node, product, platform, version",
                    .completes = Completes::kFile},
                   {.name = "cve", .value = "CVE", .help = "only this flaw"},
                   {.name = "all", .help = "show fixed and not affected ones too"},
                   {.name = "fail-on",
                    .value = "SEVERITY",
                    .help = "exit with 1 when a flaw at or above it is affected or ambiguous",
                    .completes = Completes::kWords,
                    .words = "low medium high critical"},
                   age,
                   now},
       .examples = {{"ringfence advisory match --csaf bulletins --product gpu-driver "
                     "--version 535.161.07",
                     "one driver on Linux"},
                    {"ringfence advisory match --csaf bulletins --product \"Container Toolkit\" "
                     "--version 1.16.1 --fail-on high -o json",
                     "for a pipeline"},
                    {"ringfence advisory match --csaf bulletins --inventory nodes.csv",
                     "a whole fleet"}},
       .exit_codes = "0, or 1 with --fail-on when something is found",
       .handler = Match},
      {.path = "advisory exposure",
       .group = Group::kEvidence,
       .summary = "Say which nodes had a flawed driver when, and whose leases were on them.",
       .details =
           "From the server's history: the driver that each node reported from when to when, as "
           "the\n"
           "audit log has it, and the leases that were on the node meanwhile. Leases that you may\n"
           "not see are not among them.",
       .options = {csaf,
                   {.name = "cve", .value = "CVE", .help = "only this flaw"},
                   {.name = "node",
                    .value = "NAME",
                    .help = "only this node",
                    .completes = Completes::kNode},
                   {.name = "tenant",
                    .value = "TENANT",
                    .help = "only this tenant's leases, and those below",
                    .completes = Completes::kTenant},
                   {.name = "leases", .help = "each lease too"},
                   {.name = "fail-on",
                    .value = "SEVERITY",
                    .help = "exit with 1 when a node had such a flaw at or above it",
                    .completes = Completes::kWords,
                    .words = "low medium high critical"},
                   age,
                   now},
       .examples = {{"ringfence advisory exposure --csaf bulletins --cve CVE-2024-0090",
                     "whom to tell about a flaw"},
                    {"ringfence advisory exposure --csaf bulletins --leases -o json",
                     "every flaw, lease by lease"}},
       .exit_codes = "0, or 1 with --fail-on when something is found",
       .handler = AdvisoryExposure},
      {.path = "advisory list",
       .group = Group::kEvidence,
       .summary = "List the bulletins of a folder, the newest first.",
       .options = {csaf, age, now},
       .examples = {{"ringfence advisory list --csaf bulletins", "what is there, and how old"}},
       .handler = List},
      {.path = "advisory show",
       .group = Group::kEvidence,
       .summary = "Show a bulletin or a flaw: its rows as they are written.",
       .options = {csaf},
       .arguments = {{.name = "ID", .help = "a bulletin (5582) or a flaw (CVE-2024-0132)"}},
       .examples = {{"ringfence advisory show CVE-2024-0132 --csaf bulletins", "one flaw"},
                    {"ringfence advisory show 5582 --csaf bulletins -o json", "one bulletin"}},
       .handler = Show},
      {.path = "advisory products",
       .group = Group::kEvidence,
       .summary = "List the product names that `advisory match` knows.",
       .examples = {{"ringfence advisory products", "names and aliases"}},
       .handler = Products},
  };
}

}  // namespace ringfence::cli
