#include "os/identity.h"

#include <unistd.h>

#include <algorithm>
#include <climits>
#include <cstdlib>
#include <vector>

#include "os/error.h"

namespace ringfence::os {

bool IsRoot() { return geteuid() == 0; }
int ProcessId() { return getpid(); }
unsigned UserId() { return geteuid(); }
unsigned GroupId() { return getegid(); }

std::string HostName() {
  char text[HOST_NAME_MAX + 1] = {};
  if (gethostname(text, sizeof text - 1) != 0) {
    return "localhost";
  }
  std::string name(text);
  name = name.substr(0, name.find('.'));
  for (char& c : name) {
    if (c >= 'A' && c <= 'Z') {
      c = static_cast<char>(c - 'A' + 'a');
    } else if (!((c >= 'a' && c <= 'z') || (c >= '0' && c <= '9'))) {
      c = '-';
    }
  }
  name.erase(0, std::min(name.find_first_not_of('-'), name.size()));
  return name.empty() ? "localhost" : name.substr(0, 63);
}

Result<std::string> OwnPath() {
  std::vector<char> buffer(PATH_MAX);
  const ssize_t size = readlink("/proc/self/exe", buffer.data(), buffer.size());
  if (size <= 0) {
    return ErrnoError("find own program");
  }
  return std::string(buffer.data(), static_cast<std::size_t>(size));
}

std::optional<std::string> Environment(const char* name) {
  const char* value = std::getenv(name);  // NOLINT(concurrency-mt-unsafe): read-only, never set
  return value == nullptr ? std::nullopt : std::optional<std::string>(value);
}

}  // namespace ringfence::os
