#pragma once

#include "gpu/cuda_abi.h"
#include "gpu/nvml_abi.h"
#include "table.h"

namespace ringfence::gpu {

// Each asks every question of its list, with the library not yet initialised; false when the
// library lacks too much to go on.
bool AskNvml(const nvml::Api& api, Table& table);
bool AskCuda(const cuda::Api& api, Table& table);

}  // namespace ringfence::gpu
