#pragma once

#include "base/result.h"
#include "base/secret.h"
#include "cli/command.h"

namespace ringfence::cli {

inline constexpr std::size_t kPassphraseBytesMax = 1024;
inline constexpr std::size_t kPassphraseBytesLeast = 12;

// --passphrase-file and --passphrase-fd. There is no option for the passphrase itself: what stands
// on a command line is read by everybody.
std::vector<OptionSpec> PassphraseOptions();

enum class Asking { kOnce, kTwice };  // twice: for something new
// From the file, the descriptor, or the terminal. The line's end is not part of it.
// kInvalidArgument when it is empty, too long, or (something new) too short, and when others may
// read the file.
Result<SecretBytes> Passphrase(const Parsed& parsed, Asking asking);

}  // namespace ringfence::cli
