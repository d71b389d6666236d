#pragma once

// The kernels of kernels/scrub.cu, as the PTX that is built in.

#include <string>

namespace ringfence::gpu {

// PTX, with a zero at its end as cuModuleLoadData wants it.
const char* KernelImage();
// "sha256:..." of it without that zero: which kernels a receipt is about.
const std::string& KernelDigest();

}  // namespace ringfence::gpu
