#include "os/error.h"

#include <cerrno>
#include <cstring>
#include <string>

namespace ringfence::os {

Error ErrnoError(std::string_view what, int number) {
  Code code = Code::kInternal;
  std::string hint;
  switch (number) {
    case ENOENT:
    case ESRCH:
      code = Code::kNotFound;
      break;
    case EACCES:
    case EPERM:
    case EROFS:
      code = Code::kPermissionDenied;
      break;
    case EEXIST:
    case EBUSY:
    case EADDRINUSE:
      code = Code::kConflict;
      break;
    case EAGAIN:
    case EINTR:
    case ECONNREFUSED:
    case ECONNRESET:
    case ETIMEDOUT:
    case EPIPE:
    case ENOSPC:
    case EIO:
    case EDQUOT:
      code = Code::kUnavailable;
      break;
    case EMFILE:
    case ENFILE:
    case ENOMEM:
      code = Code::kExhausted;
      break;
    case EINVAL:
    case ENAMETOOLONG:
      code = Code::kInvalidArgument;
      break;
    case EISDIR:
      code = Code::kInvalidArgument;
      hint = "it is a folder: name a file";
      break;
    case ENOTDIR:
      code = Code::kInvalidArgument;
      hint = "it, or a part of its path, is a file: name a folder";
      break;
    default:
      break;
  }
  char text[128];
  return Error{code, std::string(what) + ": " + strerror_r(number, text, sizeof text),
               std::move(hint)};
}

Error ErrnoError(std::string_view what) { return ErrnoError(what, errno); }

}  // namespace ringfence::os
