#include "lib/verbs/ibv/translation/socket_address.h"

#include <netinet/in.h>

#include <cstring>

namespace tokamak::verbs::ibv {
namespace {

constexpr size_t kIpv4Offset = 12;  // in the IPv4-mapped form

}  // namespace

SocketAddress ToSocketAddress(const Address& address) {
  SocketAddress made;
  if (address.is_ipv4()) {
    sockaddr_in in{};
    in.sin_family = AF_INET;
    in.sin_port = htons(address.port);
    std::memcpy(&in.sin_addr, address.ip.data() + kIpv4Offset, sizeof(in.sin_addr));
    std::memcpy(&made.storage, &in, sizeof(in));
    made.size = sizeof(in);
  } else {
    sockaddr_in6 in{};
    in.sin6_family = AF_INET6;
    in.sin6_port = htons(address.port);
    std::memcpy(&in.sin6_addr, address.ip.data(), sizeof(in.sin6_addr));
    std::memcpy(&made.storage, &in, sizeof(in));
    made.size = sizeof(in);
  }
  return made;
}

std::optional<Address> FromSocketAddress(const sockaddr* address) {
  Address made;
  if (address->sa_family == AF_INET) {
    sockaddr_in in{};
    std::memcpy(&in, address, sizeof(in));
    made.ip[10] = made.ip[11] = 0xff;
    std::memcpy(made.ip.data() + kIpv4Offset, &in.sin_addr, sizeof(in.sin_addr));
    made.port = ntohs(in.sin_port);
    return made;
  }
  if (address->sa_family == AF_INET6) {
    sockaddr_in6 in{};
    std::memcpy(&in, address, sizeof(in));
    std::memcpy(made.ip.data(), &in.sin6_addr, sizeof(in.sin6_addr));
    made.port = ntohs(in.sin6_port);
    return made;
  }
  return std::nullopt;
}

}  // namespace tokamak::verbs::ibv
