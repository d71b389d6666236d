#pragma once

// What `up` keeps in the state folder, and what it tells people.

#include <ostream>
#include <string>

#include "base/result.h"
#include "base/time.h"
#include "cli/settings.h"

namespace ringfence::cli {

// <state>/up.json: the process id of the `up` that holds <state>/up.lock.
std::string UpFile(const Settings& settings);
Status WriteUpFile(const Settings& settings);
Result<int> ReadUpFile(const Settings& settings);
bool IsUp(const Settings& settings);

// Copies the sample policy to where the policy should be, unless there is one.
Status ProvidePolicy(const Settings& settings);

// Whether the node in this state has no certificate that it could still use.
bool NeedsJoin(const std::string& credentials_file, Timestamp now);

// Reads and removes what the server left for us, and signs the command line in. Returns the join
// token for the local node; empty when none was asked for.
Result<std::string> TakeLocalFile(const Settings& settings, const std::string& path);

// As root: refuses a state folder that another user made or could change, as the keys and links in
// it would be theirs.
Status TrustState(const Settings& settings);

// Polls the server until node and GPUs are ready, saying what it waits for; then prints where the
// API is, who is signed in, and what to try. Returns what to exit with.
int WaitUntilHealthy(const Settings& settings, Milliseconds wait, std::ostream& out);

// The last line of a log, for an error.
std::string LastLineOf(const std::string& path);

}  // namespace ringfence::cli
