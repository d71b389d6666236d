#pragma once

// The fleet as a picture: a line of cells for each node, a cell for each GPU.

#include <string>

#include "base/json.h"
#include "base/time.h"
#include "cli/console.h"

namespace ringfence::cli {

// What the API says of nodes and GPUs, put together: nodes with their GPUs, each with its mark, and
// the letters of the tenants.
JsonObject MapOf(const JsonArray& nodes, const JsonArray& gpus);

// Each GPU with its slices behind it, in the order of their places.
JsonArray WithSlices(const JsonArray& gpus);

// A map as MapOf made it. Letters always, so that it can be read without colours; colours where the
// console has them.
void DrawMap(Console& console, const JsonObject& map, Timestamp now);

}  // namespace ringfence::cli
