// OpenDevice opens an RDMA device by its name, for a program on the verbs seam alone:
//
//   soft:udp@IP[:UDP_PORT]   our software NIC over UDP (RoCEv2)
//   soft:raw@IP[:UDP_PORT]   the same through raw sockets, which need CAP_NET_RAW
//   ibv:NAME[:PORT][@GID]    RDMA devices of the machine (rdma-core), in hardware or the kernel's
//
// A name, as of tokd --device, never gets another kind of device. The daemon sets up its devices
// itself (lib/daemon/devices).
#pragma once

#include <memory>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "lib/os/epoll_loop.h"
#include "lib/verbs/verbs.h"

namespace tokamak::verbs {

// Thread rule: opened and dropped by one thread, which is none of the device's loops but
// OpenOptions::loop.
class OpenedDevice {
 public:
  // All that came from the device is dropped before.
  virtual ~OpenedDevice() = default;
  virtual Device& device() = 0;
};

struct OpenOptions {
  // A software NIC's loop, on the thread that opens and drops it: no wake-ups. Null: a thread of
  // its own. ibv: needs neither.
  os::EpollLoop* loop = nullptr;

  // How a software NIC's own thread notices work.
  os::Detection detection;
};

// Opens `name`. kInvalidArgument: no such kind; the text shows a name's form. Others are the
// backend's: not this machine's address, UDP port taken, no such RDMA device (with a list), port
// down, /dev/infiniband closed.
absl::StatusOr<std::unique_ptr<OpenedDevice>> OpenDevice(absl::string_view name, const OpenOptions& options = {});

}  // namespace tokamak::verbs
