#include "lib/verbs/soft/shm/names.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstring>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "lib/base/check.h"
#include "lib/os/sockets/unix_socket.h"

namespace tokamak::verbs::soft {
namespace {

std::string Base(const Address& address) { return absl::StrCat(kNamePrefix, address.ToString(), "/"); }

bool IsNicName(const sockaddr_un& name, socklen_t length) {
  if (name.sun_family != AF_UNIX || length <= offsetof(sockaddr_un, sun_path) + 1 || name.sun_path[0] != '\0') {
    return false;
  }
  const absl::string_view text(name.sun_path + 1, length - offsetof(sockaddr_un, sun_path) - 1);
  return absl::StartsWith(text, kNamePrefix);
}

os::FileDescriptor MakeSocket(int type) {
  return os::FileDescriptor(socket(AF_UNIX, type | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
}

}  // namespace

std::string NicName(const Address& address, uint32_t share) { return absl::StrCat(Base(address), "nic/", share); }

std::string ServiceName(const Address& address, uint64_t service_id) {
  return absl::StrCat(Base(address), "service/", absl::Hex(service_id));
}

std::string WireName(const Address& address) { return absl::StrCat(Base(address), "wire"); }

AbstractName::AbstractName(const std::string& name) {
  CHECK_LT(name.size(), sizeof(form.sun_path));
  form.sun_family = AF_UNIX;
  std::copy(name.begin(), name.end(), form.sun_path + 1);
  length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
}

bool HasNicName(int socket) {
  sockaddr_un name{};
  socklen_t length = sizeof(name);
  if (getsockname(socket, reinterpret_cast<sockaddr*>(&name), &length) == 0 && IsNicName(name, length)) return true;
  length = sizeof(name);
  return getpeername(socket, reinterpret_cast<sockaddr*>(&name), &length) == 0 && IsNicName(name, length);
}

os::FileDescriptor BindName(int type, const std::string& name) {
  os::FileDescriptor made = MakeSocket(type);
  const AbstractName form(name);
  if (!made.valid() || bind(made.get(), form.get(), form.length) != 0) return os::FileDescriptor();
  return made;
}

os::FileDescriptor ConnectName(int type, const std::string& name) {
  os::FileDescriptor made = MakeSocket(type);
  const AbstractName form(name);
  if (!made.valid() || connect(made.get(), form.get(), form.length) != 0) return os::FileDescriptor();
  if (!IsTrusted(os::PeerOf(made.get()).uid)) {
    made.Close();
    errno = EACCES;
  }
  return made;
}

// The kernel names a message's real user.
bool IsTrusted(uid_t user) { return user == geteuid() || user == getuid() || user == 0; }

}  // namespace tokamak::verbs::soft
