#include "policy/outlook.h"

#include "cedar/print.h"
#include "policy/query.h"
#include "policy/roles.h"
#include "policy/rulebook.h"

namespace ringfence::policy {
namespace {

using cedar::Outlook;

std::string Joined(const std::vector<cedar::OpenRule>& rules) {
  std::string text;
  for (const cedar::OpenRule& rule : rules) {
    text += (text.empty() ? "" : " or ") + std::string(rules.size() > 1 ? "(" : "") +
            cedar::ToText(*rule.condition) + (rules.size() > 1 ? ")" : "");
  }
  return text;
}

Point PointAt(cedar::Outlooks& outlooks, const cedar::Request& request, const Query& query) {
  const Outlook outlook = outlooks.At(request.principal, request.action, request.resource);
  Point point{query.principal, query.action, query.tenant, outlook.answer,
              outlook.answer == Outlook::Answer::kIf ? ConditionText(outlook) : std::string()};
  for (const auto* rules : {&outlook.permits, &outlook.forbids}) {
    for (const cedar::OpenRule& rule : *rules) {
      point.rules.push_back(rule.policy);
    }
  }
  return point;
}

}  // namespace

std::string_view Name(Outlook::Answer answer) {
  return answer == Outlook::Answer::kNo ? "no" : answer == Outlook::Answer::kYes ? "yes" : "if";
}

std::string ConditionText(const Outlook& outlook) {
  bool permitted = false;
  for (const cedar::OpenRule& rule : outlook.permits) {
    permitted = permitted || rule.condition == nullptr;
  }
  std::string text = permitted ? "" : Joined(outlook.permits);
  if (outlook.forbids.empty()) {
    return text;
  }
  if (!text.empty()) {
    text = "(" + text + ") and ";
  }
  return text + "not (" + Joined(outlook.forbids) + ")";
}

std::vector<Point> WhoCan(const Policy& policy, Action action, const model::TenantPath& tenant,
                          const cedar::ValueRecord& known) {
  cedar::Outlooks outlooks(policy.rulebook().engine(), known);
  std::vector<Point> points;
  Query query{{}, action, tenant};
  cedar::Request request = RequestOf(policy, query, {});
  for (const Principal& principal : policy.principals()) {
    query.principal = principal.name;
    request.principal = {principal.service ? "Service" : "User", principal.name};
    points.push_back(PointAt(outlooks, request, query));
  }
  return points;
}

Result<std::vector<Point>> WhatCan(const Policy& policy, const std::string& principal,
                                   const cedar::ValueRecord& known) {
  RINGFENCE_TRY(CheckPrincipal(policy, principal));
  cedar::Outlooks outlooks(policy.rulebook().engine(), known);
  const auto tenants = policy.tenants();
  std::vector<Point> points;
  for (const Action action : AllActions()) {
    Query query{principal, action};
    points.push_back(PointAt(outlooks, RequestOf(policy, query, {}), query));
    if (ScopeOf(action) == ActionScope::kTenant) {
      for (const Tenant& tenant : tenants) {
        query.tenant = tenant.path;
        points.push_back(PointAt(outlooks, RequestOf(policy, query, {}), query));
      }
    }
  }
  return points;
}

}  // namespace ringfence::policy
