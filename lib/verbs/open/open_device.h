// OpenDevice opens an RDMA device by its name, for a program on the verbs seam alone:
//
//   soft:udp@IP[:UDP_PORT]   our software NIC over UDP (RoCEv2)
//   soft:raw@IP[:UDP_PORT]   the same through raw sockets, which need CAP_NET_RAW
//   ibv:NAME[:PORT][@GID]    RDMA devices of the machine (rdma-core), in hardware or the kernel's
//
// These are the names that tokd --device takes. A name is never answered with another kind of
// device. The daemon sets up its devices itself (lib/daemon/devices).
#pragma once

#include <memory>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "lib/os/epoll_loop.h"
#include "lib/verbs/verbs.h"

namespace tokamak::verbs {

// Thread rule: opened and dropped by one thread, which is none of the device's loops except
// OpenOptions::loop.
class OpenedDevice {
 public:
  // Everything that came from the device must be dropped before.
  virtual ~OpenedDevice() = default;
  virtual Device& device() = 0;
};

struct OpenOptions {
  // The loop that a software NIC works on, whose thread opens and drops it, so that no message has
  // to wake a thread. Null: the NIC gets a thread of its own. An ibv: device needs neither.
  os::EpollLoop* loop = nullptr;

  // How a software NIC's own thread finds out that there is work.
  os::Detection detection;
};

// Opens `name`. kInvalidArgument: it is of no kind above; the text shows the form of a name. Other
// errors are the backend's: the address is not this machine's, its UDP port is taken, there is no
// such RDMA device (the text lists those that there are), its port is down, /dev/infiniband is
// closed.
absl::StatusOr<std::unique_ptr<OpenedDevice>> OpenDevice(absl::string_view name, const OpenOptions& options = {});

}  // namespace tokamak::verbs
