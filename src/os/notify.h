#pragma once

// Tells the service manager how we are doing: the datagrams of sd_notify(3), without its library.

#include <string>
#include <string_view>

namespace ringfence::os {

// Sends `state` ("READY=1", "STOPPING=1"; several divided by line breaks) to $NOTIFY_SOCKET.
// Without that variable nobody asked, and nothing happens. A manager that cannot be reached is
// logged: it will soon find out by itself.
void NotifyManager(std::string_view state);
// What a manager wants to hear when a reload begins: it must hold the monotonic time.
std::string ReloadingState();

}  // namespace ringfence::os
