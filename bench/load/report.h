#pragma once

#include <string>

#include "base/json.h"
#include "load/worker.h"

namespace ringfence::bench {

// What one rate gave, over all threads.
struct Report {
  double rate = 0;  // asked for; 0: as fast as the answers come
  double seconds = 0;
  Stats stats;
};

void Merge(Stats& into, const Stats& from);
Json ToJson(const Target& target, const Report& report);
std::string ToTable(const Target& target, const Report& report);
// Every request was answered, and every refusal said when to come back.
bool AllAnswered(const Report& report);

}  // namespace ringfence::bench
