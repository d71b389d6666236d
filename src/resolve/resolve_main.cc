// ringfence-resolve: looks names up for a node's boxes. Started by the jailer, confined
// (isolate/resolver.h), inside the router's network namespace.
//   ringfence-resolve --jailer FD --datagrams FD --streams FD --above ADDRESS [--above ADDRESS...]
// Exit status: 0 the jailer has gone, 1 something failed, 2 wrong usage.

#include <charconv>
#include <cstdio>
#include <string>
#include <string_view>
#include <vector>

#include "model/network.h"
#include "os/log.h"
#include "os/privileges.h"
#include "os/seccomp.h"
#include "os/socket_pair.h"
#include "resolve/resolver.h"

namespace ringfence::resolve {
namespace {

constexpr std::uint16_t kPort = 53;
constexpr int kExitUsage = 2;

Result<int> ParseFd(std::string_view text) {
  int fd = -1;
  const auto parsed = std::from_chars(text.data(), text.data() + text.size(), fd);
  if (parsed.ec != std::errc() || parsed.ptr != text.data() + text.size() || fd < 3) {
    return Error{Code::kInvalidArgument, "not a descriptor: " + std::string(text)};
  }
  return fd;
}

Result<ResolverParts> ParseArguments(const std::vector<std::string_view>& words) {
  ResolverParts parts;
  const Error usage{Code::kInvalidArgument,
                    "usage: ringfence-resolve --jailer FD --datagrams FD --streams FD --above "
                    "ADDRESS [--above ADDRESS...]; started by the jailer, not by hand"};
  if (words.size() % 2 != 0) {
    return usage;
  }
  for (std::size_t i = 0; i < words.size(); i += 2) {
    if (words[i] == "--above" && parts.above.size() < kAboveMax) {
      RINGFENCE_ASSIGN(const auto network,
                       model::Ipv4Network::Parse(std::string(words[i + 1]) + "/32"));
      parts.above.push_back({network.address(), kPort});
      continue;
    }
    os::UniqueFd* const into = words[i] == "--jailer"      ? &parts.jailer
                               : words[i] == "--datagrams" ? &parts.datagrams
                               : words[i] == "--streams"   ? &parts.streams
                                                           : nullptr;
    if (into == nullptr || into->valid()) {
      return usage;
    }
    RINGFENCE_ASSIGN(const int fd, ParseFd(words[i + 1]));
    *into = os::UniqueFd(fd);
  }
  if (!parts.jailer.valid() || !parts.datagrams.valid() || !parts.streams.valid() ||
      parts.above.empty()) {
    return usage;
  }
  return parts;
}

// What the jailer could not take from us before we ran.
Status Harden() {
  RINGFENCE_TRY(os::SetDumpable(false));
  return os::EnterSeccompDenyList(os::DenyExec());
}

int Main(const std::vector<std::string_view>& words) {
  os::SetLogName("resolver");
  auto parts = ParseArguments(words);
  if (!parts.has_value()) {
    (void)std::fprintf(stderr, "ringfence-resolve: %s\n", parts.error().message.c_str());
    return kExitUsage;
  }
  Status done = Harden();
  if (done.has_value()) {
    done = os::SetNonBlocking(parts->jailer.get(), true);
  }
  if (done.has_value()) {
    done = Resolver(std::move(*parts)).Run();
  }
  if (!done.has_value()) {
    os::Log(os::Level::kError, "resolver_ended", {{"reason", done.error().message}});
    return 1;
  }
  return 0;
}

}  // namespace
}  // namespace ringfence::resolve

int main(int argc, char** argv) {
  return ringfence::resolve::Main(
      std::vector<std::string_view>(argv + (argc > 0 ? 1 : 0), argv + argc));
}
