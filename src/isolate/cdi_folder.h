#pragma once

// The folder that container runtimes read CDI documents from (/etc/cdi, /var/run/cdi), kept in step
// with the leases that are held. Others write there too: what is theirs is left alone, but for what
// claims to be a lease of ours. docs/cdi.md has the rules.

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "base/result.h"

namespace ringfence::isolate {

enum class CdiFinding {
  kInStep,    // a lease's document, as it should be
  kMissing,   // a held lease had none: written
  kChanged,   // ours by name, but not what we wrote: written anew
  kStale,     // ours by name, of a lease that is not held: removed
  kLeftover,  // of a writer that was killed: removed
  kClaimed,   // somebody else's file with our kind: set aside, under a name that no runtime reads
  kForeign,   // somebody else's: left alone
  kUnclear,   // somebody else's, and no CDI document that we can read, or a link: left alone
};
std::string_view Name(CdiFinding finding);
// Drift: the folder was not in step.
bool IsDrift(CdiFinding finding);
// Somebody, not a crash of ours, did this.
bool IsTampering(CdiFinding finding);

struct CdiFile {
  std::string name;
  CdiFinding finding = CdiFinding::kInStep;
  std::string detail;  // for people; may be empty
};

struct CdiSync {
  std::string folder;
  std::map<std::string, std::string> wanted;  // lease -> its document's bytes
  bool repair = true;                         // false: only say what is wrong
  // Asked again after a document was written: a lease may have ended meanwhile. Null: it has not.
  std::function<bool(const std::string& lease)> still_held;
};
// What was found, by name, and mended if that was asked for. kFailedPrecondition: others than root
// could change the folder, and nothing was done. kNotFound: there is none.
Result<std::vector<CdiFile>> SyncCdiFolder(const CdiSync& sync);

// "ringfence-LEASE.json"
std::string CdiFileName(const std::string& lease);

// One lease's document, at once. Remove comes before the lease's devices are scrubbed.
Status WriteCdiFile(const std::string& folder, const std::string& lease, const std::string& text);
Status RemoveCdiFile(const std::string& folder, const std::string& lease);  // absent is OK

}  // namespace ringfence::isolate
