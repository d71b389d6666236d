#include "policy/condition.h"

#include <algorithm>
#include <array>
#include <charconv>

#include "cedar/extension.h"
#include "cedar/value.h"
#include "model/isolation.h"

namespace ringfence::policy {
namespace {

using wire::YamlReader;
using wire::YamlText;

constexpr std::size_t kListMax = 32;
constexpr std::array<std::string_view, 7> kDays = {"mon", "tue", "wed", "thu", "fri", "sat", "sun"};
constexpr std::array<std::string_view, 2> kMfaKinds = {"totp", "webauthn"};
constexpr std::array<std::string_view, 2> kNodeFacts = {"attested", "patched"};

std::vector<std::string> ReadList(YamlReader& when, std::string_view name) {
  std::vector<std::string> list;
  if (when.Any(name) != nullptr) {
    for (const YamlText& text : when.Texts(name, 1, kListMax)) {
      list.push_back(text.text);
    }
  }
  return list;
}

std::vector<std::string> ReadWords(YamlReader& when, std::string_view name, const auto& known) {
  std::vector<std::string> list = ReadList(when, name);
  for (const std::string& word : list) {
    if (std::find(known.begin(), known.end(), word) == known.end()) {
      std::string all;
      for (const std::string_view one : known) {
        all += (all.empty() ? "" : ", ") + std::string(one);
      }
      when.Problem(name, when.LineOf(name), "\"" + word + "\" is none of " + all);
    }
  }
  return list;
}

std::optional<int> MinuteOf(std::string_view text) {
  int hour = 0;
  int minute = 0;
  const char* const end = text.data() + text.size();
  const auto first = std::from_chars(text.data(), end, hour);
  if (first.ec != std::errc() || text.size() != 5 || first.ptr != text.data() + 2 ||
      text[2] != ':') {
    return std::nullopt;
  }
  const auto second = std::from_chars(text.data() + 3, end, minute);
  const bool good = second.ec == std::errc() && second.ptr == end && hour >= 0 && minute >= 0 &&
                    minute < 60 && (hour < 24 || (hour == 24 && minute == 0));
  return good ? std::optional(hour * 60 + minute) : std::nullopt;
}

void ReadHours(YamlReader& when, BindingCondition& condition) {
  const auto text = when.TextIfGiven("hours");
  if (!text.has_value()) {
    return;
  }
  const std::size_t dash = text->text.find('-');
  const auto from = MinuteOf(std::string_view(text->text).substr(0, dash));
  const auto to = dash == std::string::npos
                      ? std::nullopt
                      : MinuteOf(std::string_view(text->text).substr(dash + 1));
  if (!from.has_value() || !to.has_value() || *from == *to) {
    when.Problem("hours", text->line, "\"" + text->text + "\" is no span of hours",
                 "write it in UTC, as \"08:00-18:00\"");
    return;
  }
  condition.hours = {*from, *to};
}

std::optional<Timestamp> ReadTime(YamlReader& when, std::string_view name) {
  const auto text = when.TextIfGiven(name);
  if (!text.has_value()) {
    return std::nullopt;
  }
  const auto time = ParseTime(text->text);
  if (!time.has_value()) {
    when.Problem(name, text->line, "\"" + text->text + "\" is no time",
                 "write it in UTC, as 2026-11-16T08:00:00Z");
    return std::nullopt;
  }
  return *time;
}

void ReadMfa(YamlReader& when, BindingCondition& condition) {
  condition.mfa_kinds = ReadWords(when, "mfa", kMfaKinds);
  const auto within = when.TextIfGiven("mfaWithin");
  if (!within.has_value()) {
    return;
  }
  const auto duration = ParseDuration(within->text);
  if (!duration.has_value() || duration->count() <= 0) {
    when.Problem("mfaWithin", within->line, "\"" + within->text + "\" is no length of time",
                 "write it as 15m or 8h");
    return;
  }
  condition.mfa_within = *duration;
}

void ReadNetworks(YamlReader& when, BindingCondition& condition) {
  condition.networks = ReadList(when, "network");
  for (const std::string& network : condition.networks) {
    if (!cedar::ParseExtension(cedar::Extension::kIp, network).has_value()) {
      when.Problem("network", when.LineOf("network"), "\"" + network + "\" is no network",
                   "write it as 10.0.0.0/8 or fd00::/8");
    }
  }
}

void ReadClasses(YamlReader& when, BindingCondition& condition) {
  condition.classes = ReadList(when, "class");
  for (const std::string& name : condition.classes) {
    const auto parsed = model::ParseIsolationClass(name);
    if (!parsed.has_value()) {
      when.Problem("class", when.LineOf("class"), parsed.error().message, parsed.error().hint);
    }
  }
}

std::string ListText(const std::vector<std::string>& words) {
  std::string text = "[";
  for (const std::string& word : words) {
    text += (text.size() > 1 ? ", " : "") + cedar::Quoted(word);
  }
  return text + "]";
}

std::string DurationText(std::int64_t milliseconds) {
  return "duration(\"" + std::to_string(milliseconds) + "ms\")";
}

std::string HoursText(std::pair<int, int> hours) {
  const auto at = [](int minute) { return DurationText(std::int64_t{minute} * 60'000); };
  const std::string from = "context.now.toTime() >= " + at(hours.first);
  const std::string to = "context.now.toTime() < " + at(hours.second);
  return hours.first < hours.second ? from + " && " + to : "(" + from + " || " + to + ")";
}

}  // namespace

std::optional<BindingCondition> ReadCondition(YamlReader& spec, const std::string& file,
                                              wire::YamlProblems& problems) {
  const wire::YamlNode* const node = spec.Any("when");
  if (node == nullptr) {
    return std::nullopt;
  }
  YamlReader when(node, "spec.when", YamlText{file, node->line}, problems);
  BindingCondition condition;
  condition.days = ReadWords(when, "days", kDays);
  ReadHours(when, condition);
  condition.from = ReadTime(when, "from");
  condition.until = ReadTime(when, "until");
  if (condition.from.has_value() && condition.until.has_value() &&
      *condition.from >= *condition.until) {
    when.Problem("until", when.LineOf("until"), "is not later than from",
                 "it would never hold; write a later time");
  }
  ReadMfa(when, condition);
  ReadNetworks(when, condition);
  ReadClasses(when, condition);
  condition.purposes = ReadList(when, "purpose");
  condition.classifications = ReadList(when, "classification");
  condition.node = ReadWords(when, "node", kNodeFacts);
  when.Finish();
  if (when.is_map() && condition.ToCedar().empty()) {
    when.Problem("", node->line, "says nothing", "name a condition, or leave out when");
  }
  return condition;
}

std::string BindingCondition::ToCedar() const {
  std::string text;
  const auto add = [&](const std::string& part) { text += (text.empty() ? "" : " && ") + part; };
  const auto add_list = [&](const std::string& name, const std::vector<std::string>& words) {
    if (!words.empty()) {
      add("context has " + name + " && " + ListText(words) + ".contains(context." + name + ")");
    }
  };
  if (!days.empty()) {
    add(ListText(days) + ".contains(context.weekday)");
  }
  if (hours.has_value()) {
    add(HoursText(*hours));
  }
  if (from.has_value()) {
    add("context.now >= datetime(\"" + FormatTime(*from) + "\")");
  }
  if (until.has_value()) {
    add("context.now < datetime(\"" + FormatTime(*until) + "\")");
  }
  if (!mfa_kinds.empty() || mfa_within.has_value()) {
    add("context has mfa");
  }
  if (!mfa_kinds.empty()) {
    add(ListText(mfa_kinds) + ".contains(context.mfa.kind)");
  }
  if (mfa_within.has_value()) {
    add("context.mfa.age <= " + DurationText(mfa_within->count()));
  }
  if (!networks.empty()) {
    std::string any;
    for (const std::string& network : networks) {
      any += (any.empty() ? "" : " || ") + std::string("context.network.isInRange(ip(") +
             cedar::Quoted(network) + "))";
    }
    add("context has network && (" + any + ")");
  }
  add_list("class", classes);
  add_list("purpose", purposes);
  add_list("classification", classifications);
  if (!node.empty()) {
    add("context has node");
    for (const std::string& fact : node) {
      add("context.node." + fact);
    }
  }
  return text;
}

}  // namespace ringfence::policy
