// Conversions between verbs::Address and the socket addresses of system calls and librdmacm.
#pragma once

#include <sys/socket.h>

#include <optional>

#include "lib/verbs/types.h"

namespace tokamak::verbs::ibv {

struct SocketAddress {
  sockaddr_storage storage{};
  socklen_t size = 0;

  sockaddr* get() { return reinterpret_cast<sockaddr*>(&storage); }
  const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&storage); }
};

SocketAddress ToSocketAddress(const Address& address);

// Returns nothing for other families than IP's.
std::optional<Address> FromSocketAddress(const sockaddr* address);

}  // namespace tokamak::verbs::ibv
