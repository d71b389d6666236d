#pragma once

// RINGFENCE_CHECK: a broken invariant ends the process, in release too. For what only a defect of
// ours can cause; foreign input and likely failures return an Error.

#include <cstdio>
#include <cstdlib>

#define RINGFENCE_CHECK(condition)                                                           \
  do {                                                                                       \
    if (!(condition)) {                                                                      \
      std::fprintf(stderr, "ringfence: broken invariant at %s:%d: %s\n", __FILE__, __LINE__, \
                   #condition);                                                              \
      std::abort();                                                                          \
    }                                                                                        \
  } while (false)
