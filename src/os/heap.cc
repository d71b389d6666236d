#include "os/heap.h"

#include <malloc.h>

namespace ringfence::os {
namespace {

constexpr int kHeaps = 4;

}  // namespace

void ShareHeaps() { (void)mallopt(M_ARENA_MAX, kHeaps); }

}  // namespace ringfence::os
