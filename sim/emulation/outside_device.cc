#include "sim/emulation/outside_device.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <linux/if_tun.h>
#include <net/if.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "lib/os/thread.h"
#include "sim/emulation/frame_edits.h"

namespace tokamak::sim {
namespace {

constexpr int kOn = 1;
constexpr int kSocketBuffer = 4 << 20;
// virtio_net_hdr of linux/virtio_net.h, no C++.
struct OffloadHeader {
  static constexpr uint8_t kNeedsChecksum = 1;

  uint8_t flags = 0;
  uint8_t segments = 0;  // 0: one packet
  uint16_t header_length = 0;
  uint16_t segment_size = 0;
  uint16_t checksum_start = 0;
  uint16_t checksum_offset = 0;
};
static_assert(sizeof(OffloadHeader) == 10);

constexpr uint32_t kLongestFrame = kEthernetHeader + kOutsideMtu;

std::string Reason() { return std::strerror(errno); }

absl::Status Failed(const std::string& what) {
  const std::string why = absl::StrCat(what, ": ", Reason());
  if (errno != EPERM && errno != EACCES) return absl::UnavailableError(why);
  return absl::PermissionDeniedError(absl::StrCat(
      why,
      "; run as root, or as root of a user namespace that the network is of (unshare --user --map-root-user --net)"));
}

absl::Status EnterNetwork(const std::string& path) {
  const os::FileDescriptor there(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!there.valid()) {
    return absl::NotFoundError(absl::StrCat("no network namespace ", path, ": ", Reason(), "; see `ip netns list`"));
  }
  if (setns(there.get(), CLONE_NEWNET) != 0) return Failed(absl::StrCat("cannot enter the network ", path));
  return absl::OkStatus();
}

ifreq RequestFor(const std::string& interface) {
  ifreq request = {};
  std::memcpy(request.ifr_name, interface.data(), std::min<size_t>(interface.size(), IFNAMSIZ - 1));
  return request;
}

// Gives a new interface the largest MTU, or checks an existing one's; brings it up.
absl::Status SetUp(const std::string& interface, bool is_new) {
  const os::FileDescriptor any(socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  ifreq request = RequestFor(interface);
  if (is_new) {
    request.ifr_mtu = kOutsideMtu;
    if (ioctl(any.get(), SIOCSIFMTU, &request) != 0) return Failed(absl::StrCat("the MTU of ", interface));
  } else {
    if (ioctl(any.get(), SIOCGIFMTU, &request) != 0) return Failed(absl::StrCat("the MTU of ", interface));
    if (request.ifr_mtu > static_cast<int>(kOutsideMtu)) {
      return absl::FailedPreconditionError(absl::StrCat(interface, " has an MTU of ", request.ifr_mtu,
                                                        ", and the fabric carries packets of ", kOutsideMtu,
                                                        " bytes: ip link set dev ", interface, " mtu ", kOutsideMtu));
    }
  }
  if (ioctl(any.get(), SIOCGIFFLAGS, &request) != 0) return Failed(absl::StrCat("the flags of ", interface));
  request.ifr_flags = static_cast<short>(request.ifr_flags | IFF_UP);
  if (ioctl(any.get(), SIOCSIFFLAGS, &request) != 0) return Failed(absl::StrCat("cannot set ", interface, " up"));
  return absl::OkStatus();
}

OutsideDevice::Result ResultOfErrno() {
  switch (errno) {
    case EAGAIN:
    case EINTR:
      return OutsideDevice::Result::kNothing;
    case EBADFD:
    case ENODEV:
    case ENXIO:
      return OutsideDevice::Result::kGone;
    default:
      return OutsideDevice::Result::kFailed;
  }
}

}  // namespace

absl::StatusOr<std::unique_ptr<OutsideDevice>> OutsideDevice::Open(const AttachPoint& point) {
  if (point.descriptor >= 0) return OpenSocket(point.descriptor);
  if (point.network.empty()) return OpenInterface(point.interface);
  // A thread that ends there: only root may go back.
  absl::StatusOr<std::unique_ptr<OutsideDevice>> device;
  os::StartThread({"emulate-visit"}, [&] {
    const absl::Status entered = EnterNetwork(point.network);
    device = entered.ok() ? OpenInterface(point.interface) : entered;
  }).join();
  return device;
}

absl::StatusOr<std::unique_ptr<OutsideDevice>> OutsideDevice::OpenSocket(int descriptor) {
  os::FileDescriptor fd(fcntl(descriptor, F_DUPFD_CLOEXEC, 0));
  int type = 0;
  socklen_t size = sizeof(type);
  if (!fd.valid() || getsockopt(fd.get(), SOL_SOCKET, SO_TYPE, &type, &size) != 0 || type != SOCK_DGRAM) {
    return absl::InvalidArgumentError(absl::StrCat("fd:", descriptor, " is no datagram socket that was inherited"));
  }
  if (fcntl(fd.get(), F_SETFL, fcntl(fd.get(), F_GETFL) | O_NONBLOCK) != 0) return Failed("the socket");
  return std::unique_ptr<OutsideDevice>(new OutsideDevice(std::move(fd), false, absl::StrCat("socket ", descriptor)));
}

absl::StatusOr<std::unique_ptr<OutsideDevice>> OutsideDevice::OpenInterface(const std::string& interface) {
  const bool is_new = if_nametoindex(interface.c_str()) == 0;
  os::FileDescriptor fd(open("/dev/net/tun", O_RDWR | O_NONBLOCK | O_CLOEXEC));
  if (!fd.valid()) {
    if (!is_new) return OpenPackets(interface);
    return Failed(absl::StrCat("there is no interface ", interface,
                               ", and none can be made without /dev/net/tun (modprobe tun; or lay a veth pair)"));
  }
  ifreq request = RequestFor(interface);
  request.ifr_flags = IFF_TAP | IFF_NO_PI;
  if (ioctl(fd.get(), TUNSETIFF, &request) != 0) {
    // No tap, or read by another.
    if (!is_new && (errno == EINVAL || errno == EBUSY)) return OpenPackets(interface);
    return Failed(absl::StrCat("cannot make the tap ", interface));
  }
  if (absl::Status s = SetUp(interface, is_new); !s.ok()) return s;
  return std::unique_ptr<OutsideDevice>(new OutsideDevice(std::move(fd), false, absl::StrCat("tap ", interface)));
}

absl::StatusOr<std::unique_ptr<OutsideDevice>> OutsideDevice::OpenPackets(const std::string& interface) {
  if (absl::Status s = SetUp(interface, false); !s.ok()) return s;
  os::FileDescriptor fd(socket(AF_PACKET, SOCK_RAW | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (!fd.valid()) return Failed(absl::StrCat("cannot open a packet socket on ", interface));
  sockaddr_ll address = {};
  address.sll_family = AF_PACKET;
  address.sll_protocol = htons(ETH_P_ALL);
  address.sll_ifindex = static_cast<int>(if_nametoindex(interface.c_str()));
  if (setsockopt(fd.get(), SOL_PACKET, PACKET_VNET_HDR, &kOn, sizeof(kOn)) != 0 ||
      setsockopt(fd.get(), SOL_PACKET, PACKET_IGNORE_OUTGOING, &kOn, sizeof(kOn)) != 0 ||
      setsockopt(fd.get(), SOL_SOCKET, SO_RCVBUF, &kSocketBuffer, sizeof(kSocketBuffer)) != 0 ||
      bind(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)) != 0) {
    return Failed(absl::StrCat("cannot listen on ", interface));
  }
  return std::unique_ptr<OutsideDevice>(new OutsideDevice(std::move(fd), true, absl::StrCat("interface ", interface)));
}

OutsideDevice::Result OutsideDevice::Read(std::vector<uint8_t>* frame) {
  frame->resize(kLongestFrame + 1);
  OffloadHeader header;
  iovec pieces[2] = {{&header, sizeof(header)}, {frame->data(), frame->size()}};
  const ssize_t got = readv(fd_.get(), has_header_ ? pieces : pieces + 1, has_header_ ? 2 : 1);
  if (got < 0) return ResultOfErrno();
  const size_t length = static_cast<size_t>(got) - (has_header_ ? sizeof(header) : 0);
  if (header.segments != 0) return Result::kUncut;
  if (length > kLongestFrame) return Result::kTooLong;
  frame->resize(length);
  if ((header.flags & OffloadHeader::kNeedsChecksum) == 0) return Result::kDone;
  return CompleteChecksum(absl::MakeSpan(*frame), header.checksum_start, header.checksum_offset) ? Result::kDone
                                                                                                 : Result::kFailed;
}

OutsideDevice::Result OutsideDevice::Write(absl::Span<const uint8_t> frame) {
  OffloadHeader header;
  iovec pieces[2] = {{&header, sizeof(header)}, {const_cast<uint8_t*>(frame.data()), frame.size()}};
  if (writev(fd_.get(), has_header_ ? pieces : pieces + 1, has_header_ ? 2 : 1) >= 0) return Result::kDone;
  return ResultOfErrno();
}

}  // namespace tokamak::sim
