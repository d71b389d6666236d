// What detection costs on one core: a million baselines fed in turn, and lookups among a million
// indicators, in processor time. Prints one JSON object.
//
//   build/release/bench/detect [SERIES [INDICATORS]]

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <random>
#include <string>
#include <vector>

#include "detect/baseline.h"
#include "detect/indicator_index.h"

namespace detect = ringfence::detect;

namespace {

// Processor time: one thread that never waits, whoever else uses the machine.
double Nanoseconds(std::clock_t since, std::size_t count) {
  return static_cast<double>(std::clock() - since) * (1e9 / CLOCKS_PER_SEC) /
         static_cast<double>(count);
}

// Each round feeds every series once, so that each update finds its state cold in memory.
double Updates(std::size_t series, int warm, int rounds) {
  std::vector<detect::Baseline> baselines(series);
  std::mt19937_64 random(1);
  std::vector<float> noise(1U << 20U);
  for (float& value : noise) {
    value = static_cast<float>(random() % 10'000) / 100;
  }
  std::int64_t time = 1'790'000'000;
  std::size_t alarms = 0;
  std::size_t at = 0;
  const auto round = [&] {
    for (detect::Baseline& baseline : baselines) {
      at = (at + 1) & (noise.size() - 1);
      alarms += baseline.Update(time, static_cast<double>(noise[at])).alarm ? 1 : 0;
    }
    time += 60;
  };
  for (int i = 0; i < warm; ++i) {
    round();
  }
  const auto begin = std::clock();
  for (int i = 0; i < rounds; ++i) {
    round();
  }
  const double ns = Nanoseconds(begin, series * static_cast<std::size_t>(rounds));
  std::fprintf(stderr, "%zu alarms\n", alarms);
  return ns;
}

std::string Domain(std::uint64_t n) { return "host" + std::to_string(n * 7919) + ".bad.example"; }
std::string Address(std::uint64_t n) {
  const std::uint64_t bits = n * 2654435761U;
  return std::to_string(1 + bits % 223) + "." + std::to_string((bits >> 8U) % 256) + "." +
         std::to_string((bits >> 16U) % 256) + "." + std::to_string((bits >> 24U) % 256);
}
std::string Digest(std::uint64_t n) {
  char text[65];
  (void)std::snprintf(text, sizeof text, "%016lx%016lx%016lx%016lx", n * 11400714819323198485U,
                      n * 7046029254386353131U, n * 2862933555777941757U, n);
  return text;
}

struct Lookups {
  double domain_ns;
  double address_ns;
  double hash_ns;
  std::size_t bytes;
  std::size_t hits;
};

// A third of each kind; addresses with five lengths of prefix. Half of what is looked up is there.
Lookups Look(std::size_t indicators) {
  detect::IndicatorIndex index;
  const auto add = [&](detect::Kind kind, std::string value) {
    detect::Indicator indicator;
    indicator.kind = kind;
    indicator.value = std::move(value);
    if (!index.Add(std::move(indicator)).has_value()) {
      std::abort();
    }
  };
  static constexpr const char* kPrefixes[] = {"", "", "", "", "/24", "/28", "/20", "/16"};
  for (std::size_t i = 0; i < indicators / 3; ++i) {
    add(detect::Kind::kDomain, Domain(i));
    add(detect::Kind::kIp, Address(i) + kPrefixes[i % 8]);
    add(detect::Kind::kHash, Digest(i));
  }
  constexpr std::size_t kCount = 1'000'000;
  std::mt19937_64 random(2);
  std::vector<std::string> domains;
  std::vector<detect::IpRange> addresses;
  std::vector<std::string> digests;
  for (std::size_t i = 0; i < kCount; ++i) {
    const std::uint64_t n = random() % (indicators / 3 * 2);
    domains.push_back("www." + Domain(n));
    addresses.push_back(*detect::ParseIpRange(Address(n)));
    digests.push_back(Digest(n));
  }
  Lookups result{0, 0, 0, index.bytes(), 0};
  detect::IndicatorIndex::Numbers found;
  const auto time = [&](double& into, const auto& look) {
    const auto begin = std::clock();
    for (std::size_t i = 0; i < kCount; ++i) {
      found.clear();
      look(i);
      result.hits += found.size();
    }
    into = Nanoseconds(begin, kCount);
  };
  time(result.domain_ns, [&](std::size_t i) { index.LookDomain(domains[i], found); });
  time(result.address_ns, [&](std::size_t i) { index.LookIp(addresses[i], found); });
  time(result.hash_ns,
       [&](std::size_t i) { index.LookText(detect::Kind::kHash, digests[i], found); });
  return result;
}

}  // namespace

int main(int argc, char** argv) {
  const std::size_t series = argc > 1 ? std::strtoull(argv[1], nullptr, 10) : 1'000'000;
  const std::size_t indicators = argc > 2 ? std::strtoull(argv[2], nullptr, 10) : 1'000'000;
  if (series == 0 || indicators < 3) {
    std::fprintf(stderr, "usage: detect [SERIES [INDICATORS]]\n");
    return 2;
  }
  const double small = Updates(1000, 200, 3000);
  const double update = Updates(series, 120, 5);
  const Lookups look = Look(indicators);
  std::printf(
      "{\"series\": %zu, \"bytes_per_series\": %zu, \"update_ns\": %.0f, "
      "\"update_of_1000_ns\": %.0f, \"indicators\": %zu, \"table_bytes\": %zu, "
      "\"domain_ns\": %.0f, \"address_ns\": %.0f, \"hash_ns\": %.0f, \"hits\": %zu}\n",
      series, sizeof(detect::Baseline), update, small, indicators, look.bytes, look.domain_ns,
      look.address_ns, look.hash_ns, look.hits);
  return 0;
}
