// Goal: in a release a failpoint is nothing at all. Method: compiled without RINGFENCE_FAILPOINTS;
// what a constant expression can hold leaves no code behind, and release_check.py looks at the
// objects.

#include "os/failpoint.h"

#ifdef RINGFENCE_FAILPOINTS
#error "this is to be compiled as a release is"
#endif

namespace {

constexpr bool PassesOver() {
  RINGFENCE_FAILPOINT("no.such.place");
  return true;
}
static_assert(PassesOver());

}  // namespace
