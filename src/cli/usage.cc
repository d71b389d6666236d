// `ringfence usage`

#include <algorithm>

#include "cli/api.h"
#include "cli/commands.h"
#include "cli/console.h"
#include "cli/fields.h"
#include "cli/human.h"
#include "cli/settings.h"

namespace ringfence::cli {
namespace {

// "1h": so long ago; "2026-11-01": when that day begins; or a time.
Result<std::string> TimeText(const Parsed& parsed, std::string_view option, Timestamp now) {
  const auto text = parsed.Value(option);
  if (!text) {
    return std::string();
  }
  if (const auto span = ParseDuration(*text); span.has_value()) {
    return FormatTime(now - *span);
  }
  for (const std::string& written : {*text, *text + "T00:00:00Z"}) {
    if (const auto time = ParseTime(written); time.has_value()) {
      return FormatTime(*time);
    }
  }
  return Error{Code::kInvalidArgument,
               "--" + std::string(option) + ": \"" + *text + "\" is neither a time nor a span",
               "write 2h or 7d (so long ago), 2026-11-01 (UTC) or 2026-11-01T08:00:00Z"};
}

std::uint64_t NumberOf(const Json& sums, std::string_view name) {
  return static_cast<std::uint64_t>(std::max<std::int64_t>(0, IntOf(sums, name).value_or(0)));
}

// 1234 -> "1.234".
std::string Thousandths(std::uint64_t value) {
  const std::string rest = std::to_string(value % 1000);
  return std::to_string(value / 1000) + "." + std::string(3 - rest.size(), '0') + rest;
}

std::string Seconds(const Json& sums, std::string_view name) {
  return Thousandths(NumberOf(sums, name));
}

std::string Hours(const Json& sums, std::string_view name) {
  return Thousandths(NumberOf(sums, name) / 3600);
}

std::string GibHours(const Json& sums) {
  const std::string known = Thousandths(NumberOf(sums, "memory_gib_seconds") * 1000 / 3600);
  return NumberOf(sums, "memory_unknown_ms") == 0 ? known : known + " + unknown";
}

std::string Energy(const Json& sums) {
  const auto joules = IntOf(sums, "energy_joules");
  return joules ? std::to_string(*joules) : "unknown";
}

// A cell as RFC 4180 has it.
std::string Cell(const std::string& text) {
  if (text.find_first_of(",\"\r\n") == std::string::npos) {
    return text;
  }
  std::string quoted = "\"";
  for (const char c : text) {
    quoted += c;
    if (c == '"') {
      quoted += '"';
    }
  }
  return quoted + "\"";
}

void PrintCsv(Console& console, const Json& usage) {
  const std::string by = TextOf(usage, "by");
  const bool lease = by == "lease";
  console.out() << by << (lease ? ",tenant,principal" : "") << (lease || by == "gpu" ? ",node" : "")
                << ",leases,gpu_seconds,slice_seconds,memory_gib_seconds,memory_unknown_seconds,"
                   "scrub_seconds,energy_joules\r\n";
  for (const Json& row : ArrayOf(usage, "items")) {
    console.out() << Cell(TextOf(row, "key"));
    if (lease) {
      console.out() << ',' << Cell(TextOf(row, "tenant")) << ',' << Cell(TextOf(row, "principal"));
    }
    if (lease || by == "gpu") {
      console.out() << ',' << Cell(TextOf(row, "node"));
    }
    console.out() << ',' << TextOf(row, "leases") << ',' << Seconds(row, "gpu_ms") << ','
                  << Seconds(row, "slice_ms") << ',' << TextOf(row, "memory_gib_seconds") << ','
                  << Seconds(row, "memory_unknown_ms") << ',' << Seconds(row, "scrub_ms") << ','
                  << Energy(row) << "\r\n";
  }
}

void PrintTable(Console& console, const Json& usage) {
  std::string by = TextOf(usage, "by");
  std::transform(by.begin(), by.end(), by.begin(),
                 [](char c) { return c >= 'a' && c <= 'z' ? static_cast<char>(c - 32) : c; });
  Table table({by, "LEASES", "GPU-SECONDS", "GPU-HOURS", "SLICE-HOURS", "GIB-HOURS", "SCRUB-HOURS",
               "ENERGY (J)"});
  const auto add = [&](const std::string& key, const Json& sums) {
    table.Add({key, TextOf(sums, "leases"), Seconds(sums, "gpu_ms"), Hours(sums, "gpu_ms"),
               Hours(sums, "slice_ms"), GibHours(sums), Hours(sums, "scrub_ms"), Energy(sums)});
  };
  for (const Json& row : ArrayOf(usage, "items")) {
    add(TextOf(row, "key"), row);
  }
  if (const Json* const total = Field(usage, "total"); total != nullptr) {
    add("total", *total);
  }
  table.Print(console);
}

Result<int> Usage(Invocation& invocation) {
  const Parsed& parsed = invocation.parsed;
  const Timestamp now = invocation.clock.Now();
  RINGFENCE_ASSIGN(std::string from, TimeText(parsed, "from", now));
  RINGFENCE_ASSIGN(std::string to, TimeText(parsed, "to", now));
  RINGFENCE_ASSIGN(const auto api, Api::Open(invocation.settings));
  RINGFENCE_ASSIGN(
      const Json usage,
      api->Get(Target("/v1/usage", {{"by", parsed.Value("by").value_or("tenant")},
                                    {"from", std::move(from)},
                                    {"to", std::move(to)},
                                    {"tenant", parsed.Value("tenant").value_or("")}})));
  Console& console = invocation.console;
  if (!BoolOf(usage, "whole")) {
    console.Note("only of tenants where you have usage.read, and of your own leases");
  }
  if (console.format() == Format::kCsv) {
    PrintCsv(console, usage);
  } else if (!console.table()) {
    console.Show(usage);
  } else if (ArrayOf(usage, "items").empty()) {
    console.Note("no lease held a GPU in that time");
  } else {
    PrintTable(console, usage);
  }
  return 0;
}

}  // namespace

CommandTable UsageCommands() {
  return {
      {.path = "usage",
       .group = Group::kEvidence,
       .summary = "Sum up what leases used: GPU-seconds, slice-hours, memory, energy.",
       .details = "A lease holds its GPUs from the audit entry lease.place to lease.job_end; the "
                  "scrub after it is counted apart. Energy is unknown unless it was measured.",
       .options = {{.name = "by",
                    .value = "WHAT",
                    .help = "tenant (default), principal, gpu or lease",
                    .completes = Completes::kWords,
                    .words = "tenant principal gpu lease"},
                   {.name = "from",
                    .value = "TIME",
                    .help = "from this time on: 7d (ago), 2026-11-01, or a whole time"},
                   {.name = "to", .value = "TIME", .help = "up to this time (default: now)"},
                   {.name = "tenant",
                    .letter = 't',
                    .value = "TENANT",
                    .help = "only of this tenant and below",
                    .completes = Completes::kTenant}},
       .examples = {{"ringfence usage --from 30d", "who used how much in a month"},
                    {"ringfence usage --by lease -t acme/research --output csv",
                     "each lease of a team, for a spreadsheet"}},
       .has_csv = true,
       .handler = Usage},
  };
}

}  // namespace ringfence::cli
