#pragma once

// What on a machine would stop Ringfence, and how to mend it. Looking and judging are apart: what
// was seen are values, so that a test can make any machine of them.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "assure/advisories.h"
#include "base/result.h"
#include "base/time.h"
#include "isolate/controls.h"
#include "os/machine.h"

namespace ringfence::assure {

enum class Outcome { kOk, kWarn, kFail, kUnknown };
std::string_view Name(Outcome outcome);

enum class Role { kServer, kNode, kBoth };

struct Check {
  std::string id;
  std::string what;  // what was looked at
  Outcome outcome = Outcome::kUnknown;
  std::string evidence;  // what was seen
  std::string why;       // why it matters
  std::string fix;       // what to do; empty when it is good
};

struct Seen {
  Timestamp now;
  bool root = false;
  isolate::KernelFacts kernel;
  os::ClockSync clock = os::ClockSync::kUnknown;
  std::optional<os::Memory> memory;
  std::optional<os::DiskRoom> disk;  // where the state is, or will be
  std::string state;                 // the folder
  std::string state_trust;           // why root does not trust it; empty: it does
  std::string listen;
  std::string listen_error;     // empty: free
  bool listen_is_ours = false;  // held by the server that runs here
  std::uint64_t open_files = 0;
  std::string runtime_path;
  std::string runtime_error;  // empty: new enough
  InstalledVersion runtime;
  std::vector<Advisory> advisories;
  std::string advisories_error;
  std::vector<std::string> programs_missing;
  unsigned uid_first = 0;  // of boxes and daemons
  unsigned uid_last = 0;
  std::vector<std::string> uid_accounts;  // accounts and ranges of others within
  std::vector<std::string> uid_sharers;   // state folders of other nodes that use the same ids
  bool driver = false;                    // the kernel has NVIDIA's
  std::string driver_version;
  std::vector<std::string> driver_missing;  // files of it
  std::string profiling_admin_only;         // "0", "1"; empty: not said
};

// All of it, in a fixed order.
std::vector<Check> Judge(const Seen& seen, Role role);

struct LookOptions {
  std::string state;
  std::string state_trust;  // as the caller found it
  std::string listen;
  std::string server_listens;  // empty: none runs
  unsigned uid_base = 0;
  std::vector<std::string> programs;  // that must be there
  std::string advisories_file;
  Timestamp now;
};
// Changes nothing and writes nothing.
Seen Look(const LookOptions& options);

// What keeps the role from working; warnings and unknowns do not.
bool AnyFails(const std::vector<Check>& checks);

}  // namespace ringfence::assure
