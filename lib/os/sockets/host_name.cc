#include "lib/os/sockets/host_name.h"

#include <limits.h>
#include <netdb.h>
#include <sys/socket.h>
#include <unistd.h>

namespace tokamak::os {

std::string HostName() {
  char name[HOST_NAME_MAX + 1] = {};
  return gethostname(name, HOST_NAME_MAX) == 0 ? name : std::string();
}

std::string WholeHostName() {
  addrinfo hints = {};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_CANONNAME;
  addrinfo* first = nullptr;
  if (getaddrinfo(HostName().c_str(), nullptr, &hints, &first) != 0) return {};
  const std::string whole = first->ai_canonname == nullptr ? "" : first->ai_canonname;
  freeaddrinfo(first);
  return whole;
}

}  // namespace tokamak::os
