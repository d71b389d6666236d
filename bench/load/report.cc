#include "load/report.h"

#include <cmath>
#include <cstdio>

namespace ringfence::bench {
namespace {

std::int64_t Rounded(double value) { return static_cast<std::int64_t>(std::llround(value)); }

JsonObject Latencies(const Histogram& histogram) {
  return {{"count", histogram.count()},
          {"p50_us", histogram.Percentile(0.5)},
          {"p90_us", histogram.Percentile(0.9)},
          {"p99_us", histogram.Percentile(0.99)},
          {"p999_us", histogram.Percentile(0.999)},
          {"max_us", histogram.max()}};
}

std::string Millis(std::uint64_t microseconds) {
  char text[32];
  (void)std::snprintf(text, sizeof text, "%.2f", static_cast<double>(microseconds) / 1000);
  return text;
}

std::string Line(const std::string& name, double per_second, const Histogram& times) {
  char text[160];
  (void)std::snprintf(text, sizeof text, "  %-16s %10.0f %9s %9s %9s %9s %9s", name.c_str(),
                      per_second, Millis(times.Percentile(0.5)).c_str(),
                      Millis(times.Percentile(0.9)).c_str(), Millis(times.Percentile(0.99)).c_str(),
                      Millis(times.Percentile(0.999)).c_str(), Millis(times.max()).c_str());
  return std::string(text) + "\n";
}

}  // namespace

void Merge(Stats& into, const Stats& from) {
  into.ops.resize(from.ops.size());
  for (std::size_t i = 0; i < from.ops.size(); ++i) {
    OpStats& op = into.ops[i];
    op.expected.Merge(from.ops[i].expected);
    op.refused.Merge(from.ops[i].refused);
    op.unanswered += from.ops[i].unanswered;
    op.no_retry_after += from.ops[i].no_retry_after;
    for (const auto& [status, count] : from.ops[i].statuses) {
      op.statuses[status] += count;
    }
  }
  into.connects += from.connects;
  into.connects_failed += from.connects_failed;
  into.cut += from.cut;
  into.unsent += from.unsent;
}

Json ToJson(const Target& target, const Report& report) {
  JsonArray ops;
  std::uint64_t expected = 0;
  for (std::size_t i = 0; i < target.ops.size(); ++i) {
    const OpStats& op = report.stats.ops[i];
    const std::uint64_t answered = op.expected.count() - op.unanswered;
    expected += answered;
    JsonObject statuses;
    for (const auto& [status, count] : op.statuses) {
      statuses[std::to_string(status)] = count;
    }
    ops.emplace_back(
        JsonObject{{"op", target.ops[i].spec.name},
                   {"per_second", Rounded(static_cast<double>(answered) / report.seconds)},
                   {"latency", Latencies(op.expected)},
                   {"refused", Latencies(op.refused)},
                   {"unanswered", op.unanswered},
                   {"refused_without_retry_after", op.no_retry_after},
                   {"statuses", std::move(statuses)}});
  }
  return JsonObject{{"rate", report.rate > 0 ? Json(Rounded(report.rate)) : Json("max")},
                    {"seconds", Rounded(report.seconds)},
                    {"per_second", Rounded(static_cast<double>(expected) / report.seconds)},
                    {"ops", std::move(ops)},
                    {"connects", report.stats.connects},
                    {"connects_failed", report.stats.connects_failed},
                    {"cut", report.stats.cut},
                    {"unsent", report.stats.unsent}};
}

std::string ToTable(const Target& target, const Report& report) {
  std::string out = report.rate > 0
                        ? "at " + std::to_string(Rounded(report.rate)) + " requests a second"
                        : std::string("as fast as the answers come");
  char head[160];
  (void)std::snprintf(head, sizeof head, "  %-16s %10s %9s %9s %9s %9s %9s", "", "a second",
                      "p50 ms", "p90", "p99", "p99.9", "max");
  out += std::string("\n") + head + "\n";
  for (std::size_t i = 0; i < target.ops.size(); ++i) {
    const OpStats& op = report.stats.ops[i];
    const std::string& name = target.ops[i].spec.name;
    const auto per_second = [&](std::uint64_t count) {
      return static_cast<double>(count) / report.seconds;
    };
    out += Line(name, per_second(op.expected.count() - op.unanswered), op.expected);
    if (op.refused.count() > 0) {
      out += Line(name + " refused", per_second(op.refused.count()), op.refused);
    }
    for (const auto& [status, count] : op.statuses) {
      out += "    " + std::to_string(status) + ": " + std::to_string(count) + "\n";
    }
    if (op.unanswered > 0) {
      out += "    unanswered: " + std::to_string(op.unanswered) + "\n";
    }
  }
  out += "  connections: " + std::to_string(report.stats.connects) + " made, " +
         std::to_string(report.stats.connects_failed) + " failed, " +
         std::to_string(report.stats.cut) + " cut in a request; " +
         std::to_string(report.stats.unsent) + " requests never found a free one\n";
  return out;
}

bool AllAnswered(const Report& report) {
  for (const OpStats& op : report.stats.ops) {
    if (op.unanswered > 0 || op.no_retry_after > 0) {
      return false;
    }
  }
  return true;
}

}  // namespace ringfence::bench
