// `ringfence cedar format`, `check-parse`, `translate-policy` and `conformance`.

#include <algorithm>
#include <charconv>

#include "base/code.h"
#include "cedar/conformance.h"
#include "cedar/limits.h"
#include "cedar/parser.h"
#include "cedar/policy_json.h"
#include "cedar/print.h"
#include "cli/cedar_files.h"
#include "cli/console.h"
#include "cli/human.h"
#include "cli/text.h"
#include "os/file.h"

namespace ringfence::cli {
namespace {

Result<std::size_t> Width(const Parsed& parsed, const std::string& option, std::size_t fallback) {
  const auto text = parsed.Value(option);
  if (!text) {
    return fallback;
  }
  std::size_t width = 0;
  const auto [end, error] = std::from_chars(text->data(), text->data() + text->size(), width);
  if (error != std::errc() || end != text->data() + text->size() || width > 10000) {
    return Error{Code::kInvalidArgument, "--" + option + ": \"" + *text + "\" is no width"};
  }
  return width;
}

Result<int> FormatNow(Invocation& invocation) {
  const Parsed& parsed = invocation.parsed;
  const std::string file = parsed.Value("policies").value_or("-");
  cedar::FormatOptions options;
  RINGFENCE_ASSIGN(options.line_width, Width(parsed, "line-width", 80));
  RINGFENCE_ASSIGN(options.indent_width, Width(parsed, "indent-width", 2));
  RINGFENCE_ASSIGN(const std::string text, ReadCedarFile(file));
  const auto formatted = cedar::Format(text, options);
  if (!formatted.has_value()) {
    return Prefix(file, formatted.error());
  }
  Console& console = invocation.console;
  const bool same = *formatted == text;
  const bool write = parsed.Has("write");
  if (write && file == "-") {
    return Error{Code::kInvalidArgument, "--write needs --policies FILE"};
  }
  if (write && !same) {
    RINGFENCE_TRY(os::WriteFile(file, AsBytes(*formatted)));
  }
  if (!console.table()) {
    console.Show(JsonObject{{"file", file}, {"formatted", same}, {"text", *formatted}});
  } else if (!write && !parsed.Has("check")) {
    console.out() << *formatted;
  } else if (!same) {
    console.Note(file + (write ? " written anew" : " is not formatted"));
  }
  return parsed.Has("check") && !write && !same ? kCedarFailure : kExitOk;
}

Result<int> FormatCommand(Invocation& invocation) { return CedarHandler(invocation, FormatNow); }

Result<int> CheckParseNow(Invocation& invocation) {
  const Parsed& parsed = invocation.parsed;
  JsonObject counts;
  if (parsed.Has("policies") || (!parsed.Has("schema") && !parsed.Has("entities"))) {
    RINGFENCE_ASSIGN(const LoadedPolicies policies, LoadPolicies(parsed));
    counts.emplace("policies", policies.set.policies().size());
    counts.emplace("templates", policies.set.templates().size());
  }
  RINGFENCE_ASSIGN(const std::optional<cedar::Schema> schema, LoadCedarSchema(parsed));
  if (schema) {
    counts.emplace("entity_types", schema->entities.size());
    counts.emplace("actions", schema->actions.size());
  }
  if (parsed.Has("entities")) {
    RINGFENCE_ASSIGN(const cedar::Entities entities,
                     LoadEntities(parsed, schema ? &*schema : nullptr));
    counts.emplace("entities", entities.all().size());
  }
  if (!invocation.console.table()) {
    invocation.console.Show(counts);
  } else {
    FactList facts;
    for (const auto& count : counts) {
      facts.Add(std::string(count.key()), std::to_string(count.value().to_number<std::uint64_t>()));
    }
    facts.Print(invocation.console);
  }
  return kExitOk;
}

Result<int> CheckParse(Invocation& invocation) { return CedarHandler(invocation, CheckParseNow); }

Result<int> TranslateNow(Invocation& invocation) {
  const Parsed& parsed = invocation.parsed;
  const std::string direction = parsed.Value("direction").value_or("");
  if (direction != "cedar-to-json" && direction != "json-to-cedar") {
    return Error{Code::kInvalidArgument, "--direction must be cedar-to-json or json-to-cedar"};
  }
  const std::string file = parsed.Value("policies").value_or("-");
  RINGFENCE_ASSIGN(const std::string text, ReadCedarFile(file));
  auto set =
      direction == "cedar-to-json" ? cedar::ParsePolicies(text) : cedar::PoliciesFromJson(text);
  if (!set.has_value()) {
    return Prefix(file, set.error());
  }
  Console& console = invocation.console;
  if (direction == "cedar-to-json") {
    console.out() << PrettyJson(cedar::ToJson(*set)) << '\n';
    return kExitOk;
  }
  std::string out;
  for (const auto& body : set->templates()) {
    out += (out.empty() ? "" : "\n") + cedar::ToText(*body);
  }
  for (const cedar::Policy& policy : set->policies()) {
    if (!policy.body->is_template()) {
      out += (out.empty() ? "" : "\n") + cedar::ToText(*policy.body);
    }
  }
  console.out() << out;
  return kExitOk;
}

Result<int> Translate(Invocation& invocation) { return CedarHandler(invocation, TranslateNow); }

// Every file below the folder whose name ends in .json, in order.
Status Collect(const std::string& folder, int depth, std::vector<std::string>& out) {
  constexpr int kFolderDepthMax = 16;
  if (depth > kFolderDepthMax) {
    return Error{Code::kExhausted, folder + ": folders nested too deeply"};
  }
  RINGFENCE_ASSIGN(const std::vector<std::string> names, os::ListDir(folder));
  for (const std::string& name : names) {
    const std::string path = folder + "/" + name;
    if (os::IsDirectory(path)) {
      RINGFENCE_TRY(Collect(path, depth + 1, out));
    } else if (name.ends_with(".json") && !name.ends_with(".entities.json")) {
      out.push_back(path);
    }
  }
  return {};
}

// The names in a test are relative to the corpus's root: the nearest folder above the test under
// which the file is there.
Result<std::string> ReadNear(const std::string& test, const std::string& name) {
  if (name.starts_with('/')) {
    return os::ReadText(name, cedar::kTextBytesMax);
  }
  std::string folder = test;
  while (!folder.empty()) {
    const std::size_t slash = folder.rfind('/');
    folder = slash == std::string::npos ? "" : folder.substr(0, slash);
    const std::string path = folder.empty() ? name : folder + "/" + name;
    if (os::Exists(path)) {
      return os::ReadText(path, cedar::kTextBytesMax);
    }
  }
  return Error{Code::kNotFound, name + ": no such file in the folders above the test",
               "the corpus's root is missing: name a folder inside it"};
}

struct Totals {
  std::uint64_t files = 0;
  std::uint64_t files_agree = 0;
  std::uint64_t requests = 0;
  std::uint64_t requests_agree = 0;
  std::uint64_t validations_agree = 0;
  JsonArray disagreements;
};

Status RunAll(const std::string& folder, Totals& totals) {
  std::vector<std::string> files;
  if (os::IsDirectory(folder)) {
    RINGFENCE_TRY(Collect(folder, 0, files));
  } else {
    files.push_back(folder);
  }
  for (const std::string& path : files) {
    RINGFENCE_ASSIGN(const std::string text, os::ReadText(path, cedar::kTextBytesMax));
    if (os::IsDirectory(folder) && !cedar::IsConformanceTest(text)) {
      continue;
    }
    RINGFENCE_ASSIGN(const std::string whole, os::AbsolutePath(path));
    const auto result = cedar::RunConformanceTest(
        text, [&](const std::string& name) { return ReadNear(whole, name); });
    ++totals.files;
    if (!result.has_value()) {
      totals.disagreements.push_back(JsonObject{{"file", path}, {"what", result.error().message}});
      continue;
    }
    totals.requests += result->requests;
    totals.requests_agree += result->requests_agree;
    totals.validations_agree += result->validation_agrees ? 1 : 0;
    totals.files_agree += result->disagreements.empty() ? 1 : 0;
    for (const std::string& what : result->disagreements) {
      totals.disagreements.push_back(JsonObject{{"file", path}, {"what", what}});
    }
  }
  if (totals.files == 0) {
    return Error{Code::kNotFound, folder + ": no tests there",
                 "a test is a JSON file with policies, entities, schema and requests"};
  }
  return {};
}

Result<int> ConformanceNow(Invocation& invocation) {
  Totals totals;
  RINGFENCE_TRY(RunAll(invocation.parsed.Argument(0), totals));
  Console& console = invocation.console;
  const bool agree = totals.disagreements.empty();
  if (!console.table()) {
    console.Show(JsonObject{{"ok", agree},
                            {"files", totals.files},
                            {"files_agree", totals.files_agree},
                            {"requests", totals.requests},
                            {"requests_agree", totals.requests_agree},
                            {"validations_agree", totals.validations_agree},
                            {"disagreements", totals.disagreements}});
    return agree ? kExitOk : kExitFindings;
  }
  for (const Json& one : totals.disagreements) {
    console.out() << Safe(std::string_view(one.at("file").get_string())) << ": "
                  << Safe(std::string_view(one.at("what").get_string())) << '\n';
  }
  console.out() << totals.files_agree << " of " << Count(totals.files, "test file") << " agree, "
                << totals.requests_agree << " of " << Count(totals.requests, "request") << ", "
                << totals.validations_agree << " of " << Count(totals.files, "validation") << '\n';
  return agree ? kExitOk : kExitFindings;
}

Result<int> Conformance(Invocation& invocation) { return CedarHandler(invocation, ConformanceNow); }

}  // namespace

CommandTable CedarToolCommands() {
  return {
      {.path = "cedar format",
       .group = Group::kAccess,
       .summary = "Write Cedar policies in one style; comments stay.",
       .options = {PoliciesOption(),
                   {.name = "line-width",
                    .letter = 'l',
                    .value = "N",
                    .help = "break lines that are longer (default 80)"},
                   {.name = "indent-width", .letter = 'i', .value = "N", .help = "(default 2)"},
                   {.name = "write", .letter = 'w', .help = "into the file, not to the terminal"},
                   {.name = "check", .letter = 'c', .help = "only say whether it is formatted"}},
       .examples = {{"ringfence cedar format -p policies.cedar", "to the terminal"},
                    {"ringfence cedar format -p policies.cedar --check", "in a build"}},
       .exit_codes = "0 done, or formatted already; 1 not formatted, or not readable",
       .handler = FormatCommand},
      {.path = "cedar check-parse",
       .group = Group::kAccess,
       .summary = "Read Cedar policies, a schema or entities, and say whether they parse.",
       .options = {PoliciesOption(), PolicyFormatOption(), LinksOption(), SchemaOption(),
                   SchemaFormatOption(), EntitiesOption()},
       .examples = {{"ringfence cedar check-parse -p policies.cedar", "how many there are"}},
       .exit_codes = "0 they parse, 1 they do not",
       .handler = CheckParse},
      {.path = "cedar translate-policy",
       .group = Group::kAccess,
       .summary = "Turn Cedar policies into JSON, or back.",
       .options = {PoliciesOption(),
                   {.name = "direction",
                    .value = "DIRECTION",
                    .help = "cedar-to-json or json-to-cedar",
                    .completes = Completes::kWords,
                    .words = "cedar-to-json json-to-cedar"}},
       .examples = {{"ringfence cedar translate-policy --direction cedar-to-json -p p.cedar",
                     "for programs"}},
       .exit_codes = "0 done, 1 not readable",
       .handler = Translate},
      {.path = "cedar conformance",
       .group = Group::kAccess,
       .summary = "Run tests in the form of Cedar's published corpus; say how many agree.",
       .details = "Decision, determining policies, errors, and whether policies and requests\n"
                  "validate, each as the test expects. Names in a test are relative to the\n"
                  "corpus's root, which is looked for above the test.",
       .arguments = {{.name = "DIR",
                      .help = "a folder of tests, or one test",
                      .completes = Completes::kFolder}},
       .examples = {{"ringfence cedar conformance cedar-integration-tests/", "all of it"},
                    {"ringfence cedar conformance corpus-tests/ --output json", "for programs"}},
       .exit_codes = "0 all agree, 1 some do not",
       .handler = Conformance},
  };
}

}  // namespace ringfence::cli
