#include "gpu/kernel_image.h"

#include <cstring>

#include "base/encoding.h"
#include "crypto/sha256.h"

// The assembler takes the file in as it is; it looks where the compiler looks for headers.
__asm__(
    ".pushsection .rodata\n"
    ".global ringfence_scrub_ptx\n"
    ".hidden ringfence_scrub_ptx\n"
    "ringfence_scrub_ptx:\n"
    ".incbin \"gpu/kernels/scrub.ptx\"\n"
    ".byte 0\n"
    ".popsection\n");

extern "C" const char ringfence_scrub_ptx[];  // NOLINT(readability-identifier-naming)

namespace ringfence::gpu {

const char* KernelImage() { return ringfence_scrub_ptx; }

const std::string& KernelDigest() {
  static const std::string digest =
      "sha256:" + Hex(crypto::Sha256(
                      AsBytes(std::string_view(ringfence_scrub_ptx, std::strlen(KernelImage())))));
  return digest;
}

}  // namespace ringfence::gpu
