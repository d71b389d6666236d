#include "isolate/exception.h"

#include "isolate/grant.h"

namespace ringfence::isolate {

Result<std::optional<HostAccess>> HostAccess::Open(const crypto::PublicKey& server,
                                                   std::string_view envelope, Timestamp now) {
  RINGFENCE_ASSIGN(const Grant grant, OpenGrant(server, envelope));
  if (!grant.box.exception.has_value()) {
    return std::optional<HostAccess>();
  }
  const GrantException& exception = *grant.box.exception;
  if (now < exception.from || now >= exception.until) {
    return Error{Code::kPermissionDenied,
                 "the exception " + exception.name + " holds from " + FormatTime(exception.from) +
                     " to " + FormatTime(exception.until) + ", and it is " + FormatTime(now),
                 "if that surprises you, compare this machine's clock with the server's"};
  }
  HostAccess access;
  access.lease_ = grant.lease;
  access.name_ = exception.name;
  access.network_ = exception.host_network;
  access.pids_ = exception.host_pid;
  access.until_ = exception.until;
  return std::optional<HostAccess>(std::move(access));
}

}  // namespace ringfence::isolate
