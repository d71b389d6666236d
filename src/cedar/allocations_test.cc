// Counts allocations for engine_test.cc. Apart from it, so that the compiler does not look through.

#include <cstdlib>
#include <new>

#include "base/sanitizer.h"

namespace {
thread_local std::size_t g_allocations = 0;
}  // namespace

namespace ringfence::cedar {
std::size_t Allocations() { return g_allocations; }
}  // namespace ringfence::cedar

#ifndef RINGFENCE_ADDRESS_SANITIZER  // which has its own, and holds every pair against each other
void* operator new(std::size_t size) {
  ++g_allocations;
  if (void* memory = std::malloc(size == 0 ? 1 : size)) {
    return memory;
  }
  throw std::bad_alloc();
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }
#endif
