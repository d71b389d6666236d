#include "assure/check_run.h"

#include <algorithm>
#include <charconv>

#include "base/debian_version.h"
#include "base/json.h"
#include "wire/yaml.h"

namespace ringfence::assure {
namespace {

constexpr std::size_t kEvidenceMax = 20;

std::optional<std::int64_t> NumberOf(std::string_view text) {
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && end == text.data() + text.size() ? std::optional(value)
                                                                  : std::nullopt;
}

bool Loopback(std::string_view address) { return address == "::1" || address.starts_with("127."); }

// Nothing: the value cannot be judged by this condition.
std::optional<bool> Meets(const ExpectSpec& expect, const std::string& value) {
  const auto any = [&expect, &value](auto test) {
    return std::any_of(expect.values.begin(), expect.values.end(),
                       [&](const std::string& wanted) { return test(value, wanted); });
  };
  const auto same = [](const std::string& a, const std::string& b) { return a == b; };
  const auto glob = [](const std::string& a, const std::string& b) { return GlobMatches(b, a); };
  if (expect.kind == "equals" || expect.kind == "one_of") {
    return any(same);
  }
  if (expect.kind == "not_one_of") {
    return !any(same);
  }
  if (expect.kind == "matches") {
    return any(glob);
  }
  if (expect.kind == "not_matches") {
    return !any(glob);
  }
  if (expect.kind == "loopback_only") {
    return Loopback(value);
  }
  if (expect.kind == "debian_at_least") {
    return CompareDebianVersions(value, expect.values.front()) >= 0;
  }
  if (expect.kind == "mode_at_most") {
    const auto allowed = std::strtoul(expect.values.front().c_str(), nullptr, 8);
    return (std::strtoul(value.c_str(), nullptr, 8) & ~allowed & 07777U) == 0;
  }
  const auto number = NumberOf(Trim(value));
  const auto bound = NumberOf(expect.values.empty() ? "" : expect.values.front());
  if (!number || !bound) {
    return std::nullopt;
  }
  return expect.kind == "at_least" ? *number >= *bound : *number <= *bound;
}

std::string Wanted(const ExpectSpec& expect) {
  std::string out = expect.kind;
  std::replace(out.begin(), out.end(), '_', ' ');
  if (expect.kind != "none" && expect.kind != "some" && expect.kind != "loopback_only") {
    for (const std::string& value : expect.values) {
      out += (&value == &expect.values.front() ? " \"" : ", \"") + value + "\"";
    }
  }
  return out;
}

std::string Short(const std::string& text) {
  return text.size() <= 120 ? text : text.substr(0, 117) + "...";
}

void Judge(const ExpectSpec& expect, const Observed& seen, CheckResult& result) {
  const bool empty = seen.values.empty();
  if (expect.kind == "none" || expect.kind == "some") {
    const bool good = (expect.kind == "none") == empty;
    result.standing = good ? Standing::kPass : Standing::kFail;
    result.why = empty ? "there is none"
                       : seen.values.front().where + ": " + Short(seen.values.front().value) +
                             (seen.values.size() > 1
                                  ? " and " + std::to_string(seen.values.size() - 1) + " more"
                                  : "");
    return;
  }
  if (empty) {
    result.standing = Standing::kPass;
    result.why = "there is none";
    return;
  }
  const Observation* bad = nullptr;
  bool one_good = false;
  for (const Observation& value : seen.values) {
    const auto meets = Meets(expect, value.value);
    if (!meets) {
      result.standing = Standing::kUnknown;
      result.why =
          value.where + ": \"" + Short(value.value) + "\" cannot be judged by " + Wanted(expect);
      return;
    }
    one_good = one_good || *meets;
    bad = bad == nullptr && !*meets ? &value : bad;
  }
  const bool good = expect.any ? one_good : bad == nullptr;
  const Observation& shown = good || bad == nullptr ? seen.values.front() : *bad;
  result.standing = good ? Standing::kPass : Standing::kFail;
  result.why = shown.where + ": \"" + Short(shown.value) + "\"" +
               (good ? "" : ", wanted: " + Wanted(expect));
}

bool Applies(const CheckSpec& check, const ProbeContext& context, std::string& problem) {
  if (check.applies.empty()) {
    return true;
  }
  for (const std::string& pattern : check.applies) {
    const Found found = FindPaths(context.machine, pattern);
    if (!found.paths.empty()) {
      return true;
    }
    problem = problem.empty() ? found.problem : problem;
  }
  return false;
}

// Reports travel far, and what a container was started with may be a secret: of a setting they tell
// the name, and the value only of what a GPU's runtime is told.
void HideSettings(Observed& seen) {
  for (Observation& one : seen.values) {
    const std::size_t equals = one.value.find('=');
    if (equals != std::string::npos && !one.value.starts_with("NVIDIA_")) {
      one.value = one.value.substr(0, equals) + "=(hidden)";
    }
  }
}

}  // namespace

std::string_view Name(Standing standing) {
  switch (standing) {
    case Standing::kPass:
      return "pass";
    case Standing::kFail:
      return "fail";
    case Standing::kUnknown:
      return "cannot tell";
    case Standing::kNotApplicable:
      return "not applicable";
  }
  return "cannot tell";
}

std::string RiskSeverity(int risk) {
  return risk >= 20 ? "critical" : risk >= 12 ? "high" : risk >= 6 ? "medium" : "low";
}

std::string CheckSpec::severity() const { return RiskSeverity(risk()); }

const std::vector<std::string_view>& ExpectKinds() {
  static const std::vector<std::string_view> kKinds = {
      "equals",  "one_of", "not_one_of", "matches",      "not_matches",   "at_least",
      "at_most", "none",   "some",       "mode_at_most", "loopback_only", "debian_at_least"};
  return kKinds;
}

namespace {

struct Kind {
  std::string_view name;
  Observed (*observe)(const ProbeSpec&, const ProbeContext&);
};

Observed ObserveSysctl(const ProbeSpec& probe, const ProbeContext& context) {
  std::string path = "/proc/sys/" + probe.key;
  std::replace(path.begin() + 10, path.end(), '.', '/');
  ProbeSpec file;
  file.paths = {path};
  file.get = "text";
  return ObserveFile(file, context);
}

Observed ObserveModule(const ProbeSpec& probe, const ProbeContext& context) {
  ProbeSpec file;
  file.paths = {"/sys/module/" + probe.section + "/parameters/" + probe.key};
  file.get = "text";
  return ObserveFile(file, context);
}

Observed ObserveNvidia(const ProbeSpec& probe, const ProbeContext& context) {
  ProbeSpec value = probe;
  value.paths = {"/proc/driver/nvidia/params"};
  value.separator = ":";
  return ObserveValue(value, context);
}

constexpr Kind kKinds[] = {
    {"file", ObserveFile},
    {"lines", ObserveLines},
    {"value", ObserveValue},
    {"json", ObserveJson},
    {"sysctl", ObserveSysctl},
    {"module", ObserveModule},
    {"nvidia", ObserveNvidia},
    {"sshd", ObserveSshd},
    {"process", ObserveProcess},
    {"socket", ObserveSocket},
    {"package", ObservePackage},
    {"unit", ObserveUnit},
    {"mount", ObserveMount},
    {"account", ObserveAccount},
    {"pci", ObservePci},
    {"kernel_argument", ObserveKernelArgument},
    {"kernel_config", ObserveKernelConfig},
    {"advisory", ObserveAdvisory},
    {"nvml", ObserveNvml},
};

}  // namespace

const std::vector<std::string_view>& ProbeKinds() {
  static const std::vector<std::string_view> kNames = [] {
    std::vector<std::string_view> names;
    for (const Kind& kind : kKinds) {
      names.push_back(kind.name);
    }
    return names;
  }();
  return kNames;
}

Observed Observe(const ProbeSpec& probe, const ProbeContext& context) {
  for (const Kind& kind : kKinds) {
    if (kind.name == probe.kind) {
      return kind.observe(probe, context);
    }
  }
  return Observed::Unknown("there is no probe \"" + probe.kind + "\"");
}

CheckResult RunCheck(const CheckSpec& check, const ProbeContext& context) {
  CheckResult result;
  result.check = &check;
  if (!check.broken.empty()) {
    result.why = "the check itself is wrong: " + check.broken;
    return result;
  }
  std::string problem;
  if (!Applies(check, context, problem)) {
    result.standing = problem.empty() ? Standing::kNotApplicable : Standing::kUnknown;
    result.why = problem.empty() ? "there is no " + check.applies.front() : problem;
    return result;
  }
  Observed seen = Observe(check.probe, context);
  switch (seen.state) {
    case Observed::State::kUnknown:
      result.why = seen.why;
      return result;
    case Observed::State::kAbsent:
      result.standing = check.absent;
      result.why = seen.why;
      return result;
    case Observed::State::kSeen:
      break;
  }
  if (check.probe.key.ends_with("/Env")) {
    HideSettings(seen);
  }
  Judge(check.expect, seen, result);
  seen.values.resize(std::min(seen.values.size(), kEvidenceMax));
  result.evidence = std::move(seen.values);
  return result;
}

Result<std::vector<CheckException>> ParseExceptions(std::string_view yaml,
                                                    const std::string& file) {
  RINGFENCE_ASSIGN(const Json json, wire::YamlToJson(yaml, file));
  RINGFENCE_ASSIGN(auto reader, JsonReader::Open(json));
  RINGFENCE_ASSIGN(const auto items, reader.Array("exceptions", 10'000));
  RINGFENCE_TRY(reader.Finish());
  std::vector<CheckException> exceptions;
  for (std::size_t i = 0; i < items.size(); ++i) {
    const std::string where = "exceptions[" + std::to_string(i) + "]";
    RINGFENCE_ASSIGN(auto one, JsonReader::Open(*items[i], where));
    CheckException exception;
    RINGFENCE_ASSIGN(exception.check, one.String("check", 64));
    RINGFENCE_ASSIGN(exception.owner, one.String("owner", 128));
    RINGFENCE_ASSIGN(exception.reason, one.String("reason", 1000));
    RINGFENCE_ASSIGN(const std::string until, one.String("until", 10));
    RINGFENCE_TRY(one.Finish());
    const auto day = ParseTime(until + "T23:59:59Z");
    if (!day.has_value()) {
      return Error{Code::kInvalidArgument,
                   file + ": " + where + ".until: \"" + until + "\" is no day",
                   "write it as 2027-01-31"};
    }
    exception.until = *day;
    exceptions.push_back(std::move(exception));
  }
  return exceptions;
}

std::size_t Assessment::Count(Standing standing) const {
  return static_cast<std::size_t>(
      std::count_if(results.begin(), results.end(),
                    [standing](const CheckResult& r) { return r.standing == standing; }));
}

std::vector<const CheckResult*> Assessment::ToDo() const {
  std::vector<const CheckResult*> todo;
  for (const CheckResult& result : results) {
    if (result.standing == Standing::kFail && result.excepted_by.empty()) {
      todo.push_back(&result);
    }
  }
  std::stable_sort(todo.begin(), todo.end(), [](const CheckResult* a, const CheckResult* b) {
    const int left = a->check->risk() * b->check->effort;  // risk per effort, without fractions
    const int right = b->check->risk() * a->check->effort;
    return left != right ? left > right : a->check->risk() > b->check->risk();
  });
  return todo;
}

bool Assessment::FailsAt(int severity_rank) const {
  return std::any_of(results.begin(), results.end(), [severity_rank](const CheckResult& result) {
    return result.standing == Standing::kFail && result.excepted_by.empty() &&
           SeverityRank(result.check->severity()) >= severity_rank;
  });
}

Assessment Assess(const std::vector<CheckSpec>& checks, const ProbeContext& context,
                  const std::vector<CheckException>& exceptions) {
  Assessment assessment;
  for (const CheckSpec& check : checks) {
    CheckResult result = RunCheck(check, context);
    for (const CheckException& exception : exceptions) {
      if (exception.check == check.id && context.now <= exception.until) {
        result.excepted_by = exception.owner;
        result.reason = exception.reason;
      }
    }
    const int risk = 2 * check.risk();
    if (result.standing != Standing::kNotApplicable) {
      assessment.risk_all += risk;
      assessment.risk_lost += result.standing == Standing::kFail      ? risk
                              : result.standing == Standing::kUnknown ? risk / 2
                                                                      : 0;
    }
    assessment.results.push_back(std::move(result));
  }
  for (const CheckException& exception : exceptions) {
    const bool known = std::any_of(checks.begin(), checks.end(), [&](const CheckSpec& check) {
      return check.id == exception.check;
    });
    if (!known) {
      assessment.expired.push_back(exception.check + " (" + exception.owner +
                                   "): there is no such check");
    } else if (context.now > exception.until) {
      assessment.expired.push_back(exception.check + " (" + exception.owner + "): ended on " +
                                   FormatTime(exception.until).substr(0, 10));
    }
  }
  if (assessment.risk_all > 0) {
    assessment.score =
        100 - (100 * assessment.risk_lost + assessment.risk_all - 1) / assessment.risk_all;
  }
  return assessment;
}

}  // namespace ringfence::assure
