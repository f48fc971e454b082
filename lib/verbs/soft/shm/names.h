// Names by which NICs of one machine find each other: Unix sockets in the abstract namespace.
//
// A name is of one network namespace, as an IP address is, needs no file and no privilege, can be
// taken by one socket at a time, and goes with it however its process ends: so there is no list,
// and nothing to clean up. Anybody may take one: its owner, or who comes to it, is trusted only
// when it runs as our user, or as root.
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
std::string NicName(const Address& address, uint32_t share);           // a NIC
std::string ServiceName(const Address& address, uint64_t service_id);  // a service
std::string WireName(const Address& address);                          // the NIC that has the UDP port

// Returns true if the socket, or the one that it is connected to, has such a name.
bool HasNicName(int socket);

// Return a socket of that type (SOCK_SEQPACKET, SOCK_DGRAM) that does not block and has the name,
// or is connected to the one that has it. None: the name is taken, or nobody has it; errno says
// more (EACCES: a program of another user has it).
os::FileDescriptor BindName(int type, const std::string& name);
os::FileDescriptor ConnectName(int type, const std::string& name);

// Returns true if a user, as the kernel names him, is ours, or root.
bool IsTrusted(uid_t user);

// The kernel's form of a name.
struct AbstractName {
  explicit AbstractName(const std::string& name);
  const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&form); }

  sockaddr_un form{};
  socklen_t length = 0;
};

}  // namespace tokamak::verbs::soft
