#include "assure/control_status.h"

#include <algorithm>
#include <set>

#include "isolate/probe_table.h"

namespace ringfence::assure {
namespace {

bool Names(const CheckSpec& check, const std::string& tag) {
  return std::find(check.controls.begin(), check.controls.end(), tag) != check.controls.end();
}

bool Belongs(const CheckSpec& check, const ControlSpec& control, const std::string& own_tag) {
  return Names(check, own_tag) ||
         std::any_of(control.checks.begin(), control.checks.end(), [&](const std::string& entry) {
           return entry.find(':') == std::string::npos ? entry == check.id : Names(check, entry);
         });
}

std::string Counted(std::size_t count, std::string_view what) {
  return std::to_string(count) + " " + std::string(what) + (count == 1 ? "" : "s");
}

void Add(std::string& text, const std::string& more) {
  text += (text.empty() || more.empty() ? "" : "; ") + more;
}

// What the evidence of one control comes to.
struct Tally {
  std::size_t failed = 0;
  std::size_t excepted = 0;
  std::size_t passed = 0;
  std::size_t unreadable = 0;
  std::string first_failure;

  std::size_t held = 0;  // probes, fresh, on real GPUs where GPUs matter
  std::size_t leaked = 0;
  std::size_t untried = 0;
  std::size_t stale = 0;
  std::size_t on_simulated = 0;
  std::size_t never = 0;
  std::string first_leak;

  std::size_t entries_proof = 0;    // queries that prove, and do
  std::size_t entries_missing = 0;  // queries that prove, and have nothing to
  std::size_t entries = 0;          // queries with an entry

  std::optional<Timestamp> oldest;  // of the proofs

  void Proof(Timestamp time) { oldest = oldest.has_value() ? std::min(*oldest, time) : time; }
};

void TallyChecks(const ControlStatus& status, Tally& tally) {
  for (const CheckResult* result : status.checks) {
    if (result->standing == Standing::kFail) {
      ++tally.failed;
      tally.excepted += result->excepted_by.empty() ? 0U : 1U;
      if (tally.first_failure.empty()) {
        tally.first_failure = result->check->id;
      }
    }
    tally.passed += result->standing == Standing::kPass ? 1U : 0U;
    tally.unreadable += result->standing == Standing::kUnknown ? 1U : 0U;
  }
}

// On simulated GPUs such a probe says nothing about real ones.
bool IsAboutGpus(const std::string& name) {
  const isolate::Probe* const probe = isolate::FindProbe(name);
  return name == "foreign-gpu" || name == "mig-capability" || (probe != nullptr && probe->gpus > 0);
}

void TallyProbe(const ControlStatus::Probe& probe, const Evidence& evidence, Tally& tally) {
  const bool needs_gpu = IsAboutGpus(probe.name);
  std::size_t held = 0;
  std::size_t stale = 0;
  std::size_t simulated = 0;
  std::size_t leaked = 0;
  std::optional<Timestamp> oldest;
  for (const ProbeEvidence& result : probe.results) {
    if (result.result == "leaked") {
      ++leaked;
      tally.first_leak =
          tally.first_leak.empty() ? probe.name + " on " + result.node : tally.first_leak;
    } else if (result.result == "held") {
      if (result.time + evidence.fresh < evidence.now) {
        ++stale;
      } else if (needs_gpu && result.simulated) {
        ++simulated;
      } else {
        ++held;
        oldest = oldest.has_value() ? std::min(*oldest, result.time) : result.time;
      }
    }
  }
  // A probe is as good as its worst node.
  if (leaked > 0) {
    ++tally.leaked;
  } else if (stale > 0) {
    ++tally.stale;
  } else if (simulated > 0) {
    ++tally.on_simulated;
  } else if (held > 0) {
    ++tally.held;
    tally.Proof(*oldest);
  } else if (!probe.results.empty()) {
    ++tally.untried;
  } else {
    ++tally.never;
  }
}

void TallyAudit(const ControlStatus& status, const Evidence& evidence, Tally& tally) {
  for (const ControlStatus::Audit& audit : status.audit) {
    tally.entries += audit.newest.has_value() ? 1U : 0U;
    if (!audit.query.proof) {
      continue;
    }
    const auto simulated = audit.newest.has_value() ? evidence.simulated.find(audit.newest->node)
                                                    : evidence.simulated.end();
    const bool toy = audit.query.action.ends_with(".scrub") &&
                     simulated != evidence.simulated.end() && simulated->second;
    if (audit.newest.has_value() && audit.newest->proven && !toy &&
        audit.newest->time + evidence.fresh >= evidence.now) {
      ++tally.entries_proof;
      tally.Proof(audit.newest->time);
    } else {
      ++tally.entries_missing;
    }
  }
}

std::string ProbesText(const Tally& tally) {
  std::string text;
  if (tally.held > 0) {
    Add(text, Counted(tally.held, "probe") + " held");
  }
  if (tally.on_simulated > 0) {
    Add(text, std::to_string(tally.on_simulated) + " held on simulated GPUs only");
  }
  if (tally.stale > 0) {
    Add(text, std::to_string(tally.stale) + " held too long ago");
  }
  if (tally.untried > 0) {
    Add(text, std::to_string(tally.untried) + " could not be tried");
  }
  if (tally.never > 0) {
    Add(text, Counted(tally.never, "probe") + " not run");
  }
  return text;
}

std::string ChecksText(const Tally& tally) {
  std::string text;
  if (tally.passed > 0) {
    Add(text, Counted(tally.passed, "check") + " passed");
  }
  if (tally.unreadable > 0) {
    Add(text, Counted(tally.unreadable, "check") + " cannot tell");
  }
  return text;
}

std::string EntriesText(const ControlStatus& status) {
  std::string text;
  for (const ControlStatus::Audit& audit : status.audit) {
    if (audit.newest.has_value()) {
      text += (text.empty() ? "entries " : ", ") + audit.query.action;
    }
  }
  return text;
}

void Decide(const Evidence& evidence, const Tally& tally, ControlStatus& status) {
  const bool automated = !status.checks.empty() || !status.probes.empty() || !status.audit.empty();
  const std::string seen = [&] {
    std::string text = ProbesText(tally);
    Add(text, ChecksText(tally));
    Add(text, EntriesText(status));
    return text;
  }();
  if (!automated) {
    status.state = ControlState::kNotAutomated;
    status.why = status.control->person;
  } else if (tally.failed > 0 || tally.leaked > 0) {
    status.state = ControlState::kFailing;
    status.accepted = tally.leaked == 0 && tally.excepted == tally.failed;
    if (tally.leaked > 0) {
      Add(status.why, Counted(tally.leaked, "probe") + " got through: " + tally.first_leak);
    }
    if (tally.failed > 0) {
      Add(status.why, Counted(tally.failed, "check") + " failed: " + tally.first_failure +
                          (tally.failed > 1 ? " and others" : ""));
    }
    if (status.accepted) {
      Add(status.why, "all with an exception");
    }
  } else {
    const bool probes_prove =
        tally.held > 0 && tally.stale == 0 && tally.never == 0 && tally.on_simulated == 0;
    const bool entries_prove = tally.entries_proof > 0 && tally.entries_missing == 0;
    const bool wants_entries = tally.entries_proof + tally.entries_missing > 0;
    if ((!status.probes.empty() || wants_entries) && (status.probes.empty() || probes_prove) &&
        (!wants_entries || entries_prove)) {
      status.state = ControlState::kProven;
      status.proven_at = tally.oldest;
    } else if (tally.passed + tally.held + tally.stale + tally.on_simulated + tally.entries > 0) {
      status.state = ControlState::kConfigured;
    } else {
      status.state = ControlState::kUnknown;
    }
    status.why = seen;
    if (!evidence.no_server.empty() && !(status.probes.empty() && status.audit.empty())) {
      Add(status.why, evidence.no_server);
    } else if (status.why.empty()) {
      status.why = status.checks.empty() ? "no such entry in the audit log"
                                         : "nothing that its checks speak about is here";
    }
  }
}

ControlStatus JudgeControl(const ControlSpec& control, const std::string& tag,
                           const Evidence& evidence) {
  ControlStatus status;
  status.control = &control;
  if (evidence.assessment != nullptr) {
    for (const CheckResult& result : evidence.assessment->results) {
      if (Belongs(*result.check, control, tag)) {
        status.checks.push_back(&result);
      }
    }
  }
  for (const std::string& name : control.probes) {
    const auto found = evidence.probes.find(name);
    status.probes.push_back(
        {name, found == evidence.probes.end() ? std::vector<ProbeEvidence>() : found->second});
  }
  for (const AuditQuery& query : control.audit) {
    const auto found = evidence.audit.find(query.action);
    status.audit.push_back(
        {query, found == evidence.audit.end() ? std::nullopt : std::optional(found->second)});
  }
  Tally tally;
  TallyChecks(status, tally);
  for (const ControlStatus::Probe& probe : status.probes) {
    TallyProbe(probe, evidence, tally);
  }
  TallyAudit(status, evidence, tally);
  Decide(evidence, tally, status);
  return status;
}

}  // namespace

std::string_view Name(ControlState state) {
  static constexpr std::string_view kNames[] = {"proven", "configured", "failing", "cannot tell",
                                                "not automated"};
  return kNames[static_cast<std::size_t>(state)];
}

std::size_t FrameworkStatus::Count(ControlState state) const {
  return static_cast<std::size_t>(
      std::count_if(controls.begin(), controls.end(),
                    [state](const ControlStatus& one) { return one.state == state; }));
}

FrameworkStatus JudgeFramework(const Framework& framework, const Evidence& evidence) {
  FrameworkStatus status;
  status.framework = &framework;
  for (const ControlSpec& control : framework.controls) {
    status.controls.push_back(JudgeControl(control, framework.prefix + ":" + control.id, evidence));
  }
  return status;
}

Framework Tailor(const Framework& framework, const std::vector<OscalControl>& controls) {
  Framework tailored;
  tailored.id = framework.id;
  tailored.title = framework.title;
  tailored.prefix = framework.prefix;
  for (const OscalControl& wanted : controls) {
    const auto found =
        std::find_if(framework.controls.begin(), framework.controls.end(),
                     [&](const ControlSpec& control) { return control.id == wanted.id; });
    ControlSpec control;
    if (found != framework.controls.end()) {
      control = *found;
    } else {
      control.framework = framework.id;
      control.id = wanted.id;
      control.person = "All of it: Ringfence has no mapping for this control.";
      control.mapped = false;
    }
    control.title = wanted.title;
    tailored.controls.push_back(std::move(control));
  }
  return tailored;
}

}  // namespace ringfence::assure
