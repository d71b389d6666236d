#include "policy/exception.h"

#include <algorithm>

#include "base/closest.h"
#include "policy/draft.h"
#include "policy/policy.h"

namespace ringfence::policy {
namespace {

using wire::YamlReader;
using wire::YamlText;

constexpr std::size_t kReasonBytesMin = 10;
constexpr std::size_t kReasonBytesMax = 500;
constexpr std::size_t kNameBytesShort = 64;  // it travels in grants

std::optional<Timestamp> ReadTime(YamlReader& spec, std::string_view field) {
  const auto text = spec.Text(field);
  if (!text.has_value()) {
    return std::nullopt;
  }
  const auto time = ParseTime(text->text);
  if (!time.has_value()) {
    spec.Problem(field, text->line, "\"" + text->text + "\" is no time",
                 "write it in UTC, as 2026-11-16T08:00:00Z");
    return std::nullopt;
  }
  return *time;
}

void ReadWhat(YamlReader& spec, BoxException& exception) {
  for (const YamlText& text : spec.Texts("what", 1, 2)) {
    if (text.text == "host_network") {
      exception.host_network = true;
    } else if (text.text == "host_pid") {
      exception.host_pid = true;
    } else {
      spec.Problem("what", text.line, "\"" + text.text + "\" is no exception that can be made",
                   text.text == "privileged"
                       ? "a privileged box is the host's root: give it a machine of its own instead"
                       : "write host_network or host_pid");
    }
  }
}

void ReadReason(YamlReader& spec, BoxException& exception) {
  const auto reason = spec.Text("reason", kReasonBytesMax);
  if (!reason.has_value()) {
    return;
  }
  const bool plain = std::all_of(reason->text.begin(), reason->text.end(),
                                 [](char c) { return static_cast<unsigned char>(c) >= ' '; });
  if (reason->text.size() < kReasonBytesMin || !plain) {
    spec.Problem("reason", reason->line, "is no reason",
                 "say in one line of 10 letters or more why no other way will do");
  }
  exception.reason = reason->text;
}

}  // namespace

void ReadException(DraftHead head, DraftTenantRef tenant, YamlReader& spec, Draft& draft) {
  DraftException exception;
  if (head.name.size() > kNameBytesShort) {
    spec.Problem("", head.name_line, "the name is longer than 64 letters", "shorten it");
  }
  exception.head = std::move(head);
  exception.tenant = std::move(tenant);
  ReadWhat(spec, exception.exception);
  ReadReason(spec, exception.exception);
  exception.requested_by = spec.Text("requestedBy");
  exception.approved_by = spec.Text("approvedBy");
  const auto from = ReadTime(spec, "from");
  const auto until = ReadTime(spec, "until");
  if (from.has_value() && until.has_value()) {
    exception.exception.from = *from;
    exception.exception.until = *until;
    if (*until <= *from || *until - *from > kExceptionMax) {
      spec.Problem("until", spec.LineOf("until"), "lies before from, or more than 30 days after it",
                   "an exception ends; a new one is asked for and approved anew");
    }
  }
  draft.exceptions.push_back(std::move(exception));
}

std::vector<std::string> BoxException::what() const {
  std::vector<std::string> what;
  if (host_network) {
    what.emplace_back("host_network");
  }
  if (host_pid) {
    what.emplace_back("host_pid");
  }
  return what;
}

std::string BoxException::Where() const { return source.file + ":" + std::to_string(source.line); }

std::string BoxException::Warning() const {
  std::string all;
  for (const std::string& one : what()) {
    all += (all.empty() ? "" : " and ") + one;
  }
  return "the exception " + name + " lets boxes of " + tenant.text() + " have " + all + " until " +
         FormatTime(until) + ", approved by " + approved_by + " (" + Where() + ")";
}

Result<BoxException> FindException(const Policy& policy, const model::TenantPath& tenant,
                                   const std::string& name, Timestamp now) {
  std::vector<std::string_view> names;
  for (const BoxException& one : policy.exceptions()) {
    names.push_back(one.name);
    if (one.name != name) {
      continue;
    }
    if (!one.tenant.Contains(tenant)) {
      return Error{Code::kPermissionDenied,
                   "the exception " + name + " (" + one.Where() + ") is for " + one.tenant.text() +
                       ", not for " + tenant.text(),
                   "ask for one of your own tenant", "exception"};
    }
    if (!one.InForce(now)) {
      return Error{Code::kPermissionDenied,
                   "the exception " + name + " (" + one.Where() + ") holds from " +
                       FormatTime(one.from) + " to " + FormatTime(one.until),
                   "ask for a new one", "exception"};
    }
    return one;
  }
  const auto closest = Closest(name, names);
  return Error{Code::kNotFound, "the policy has no exception \"" + name.substr(0, 128) + "\"",
               closest ? "did you mean \"" + std::string(*closest) + "\"?"
                       : "an Exception must be in the policy: docs/formats/policy-folder.md",
               "exception"};
}

std::vector<BoxException> ExceptionsInForce(const Policy& policy, Timestamp now) {
  std::vector<BoxException> all;
  for (const BoxException& one : policy.exceptions()) {
    if (one.InForce(now)) {
      all.push_back(one);
    }
  }
  return all;
}

}  // namespace ringfence::policy
