#pragma once

// What `ringfence prove` last found out about a node, in a word and a time.

#include <optional>
#include <string>

#include "base/json.h"
#include "base/time.h"
#include "model/isolation.h"

namespace ringfence::server {

struct Proven {
  std::string grade = "unproven";  // "held", "leaked", "could not be tried"
  std::optional<Timestamp> time;   // of the oldest attack that the grade "held" rests on
};

// Of whole GPUs, from the document of a node (store/proofs.h).
Proven ProvenOf(const JsonObject& document);

// When an attack on a class was last judged, if one of those on record got through; else "".
std::string LeakTimeOf(const JsonObject& document, model::IsolationClass isolation);

}  // namespace ringfence::server
