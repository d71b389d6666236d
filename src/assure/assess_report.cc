#include "assure/assess_report.h"

#include <map>

namespace ringfence::assure {
namespace {

JsonArray Texts(const std::vector<std::string>& texts) {
  JsonArray array;
  for (const std::string& text : texts) {
    array.push_back(Json(text));
  }
  return array;
}

Json EvidenceJson(const CheckResult& result) {
  JsonArray array;
  for (const Observation& seen : result.evidence) {
    array.push_back(JsonObject{{"where", seen.where}, {"value", seen.value}});
  }
  return array;
}

// A table cell: one line, and no bar that would end it.
std::string Cell(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c == '|' || c == '\\' || c == '<' || c == '`' || c == '*' || c == '_' || c == '[') {
      out += '\\';
    }
    out += c == '\n' || c == '\r' ? ' ' : c;
  }
  return out;
}

std::string Label(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c == '\\' || c == '"') {
      out += '\\';
    }
    out += c == '\n' ? ' ' : c;
  }
  return out;
}

std::string SarifLevel(const std::string& severity) {
  return severity == "critical" || severity == "high" ? "error"
         : severity == "medium"                       ? "warning"
                                                      : "note";
}

// "/etc/ssh/sshd_config:12" -> file and line; other places have none.
Json SarifLocation(const CheckResult& result) {
  const std::string where = result.evidence.empty() ? "" : result.evidence.front().where;
  if (!where.starts_with('/')) {
    return JsonArray{
        JsonObject{{"logicalLocations", JsonArray{JsonObject{{"name", result.check->id}}}}}};
  }
  const std::size_t colon = where.rfind(':');
  std::string file = where.substr(0, where.find(' '));
  JsonObject region;
  if (colon != std::string::npos && colon + 1 < where.size() && where.size() - colon < 8 &&
      where.find_first_not_of("0123456789", colon + 1) == std::string::npos) {
    file = where.substr(0, colon);
    region["startLine"] = std::max(1, std::atoi(where.c_str() + colon + 1));
  }
  JsonObject physical{{"artifactLocation", JsonObject{{"uri", "file://" + file}}}};
  if (!region.empty()) {
    physical["region"] = std::move(region);
  }
  return JsonArray{JsonObject{{"physicalLocation", std::move(physical)}}};
}

std::string Counted(const Assessment& assessment) {
  return std::to_string(assessment.Count(Standing::kFail)) + " failed, " +
         std::to_string(assessment.Count(Standing::kPass)) + " passed, " +
         std::to_string(assessment.Count(Standing::kUnknown)) + " cannot tell, " +
         std::to_string(assessment.Count(Standing::kNotApplicable)) + " not applicable";
}

}  // namespace

std::string EscapeXml(std::string_view text) {
  std::string out;
  for (const char c : text) {
    switch (c) {
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '&':
        out += "&amp;";
        break;
      case '"':
        out += "&quot;";
        break;
      case '\'':
        out += "&#39;";
        break;
      default:
        // XML has no place for other control characters.
        out += static_cast<unsigned char>(c) < 0x20 && c != '\n' && c != '\t' ? '?' : c;
    }
  }
  return out;
}

Json AssessmentJson(const Assessment& assessment, const ReportHead& head) {
  JsonArray results;
  for (const CheckResult& result : assessment.results) {
    const CheckSpec& check = *result.check;
    JsonObject object{{"id", check.id},
                      {"title", check.title},
                      {"class", check.area},
                      {"result", std::string(Name(result.standing))},
                      {"severity", check.severity()},
                      {"likelihood", check.likelihood},
                      {"impact", check.impact},
                      {"risk", check.risk()},
                      {"effort", check.effort},
                      {"seen", result.why},
                      {"evidence", EvidenceJson(result)},
                      {"why", check.why},
                      {"fix", check.fix},
                      {"command", check.command},
                      {"controls", Texts(check.controls)}};
    if (!result.excepted_by.empty()) {
      object["exception"] = JsonObject{{"owner", result.excepted_by}, {"reason", result.reason}};
    }
    results.push_back(std::move(object));
  }
  JsonArray first;
  for (const CheckResult* result : assessment.ToDo()) {
    first.push_back(Json(result->check->id));
  }
  return JsonObject{
      {"node", head.node},
      {"root", head.root},
      {"when", FormatTime(head.when)},
      {"score", assessment.score},
      {"counts", JsonObject{{"fail", assessment.Count(Standing::kFail)},
                            {"pass", assessment.Count(Standing::kPass)},
                            {"cannot_tell", assessment.Count(Standing::kUnknown)},
                            {"not_applicable", assessment.Count(Standing::kNotApplicable)}}},
      {"do_first", std::move(first)},
      {"expired_exceptions", Texts(assessment.expired)},
      {"results", std::move(results)}};
}

std::string Sarif(const Assessment& assessment, const ReportHead& head) {
  JsonArray rules;
  JsonArray results;
  for (const CheckResult& result : assessment.results) {
    const CheckSpec& check = *result.check;
    rules.push_back(JsonObject{
        {"id", check.id},
        {"shortDescription", JsonObject{{"text", check.title}}},
        {"fullDescription", JsonObject{{"text", check.why.empty() ? check.title : check.why}}},
        {"help", JsonObject{{"text", check.fix.empty() ? check.title : check.fix}}},
        {"defaultConfiguration", JsonObject{{"level", SarifLevel(check.severity())}}},
        {"properties", JsonObject{{"tags", Texts(check.controls)}}}});
    if (result.standing == Standing::kNotApplicable) {
      continue;
    }
    const bool fails = result.standing == Standing::kFail;
    JsonObject one{{"ruleId", check.id},
                   {"ruleIndex", rules.size() - 1},
                   {"kind", fails                                ? "fail"
                            : result.standing == Standing::kPass ? "pass"
                                                                 : "review"},
                   {"level", fails ? SarifLevel(check.severity()) : "none"},
                   {"message", JsonObject{{"text", check.title + ": " + result.why}}},
                   {"locations", SarifLocation(result)}};
    if (!result.excepted_by.empty()) {
      one["suppressions"] = JsonArray{JsonObject{
          {"kind", "external"}, {"justification", result.excepted_by + ": " + result.reason}}};
    }
    results.push_back(std::move(one));
  }
  const Json sarif = JsonObject{
      {"$schema", "https://json.schemastore.org/sarif-2.1.0.json"},
      {"version", "2.1.0"},
      {"runs", JsonArray{JsonObject{
                   {"tool", JsonObject{{"driver", JsonObject{{"name", "ringfence"},
                                                             {"version", RINGFENCE_VERSION},
                                                             {"rules", std::move(rules)}}}}},
                   {"properties", JsonObject{{"node", head.node}, {"score", assessment.score}}},
                   {"results", std::move(results)}}}}};
  return PrettyJson(sarif) + "\n";
}

std::string Markdown(const Assessment& assessment, const ReportHead& head) {
  std::string out = "# Assessment of " + Cell(head.node) + "\n\n" + FormatTime(head.when) +
                    ", score **" + std::to_string(assessment.score) +
                    "** of 100: " + Counted(assessment) + ".\n\n## What to do first\n\n";
  const auto todo = assessment.ToDo();
  out +=
      todo.empty() ? "Nothing failed.\n" : "| check | severity | seen | fix |\n|---|---|---|---|\n";
  for (const CheckResult* result : todo) {
    out += "| " + Cell(result->check->id) + " | " + result->check->severity() + " | " +
           Cell(result->why) + " | " + Cell(result->check->fix) + " |\n";
  }
  out += "\n## All results\n\n| check | result | class | title | seen |\n|---|---|---|---|---|\n";
  for (const CheckResult& result : assessment.results) {
    out += "| " + Cell(result.check->id) + " | " + std::string(Name(result.standing)) +
           (result.excepted_by.empty() ? "" : " (exception: " + Cell(result.excepted_by) + ")") +
           " | " + Cell(result.check->area) + " | " + Cell(result.check->title) + " | " +
           Cell(result.why) + " |\n";
  }
  return out;
}

std::string Junit(const Assessment& assessment, const ReportHead& head) {
  std::string cases;
  std::size_t failures = 0;
  std::size_t skipped = 0;
  for (const CheckResult& result : assessment.results) {
    const CheckSpec& check = *result.check;
    cases += "  <testcase classname=\"" + EscapeXml(check.area) + "\" name=\"" +
             EscapeXml(check.id + ": " + check.title) + "\"";
    if (result.standing == Standing::kPass) {
      cases += "/>\n";
      continue;
    }
    cases += ">\n";
    if (result.standing == Standing::kFail && result.excepted_by.empty()) {
      ++failures;
      cases += "    <failure type=\"" + check.severity() + "\" message=\"" + EscapeXml(result.why) +
               "\">" + EscapeXml(check.fix) + "</failure>\n";
    } else {
      ++skipped;
      cases +=
          "    <skipped message=\"" +
          EscapeXml(std::string(Name(result.standing)) + ": " + result.why +
                    (result.excepted_by.empty() ? "" : "; exception of " + result.excepted_by)) +
          "\"/>\n";
    }
    cases += "  </testcase>\n";
  }
  return "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuite name=\"ringfence assess " +
         EscapeXml(head.node) + "\" tests=\"" + std::to_string(assessment.results.size()) +
         "\" failures=\"" + std::to_string(failures) + "\" skipped=\"" + std::to_string(skipped) +
         "\" timestamp=\"" + FormatTime(head.when).substr(0, 19) + "\">\n" + cases +
         "</testsuite>\n";
}

std::string Prometheus(const Assessment& assessment, const ReportHead& head) {
  const std::string node = "node=\"" + Label(head.node) + "\"";
  std::string out =
      "# HELP ringfence_assess_score Score of the node, 0 to 100.\n"
      "# TYPE ringfence_assess_score gauge\n"
      "ringfence_assess_score{" +
      node + "} " + std::to_string(assessment.score) +
      "\n"
      "# HELP ringfence_assess_time_seconds When the node was assessed.\n"
      "# TYPE ringfence_assess_time_seconds gauge\n"
      "ringfence_assess_time_seconds{" +
      node + "} " + std::to_string(head.when.time_since_epoch().count() / 1000) +
      "\n"
      "# HELP ringfence_check_failed 1 where a check failed, 0.5 where it cannot tell.\n"
      "# TYPE ringfence_check_failed gauge\n";
  for (const CheckResult& result : assessment.results) {
    if (result.standing == Standing::kNotApplicable) {
      continue;
    }
    out += "ringfence_check_failed{" + node + ",check=\"" + Label(result.check->id) +
           "\",class=\"" + Label(result.check->area) + "\",severity=\"" + result.check->severity() +
           "\",excepted=\"" + (result.excepted_by.empty() ? "no" : "yes") + "\"} " +
           (result.standing == Standing::kFail   ? "1"
            : result.standing == Standing::kPass ? "0"
                                                 : "0.5") +
           "\n";
  }
  return out;
}

std::string ChecksDocument(const std::vector<CheckSpec>& checks) {
  std::map<std::string, std::vector<const CheckSpec*>> areas;
  for (const CheckSpec& check : checks) {
    areas[check.area].push_back(&check);
  }
  std::string out =
      "# Checks\n\nMade from `content/checks/*.yaml` by `ringfence __checks`; do not edit. "
      "[assess.md](assess.md) says how they are run and scored, and how to write one.\n\n" +
      std::to_string(checks.size()) + " checks in " + std::to_string(areas.size()) + " classes.\n";
  for (const auto& [area, list] : areas) {
    out += "\n## " + area + " (" + std::to_string(list.size()) + ")\n\n";
    out +=
        "| check | holds when | severity | probe | why | fix | controls "
        "|\n|---|---|---|---|---|---|---|\n";
    for (const CheckSpec* check : list) {
      std::string controls;
      for (const std::string& control : check->controls) {
        controls += (controls.empty() ? "" : ", ") + control;
      }
      out += "| `" + check->id + "` | " + Cell(check->title) + " | " + check->severity() + " (" +
             std::to_string(check->likelihood) + "×" + std::to_string(check->impact) + ") | " +
             Cell(check->probe.kind) + " | " + Cell(check->why) + " | " + Cell(check->fix) + " | " +
             Cell(controls) + " |\n";
    }
  }
  return out;
}

}  // namespace ringfence::assure
