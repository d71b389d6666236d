#include "util.h"
namespace ringfence::probe {
std::span<const Code> DeviceAttacks() { return {}; }
}  // namespace ringfence::probe
