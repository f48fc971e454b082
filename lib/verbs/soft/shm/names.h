// Names by which NICs of one machine find each other: Unix sockets in the abstract namespace.
//
// A name is of one network namespace, as an IP address is; it needs no file and no privilege, and
// goes with its one socket however the process ends. Anybody may take one: both ends are trusted
// only as our user or root.
#pragma once

#include <sys/socket.h>
#include <sys/un.h>

#include <cstdint>
#include <string>

#include "lib/os/file_descriptor.h"
#include "lib/verbs/types.h"

namespace tokamak::verbs::soft {

// Behind the 0.
constexpr char kNamePrefix[] = "tokamak-nic/1/";

// `address`: as fabrics write it, with port.
std::string NicName(const Address& address, uint32_t share);
std::string ServiceName(const Address& address, uint64_t service_id);
std::string WireName(const Address& address);  // holder of the UDP port

// True for the socket's own name or its peer's.
bool HasNicName(int socket);

// Return a non-blocking socket of `type` (SOCK_SEQPACKET, SOCK_DGRAM) that has the name, or is
// connected to it. None: taken, or nobody's; errno says more (EACCES: another user's).
os::FileDescriptor BindName(int type, const std::string& name);
os::FileDescriptor ConnectName(int type, const std::string& name);

// True for our user, or root.
bool IsTrusted(uid_t user);

struct AbstractName {
  explicit AbstractName(const std::string& name);
  const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&form); }

  sockaddr_un form{};
  socklen_t length = 0;
};

}  // namespace tokamak::verbs::soft
