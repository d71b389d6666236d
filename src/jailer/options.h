#pragma once

#include <map>
#include <string>
#include <vector>

#include "base/result.h"

namespace ringfence::jailer {

struct MountPlace {  // what boxes may have by this name
  std::string path;
  bool writable = false;
};
// "data=/srv/data,scratch=/srv/scratch:rw"
Result<std::map<std::string, MountPlace>> ParseMounts(const std::string& text);

struct Options {
  std::string state;
  std::string agent_exec;    // to start it ourselves; else
  std::string agent_socket;  // where it connects to us
  unsigned agent_uid = 0;
  unsigned agent_gid = 0;
  std::vector<std::string> agent_arguments;  // without the program's own name
  std::string worker;
  std::string init;
  std::string driver_root = "/";
  std::string node;
  std::string join_token_file;  // empty: none
  unsigned uid_base = 1'000'000'000;
  std::string box_root = "/";
  std::string uplink;                    // interface to the world for boxes; empty: none
  std::vector<std::uint32_t> resolvers;  // for the names that boxes ask for; empty: the host's
  std::string image_verifier;            // must have vouched for every image; empty: nobody need
  std::map<std::string, MountPlace> mounts;
  std::string cdi_dir;  // empty: no leases for other runtimes
  std::string hook;
  bool log_json = false;
};

inline constexpr const char* kUsage =
    "usage: ringfence-jailer --state DIR (--agent-exec PATH | --agent-socket PATH) --agent-uid U\n"
    "           --agent-gid G --worker PATH --init PATH --driver-root DIR --node NAME\n"
    "           [--join-token-file FILE] [--uid-base N] [--box-root DIR] [--uplink IFACE]\n"
    "           [--resolvers ADDRESS,...]\n"
    "           [--image-verifier PROGRAM] [--mounts NAME=DIR[:rw],...]\n"
    "           [--cdi-dir DIR --hook PATH]\n"
    "           [--log-format text|json] [-- AGENT-ARGUMENTS...]\n"
    "Started by 'ringfence up' or by the service manager, not by hand.\n";

// Every option at most once, nothing unknown. Errors name the option.
Result<Options> ParseOptions(const std::vector<std::string>& words);

}  // namespace ringfence::jailer
