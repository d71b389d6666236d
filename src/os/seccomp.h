#pragma once

// Seccomp filters for our own processes. (A box's filter is part of its OCI bundle.)

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"

namespace ringfence::os {

bool SeccompAvailable();

// One argument of a call, compared under a mask.
struct SeccompArgument {
  unsigned index = 0;
  std::uint64_t mask = ~std::uint64_t{0};
  std::uint64_t value = 0;
};

struct SeccompRule {
  std::string call;  // the system call's name; one this machine does not have is passed over
  int error = 0;     // returned to the caller; 0: the process is killed
  std::vector<SeccompArgument> when;  // all must hold; empty: always
};

// Everything is allowed but what a rule names: for processes whose libraries we do not choose.
// Sets no_new_privs and binds all threads of the process; other architectures' calls kill.
// An error means that nothing was applied.
Status EnterSeccompDenyList(const std::vector<SeccompRule>& rules);

// A socket() call whose family is none of `families` fails with EAFNOSUPPORT.
std::vector<SeccompRule> DenySocketsExcept(const std::vector<int>& families);
// Calls that no process of ours has any business with: mounts, modules, tracing, keys, BPF, ...
std::vector<SeccompRule> DenySystemAdministration();
// fork, vfork, clone without CLONE_THREAD, and any clone that makes a namespace. clone3 says that
// it does not exist, so that the C library falls back to clone, whose flags a filter can see.
std::vector<SeccompRule> DenyNewProcesses();
std::vector<SeccompRule> DenyExec();
// Internet sockets other than streams and datagrams.
std::vector<SeccompRule> DenyRawSockets();

}  // namespace ringfence::os
