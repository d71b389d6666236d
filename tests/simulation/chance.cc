#define OPENSSL_SUPPRESS_DEPRECATED  // RAND_METHOD: still the one way to replace the source
#include "chance.h"

#include <openssl/rand.h>

namespace ringfence::simulation {
namespace {

Chance& Source() {
  static Chance source(0);  // one thread runs at a time: the baton orders every draw
  return source;
}

int Draw(unsigned char* into, int count) {
  for (int i = 0; i < count; ++i) {
    into[i] = static_cast<unsigned char>(Source().Next());
  }
  return 1;
}

int Ready() { return 1; }

}  // namespace

void SeedOpenSsl(std::uint64_t seed) {
  static const RAND_METHOD method{nullptr, Draw, nullptr, nullptr, Draw, Ready};
  Source() = Chance(seed);
  (void)RAND_set_rand_method(&method);
}

}  // namespace ringfence::simulation
