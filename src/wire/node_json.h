#pragma once

// Nodes and GPUs as JSON, as they are stored. The API's views of them are made in server/.

#include "base/json.h"
#include "base/result.h"
#include "model/node.h"

namespace ringfence::wire {

inline constexpr std::size_t kNodeJsonBytesMax = std::size_t{1} << 20U;

JsonObject NodeToJson(const model::Node& node);
Result<model::Node> NodeFromJson(const Json& json);
JsonObject GpuToJson(const model::Gpu& gpu);
Result<model::Gpu> GpuFromJson(const Json& json);

}  // namespace ringfence::wire
