#pragma once

// Shell completion. The scripts are thin: they ask `ringfence __complete`, which knows the tables,
// and the server where one answers quickly.

#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cli/command.h"

namespace ringfence::cli {

struct Candidate {
  std::string word;
  std::string description;
};

// Values that only a server knows: tenants, leases, ... Empty when it does not answer.
using Lookup = std::function<std::vector<Candidate>(Completes)>;

// What `ringfence __complete -- words...` prints for the last of `words`: "word\tdescription"
// lines, or ":files" or ":folders" where the shell should offer those. Words that could mean
// something to a shell are never offered.
std::string Complete(const CommandTable& table, const std::vector<std::string>& words,
                     const Lookup& lookup);

// The options every command takes, as far as they stand in a command line that is not finished.
std::vector<std::pair<std::string, std::string>> FlagsSoFar(const CommandTable& table,
                                                            const std::vector<std::string>& words);

std::string CompletionScript(std::string_view shell);  // "bash", "zsh", "fish"; else empty

}  // namespace ringfence::cli
