#pragma once

// Everything else in a stand-in is hidden.
#define RINGFENCE_EXPORT extern "C" __attribute__((visibility("default")))
