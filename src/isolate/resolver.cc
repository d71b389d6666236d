#include "isolate/resolver.h"

#include "model/network.h"
#include "os/file.h"
#include "os/landlock.h"
#include "os/mount.h"
#include "os/network_namespace.h"
#include "os/privileges.h"
#include "os/process.h"
#include "os/seccomp.h"
#include "os/socket_pair.h"
#include "resolve/messages.h"

namespace ringfence::isolate {
namespace {

constexpr int kSigKill = 9;
constexpr int kJailerFd = 3;
constexpr int kDatagramsFd = 4;
constexpr int kStreamsFd = 5;
constexpr int kRouterFd = 6;        // until it is entered
constexpr int kInternetFamily = 2;  // AF_INET
constexpr unsigned kUidBelow = 5;   // the image worker has the one above it
constexpr std::uint16_t kDnsPort = 53;
constexpr std::uint64_t kOpenFilesMax = 1024;

os::LandlockRules Rules(const ResolverPlace& place) {
  os::LandlockRules rules;
  for (const char* path : {"/usr", "/lib", "/lib64", "/etc/ld.so.cache", "/etc/ssl/openssl.cnf"}) {
    rules.paths.push_back({path, os::PathUse::kRead, false});
  }
  rules.paths.push_back({place.program, os::PathUse::kReadExec, false});
  rules.paths.push_back({"/lib64/ld-linux-x86-64.so.2", os::PathUse::kReadExec, false});
  rules.connect_ports = {kDnsPort};
  return rules;
}

// Everything between fork and the worker's first instruction, in order.
Status Confine(const ResolverPlace& place) {
  os::UniqueFd router(kRouterFd);
  RINGFENCE_TRY(os::EnterNetworkNamespace(router.get()));
  router.Reset();
  RINGFENCE_TRY(os::EnterNewNamespaces({.mount = true, .ipc = true, .uts = true}));
  RINGFENCE_TRY(os::EnterLandlock(Rules(place)));
  RINGFENCE_TRY(os::SetLimit(os::Limit::kCoreBytes, 0));
  RINGFENCE_TRY(os::SetLimit(os::Limit::kOpenFiles, kOpenFilesMax));
  RINGFENCE_TRY(os::BecomeUser(place.uid, place.uid));
  std::vector<os::SeccompRule> rules = os::DenySystemAdministration();
  for (const auto& more :
       {os::DenyNewProcesses(), os::DenySocketsExcept({kInternetFamily}), os::DenyRawSockets()}) {
    rules.insert(rules.end(), more.begin(), more.end());
  }
  return os::EnterSeccompDenyList(rules);
}

}  // namespace

unsigned ResolverUid(unsigned uid_base) { return uid_base - kUidBelow; }

Result<StartedResolver> StartResolver(const ResolverPlace& place, const ResolverStart& start) {
  const auto program = os::OpenRead(place.program);
  if (!program.has_value()) {
    return Prefix("start the resolver", program.error());
  }
  RINGFENCE_ASSIGN(os::SocketPair pair, os::MakeSocketPair(resolve::kToResolverBytesMax));
  os::SpawnOptions spawn;
  spawn.exec_fd = program->get();
  spawn.arguments = {
      "ringfence-resolve",          "--jailer",  std::to_string(kJailerFd), "--datagrams",
      std::to_string(kDatagramsFd), "--streams", std::to_string(kStreamsFd)};
  for (const std::uint32_t address : place.above) {
    spawn.arguments.insert(spawn.arguments.end(), {"--above", model::FormatIpv4(address)});
  }
  spawn.environment = {"PATH=/usr/bin:/bin", "HOME=/nonexistent"};
  spawn.fds = {{2, 2},
               {pair.second.get(), kJailerFd},
               {start.datagrams, kDatagramsFd},
               {start.streams, kStreamsFd},
               {start.router, kRouterFd}};
  spawn.new_session = true;
  spawn.parent_death_signal = kSigKill;
  spawn.before_exec = [&place] { return Confine(place); };
  const auto pid = os::Spawn(spawn);
  if (!pid.has_value()) {
    return Prefix("start the resolver", pid.error());
  }
  RINGFENCE_TRY(os::SetNonBlocking(pair.first.get(), true));
  return StartedResolver{*pid, std::move(pair.first)};
}

}  // namespace ringfence::isolate
