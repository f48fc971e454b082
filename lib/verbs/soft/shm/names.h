// Names by which NICs of one machine find each other: Unix sockets in the abstract namespace.
//
// A name is of one network namespace, as an IP address is; it needs no file and no privilege, and
// goes with the one socket that has it, however the process ends. Anybody may take one, so either
// end is trusted only if it runs as our user or as root.
#pragma once

#include <sys/socket.h>
#include <sys/un.h>

#include <cstdint>
#include <string>

#include "lib/os/file_descriptor.h"
#include "lib/verbs/types.h"

namespace tokamak::verbs::soft {

// The first bytes of all names, after the 0.
constexpr char kNamePrefix[] = "tokamak-nic/1/";

// `address` is as fabrics write it, with its port.
std::string NicName(const Address& address, uint32_t share);
std::string ServiceName(const Address& address, uint64_t service_id);
std::string WireName(const Address& address);  // the NIC that holds the UDP port

// True if the socket, or its peer, has such a name.
bool HasNicName(int socket);

// Return a non-blocking socket of `type` (SOCK_SEQPACKET, SOCK_DGRAM) that has the name, or is
// connected to it. None: the name is taken, or nobody has it; errno says more (EACCES: another
// user's program has it).
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
