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

inline constexpr std::size_t kNodeImagesMax = 256;
// [{"digest", "names": [..]}]: of a stored node, of an agent's report, and of the API.
JsonArray NodeImagesToJson(const std::vector<model::NodeImage>& images);
Result<std::vector<model::NodeImage>> NodeImagesFromJson(JsonReader& reader);

}  // namespace ringfence::wire
