#include "cli/gpu_map.h"

#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <vector>

#include "cli/fields.h"
#include "cli/human.h"
#include "cli/text.h"

namespace ringfence::cli {
namespace {

constexpr std::size_t kCellWidth = 4;  // inside its brackets
constexpr std::size_t kSliceWidth = 2;
constexpr std::size_t kCellsPerLine = 8;  // the usual machine has eight
constexpr std::string_view kLetters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
constexpr char kOther = '*';

struct MarkFacts {
  std::string_view mark;
  char sign;                // what fills its cell
  std::string_view colour;  // SGR
  std::string_view meaning;
};
constexpr std::array kMarks = {
    MarkFacts{"free", '.', "2", "free and clean"},
    MarkFacts{"shared", '/', "36", "shared by several leases: `ringfence gpu list` says whose"},
    MarkFacts{"scrubbing", '~', "33", "being scrubbed, or waiting for it"},
    MarkFacts{"quarantined", '!', "1;31", "quarantined: `ringfence gpu list` says why"},
    MarkFacts{"lost", 'x', "31", "lost: its node no longer reports it"},
    MarkFacts{"cut", '|', "2", "cut into slices, which are in ( )"},
};
// Backgrounds that black letters can be read on.
constexpr std::array<std::string_view, 12> kColours = {"30;42",  "30;44",  "30;45",  "30;46",
                                                       "30;43",  "30;47",  "30;102", "30;104",
                                                       "30;105", "30;106", "30;103", "30;107"};

std::string MarkOf(const Json& gpu) {
  const std::string state = TextOf(gpu, "state");
  if (state == "dirty" ||
      ((state == "leased" || state == "shared") && TextOf(gpu, "reason") == "to be scrubbed")) {
    return "scrubbing";
  }
  return state;
}

std::string Coloured(const Console& console, std::string_view code, const std::string& text) {
  return console.options().colour_out ? "\x1b[" + std::string(code) + "m" + text + "\x1b[0m" : text;
}

std::string CellOf(const Console& console, const Json& gpu,
                   const std::map<std::string, std::size_t>& place_of) {
  const std::string mark = TextOf(gpu, "mark");
  const bool is_slice = !TextOf(gpu, "parent").empty();
  const auto framed = [&](std::string_view colour, const std::string& fill) {
    const std::string inside = Coloured(console, colour, fill);
    return is_slice ? "(" + inside + ")" : "[" + inside + "]";
  };
  const std::size_t width = is_slice ? kSliceWidth : kCellWidth;
  for (const MarkFacts& facts : kMarks) {
    if (facts.mark == mark) {
      return framed(facts.colour, std::string(width, facts.sign));
    }
  }
  const std::string letter = TextOf(gpu, "letter");
  const std::string fill(width, letter.empty() ? kOther : letter.front());
  const auto place = place_of.find(TextOf(gpu, "tenant"));
  return framed(place == place_of.end() ? "7" : kColours[place->second % kColours.size()], fill);
}

std::string ProofOf(const Console& console, const Json& node, Timestamp now) {
  const std::string grade = TextOf(node, "proof");
  if (grade == "held") {
    return console.Good("proven " + RelativeTime(TextOf(node, "proof_time"), now));
  }
  if (grade == "leaked") {
    return console.Bad("LEAKED: serves one tenant at a time");
  }
  return console.Doubtful("? unproven");
}

std::string NodeState(const Console& console, const Json& node) {
  const std::string state = TextOf(node, "state");
  return state == "ready" ? console.Good(state) : console.Bad(Safe(state));
}

void DrawNode(Console& console, const Json& node,
              const std::map<std::string, std::size_t>& place_of, Timestamp now) {
  const JsonArray& gpus = ArrayOf(node, "gpus");
  std::string models;
  std::map<std::string, std::uint64_t> counts;
  for (const Json& gpu : gpus) {
    if (TextOf(gpu, "parent").empty()) {
      ++counts[TextOf(gpu, "model")];
    }
  }
  for (const auto& [model, count] : counts) {
    models += (models.empty() ? "" : ", ") + std::to_string(count) + " x " + Safe(model);
  }
  console.out() << console.Bold(Safe(TextOf(node, "name"))) << "  " << NodeState(console, node)
                << "  " << ProofOf(console, node, now) << "  " << models
                << (BoolOf(node, "simulated") ? " (simulated)" : "") << '\n';
  std::size_t on_line = 0;
  for (std::size_t i = 0; i < gpus.size(); ++i) {
    const bool cut = TextOf(gpus[i], "mark") == "cut";
    if (cut && on_line > 0) {  // a GPU with its slices has a line to itself
      console.out() << '\n';
      on_line = 0;
    }
    console.out() << (on_line == 0 ? "  " : " ") << CellOf(console, gpus[i], place_of);
    ++on_line;
    const bool slices_end = !TextOf(gpus[i], "parent").empty() &&
                            (i + 1 == gpus.size() || TextOf(gpus[i + 1], "parent").empty());
    const bool full = !cut && TextOf(gpus[i], "parent").empty() && on_line == kCellsPerLine;
    if (slices_end || full || i + 1 == gpus.size()) {
      console.out() << '\n';
      on_line = 0;
    }
  }
}

}  // namespace

JsonArray WithSlices(const JsonArray& gpus) {
  JsonArray ordered;
  std::set<std::string> taken;
  const auto add = [&](const Json& gpu) {
    taken.insert(TextOf(gpu, "uuid"));
    ordered.push_back(gpu);
  };
  for (const Json& gpu : gpus) {
    if (!TextOf(gpu, "parent").empty()) {
      continue;
    }
    add(gpu);
    std::vector<const Json*> slices;
    for (const Json& slice : gpus) {
      if (TextOf(slice, "parent") == TextOf(gpu, "uuid")) {
        slices.push_back(&slice);
      }
    }
    std::stable_sort(slices.begin(), slices.end(), [](const Json* a, const Json* b) {
      return IntOf(*a, "start").value_or(0) < IntOf(*b, "start").value_or(0);
    });
    for (const Json* slice : slices) {
      add(*slice);
    }
  }
  for (const Json& gpu : gpus) {  // slices of a GPU that is not shown
    if (!taken.contains(TextOf(gpu, "uuid"))) {
      ordered.push_back(gpu);
    }
  }
  return ordered;
}

JsonObject MapOf(const JsonArray& nodes, const JsonArray& listed) {
  const JsonArray gpus = WithSlices(listed);
  std::map<std::string, std::uint64_t> held;  // by tenant; "": somebody whom one may not see
  std::map<std::string, std::int64_t> counts;
  for (const Json& gpu : gpus) {
    const std::string mark = MarkOf(gpu);
    ++counts[mark];
    if (mark == "leased") {
      ++held[TextOf(gpu, "tenant")];
    }
  }
  std::map<std::string, std::string> letter_of;
  JsonArray tenants;
  for (const auto& [tenant, count] : held) {
    const std::size_t place = letter_of.size();
    const char letter = tenant.empty() || place >= kLetters.size() ? kOther : kLetters[place];
    if (!tenant.empty()) {
      letter_of[tenant] = std::string(1, letter);
    }
    tenants.emplace_back(JsonObject{{"letter", std::string(1, letter)},
                                    {"tenant", tenant},
                                    {"gpus", static_cast<std::int64_t>(count)}});
  }
  JsonArray drawn;
  for (const Json& node : nodes) {
    const std::string name = TextOf(node, "name");
    const std::string proof = TextOf(node, "proof");
    JsonArray cells;
    for (const Json& gpu : gpus) {
      if (TextOf(gpu, "node") != name) {
        continue;
      }
      const std::string mark = MarkOf(gpu);
      JsonObject cell{{"uuid", TextOf(gpu, "uuid")},
                      {"index", IntOf(gpu, "index").value_or(0)},
                      {"model", TextOf(gpu, "model")},
                      {"mark", mark}};
      if (const std::string parent = TextOf(gpu, "parent"); !parent.empty()) {
        cell["parent"] = parent;
        cell["profile"] = TextOf(gpu, "profile");
        cell["start"] = IntOf(gpu, "start").value_or(0);
      }
      if (mark == "leased") {
        const std::string tenant = TextOf(gpu, "tenant");
        const auto letter = letter_of.find(tenant);
        cell["letter"] = letter == letter_of.end() ? std::string(1, kOther) : letter->second;
        cell["tenant"] = tenant;
        cell["lease"] = TextOf(gpu, "lease");
      } else if (const std::string reason = TextOf(gpu, "reason"); !reason.empty()) {
        cell["reason"] = reason;
      }
      cells.emplace_back(std::move(cell));
    }
    JsonObject one{{"name", name},
                   {"state", TextOf(node, "state")},
                   {"proof", proof.empty() ? "unproven" : proof},
                   {"simulated", BoolOf(node, "simulated")},
                   {"gpus", std::move(cells)}};
    if (const std::string time = TextOf(node, "proof_time"); !time.empty()) {
      one["proof_time"] = time;
    }
    drawn.emplace_back(std::move(one));
  }
  JsonObject sums;
  for (const auto& [mark, count] : counts) {
    sums[mark] = count;
  }
  return {{"nodes", std::move(drawn)}, {"tenants", std::move(tenants)}, {"gpus", std::move(sums)}};
}

void DrawMap(Console& console, const JsonObject& map, Timestamp now) {
  const Json whole(map);
  std::map<std::string, std::size_t> place_of;
  for (const Json& tenant : ArrayOf(whole, "tenants")) {
    if (const std::string name = TextOf(tenant, "tenant"); !name.empty()) {
      place_of.emplace(name, place_of.size());
    }
  }
  for (const Json& node : ArrayOf(whole, "nodes")) {
    DrawNode(console, node, place_of, now);
  }
  console.out() << '\n';
  for (const Json& tenant : ArrayOf(whole, "tenants")) {
    const std::string name = TextOf(tenant, "tenant");
    Json cell(
        JsonObject{{"mark", "leased"}, {"letter", TextOf(tenant, "letter")}, {"tenant", name}});
    console.out() << CellOf(console, cell, place_of) << "  "
                  << (name.empty() ? "a tenant that you may not see" : Safe(name)) << ": "
                  << Count(static_cast<std::uint64_t>(IntOf(tenant, "gpus").value_or(0)), "GPU")
                  << '\n';
  }
  const Json* const counts = Field(whole, "gpus");
  for (const MarkFacts& facts : kMarks) {
    const auto count = counts == nullptr ? std::nullopt : IntOf(*counts, facts.mark);
    if (count.has_value()) {
      const Json cell(JsonObject{{"mark", std::string(facts.mark)}});
      console.out() << CellOf(console, cell, place_of) << "  " << facts.meaning << ": "
                    << Count(static_cast<std::uint64_t>(*count), "GPU") << '\n';
    }
  }
}

}  // namespace ringfence::cli
