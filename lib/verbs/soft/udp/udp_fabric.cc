#include "lib/verbs/soft/udp/udp_fabric.h"

#include <sys/epoll.h>

#include <algorithm>
#include <array>
#include <map>
#include <memory>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "lib/base/check.h"
#include "lib/verbs/soft/udp/raw_socket.h"
#include "lib/verbs/soft/udp/udp_receiver.h"
#include "lib/verbs/soft/udp/udp_sender.h"

namespace tokamak::verbs::soft {
namespace {

constexpr absl::string_view kUdpPrefix = "soft:udp@";
constexpr absl::string_view kRawPrefix = "soft:raw@";

// Batches received in a row, before timers and doorbells get their turn.
constexpr int kBatchesPerWake = 2;

// The wait when the kernel has no memory and does not report when it has.
constexpr base::Duration kMemoryDelay = base::Milliseconds(1);

// The kernel charges a socket about twice a packet's bytes and gives a part back late: payload of a
// third of the buffer surely fits.
constexpr uint64_t kBufferPerPayload = 3;

// A port's socket and those of its groups. It lives while a callback runs, even one that drops the
// port.
class UdpEndpoint final : public std::enable_shared_from_this<UdpEndpoint> {
 public:
  UdpEndpoint(os::EpollLoop& loop, UdpSocket socket, const UdpFabricOptions& options, UdpCounters& counters,
              PortCallbacks callbacks)
      : loop_(loop),
        socket_(std::move(socket)),
        options_(options),
        counters_(counters),
        callbacks_(std::move(callbacks)),
        sender_(socket_, options.segment, loop, counters, options.tap),
        receiver_(socket_, loop, counters, options.tap) {}

  void Start() {
    watch_ = loop_.Watch(socket_.wire(), EPOLLIN, [this](uint32_t events) { OnEvents(events); });
  }

  void Close() {
    open_ = false;
    groups_.clear();
    watch_.Reset();
    memory_timer_.Cancel();
  }

  size_t Send(absl::Span<const Packet> packets) {
    const size_t taken = sender_.Send(packets);
    switch (sender_.busy()) {
      case UdpSender::Busy::kNo:
        break;
      case UdpSender::Busy::kSocket:
        watch_.SetEvents(EPOLLIN | EPOLLOUT);
        break;
      case UdpSender::Busy::kMachine:
        memory_timer_ = loop_.RunAfter(kMemoryDelay, [this] { TellReady(); });
        break;
    }
    return taken;
  }

  absl::Status Join(const Address& group) {
    if (socket_.is_raw()) return absl::UnimplementedError("soft:raw carries no multicast; soft:udp does");
    absl::StatusOr<UdpSocket> socket = OpenGroupSocket(socket_, group, options_.socket);
    if (!socket.ok()) return socket.status();
    const auto membership = std::make_shared<Membership>(*std::move(socket), loop_, counters_, options_.tap);
    groups_[group.ip] = membership;
    membership->watch = loop_.Watch(membership->socket.fd.get(), EPOLLIN,
                                    [this, ip = group.ip](uint32_t events) { OnGroupEvents(ip, events); });
    return absl::OkStatus();
  }
  void Leave(const Address& group) { groups_.erase(group.ip); }

  const UdpSocket& socket() const { return socket_; }

 private:
  struct Membership {
    Membership(UdpSocket group, const base::EventLoop& loop, UdpCounters& counters, WireTap* tap)
        : socket(std::move(group)), receiver(socket, loop, counters, tap) {}

    const UdpSocket socket;
    UdpReceiver receiver;
    os::FdWatch watch;
  };

  void OnEvents(uint32_t events) {
    const std::shared_ptr<UdpEndpoint> keep = shared_from_this();
    if ((events & EPOLLERR) != 0) ClearError(socket_.wire());
    if ((events & EPOLLOUT) != 0) {
      watch_.SetEvents(EPOLLIN);
      TellReady();
    }
    if ((events & EPOLLIN) != 0) Receive(receiver_);
  }

  void OnGroupEvents(const std::array<uint8_t, 16>& ip, uint32_t events) {
    const std::shared_ptr<UdpEndpoint> keep = shared_from_this();
    const std::shared_ptr<Membership> membership = groups_.at(ip);
    if ((events & EPOLLERR) != 0) ClearError(membership->socket.fd.get());
    if ((events & EPOLLIN) != 0) Receive(membership->receiver);
  }

  void Receive(UdpReceiver& receiver) {
    for (int i = 0; i < kBatchesPerWake && open_; ++i) {
      const bool more = receiver.Receive([this](absl::Span<const Packet> packets) {
        callbacks_.on_packets(packets);
        return open_;
      });
      if (!more) break;
    }
  }

  void TellReady() {
    const std::shared_ptr<UdpEndpoint> keep = shared_from_this();
    if (callbacks_.on_ready) callbacks_.on_ready();
  }

  // An unconnected socket's error names no packet, but unread wakes us for ever.
  static void ClearError(int fd) {
    int error = 0;
    socklen_t size = sizeof(error);
    getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &size);
  }

  os::EpollLoop& loop_;
  const UdpSocket socket_;
  const UdpFabricOptions options_;
  UdpCounters& counters_;
  const PortCallbacks callbacks_;
  bool open_ = true;
  UdpSender sender_;
  UdpReceiver receiver_;
  os::FdWatch watch_;
  std::map<std::array<uint8_t, 16>, std::shared_ptr<Membership>> groups_;
  base::Timer memory_timer_;
};

class UdpPort final : public Port {
 public:
  explicit UdpPort(std::shared_ptr<UdpEndpoint> endpoint) : endpoint_(std::move(endpoint)) { endpoint_->Start(); }
  ~UdpPort() override { endpoint_->Close(); }

  size_t Send(absl::Span<const Packet> packets) override { return endpoint_->Send(packets); }
  absl::Status Join(const Address& group) override { return endpoint_->Join(group); }
  void Leave(const Address& group) override { endpoint_->Leave(group); }
  const Address& address() const override { return endpoint_->socket().local; }
  uint32_t max_mtu() const override {
    return PathMtuFor(endpoint_->socket().link_mtu, endpoint_->socket().local.is_ipv4());
  }
  uint64_t receive_window() const override { return endpoint_->socket().receive_buffer / kBufferPerPayload; }

 private:
  const std::shared_ptr<UdpEndpoint> endpoint_;
};

}  // namespace

bool IsUdpDevice(absl::string_view name) {
  return absl::StartsWith(name, kUdpPrefix) || absl::StartsWith(name, kRawPrefix);
}

absl::StatusOr<UdpDeviceName> ParseUdpDevice(absl::string_view name) {
  UdpDeviceName device;
  absl::string_view rest = name;
  device.raw = absl::ConsumePrefix(&rest, kRawPrefix);
  if (!device.raw && !absl::ConsumePrefix(&rest, kUdpPrefix)) {
    return absl::InvalidArgumentError(
        absl::StrCat("\"", name, "\" is not of the form soft:udp@ip[:udp_port] or soft:raw@ip[:udp_port]"));
  }
  const absl::StatusOr<Address> address = Address::Parse(rest);
  if (!address.ok()) return address.status();
  if (address->udp_port != 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("\"", name, "\": the UDP port of a device follows a colon, ", kUdpPrefix, "ip:udp_port"));
  }
  device.address = WithRocePort(*address);
  return device;
}

absl::StatusOr<std::unique_ptr<Port>> UdpFabric::Open(base::EventLoop& loop, const Address& address,
                                                      PortCallbacks callbacks) {
  CHECK(&loop == &loop_) << "a UdpFabric belongs to one loop";
  absl::StatusOr<UdpSocket> socket =
      options_.raw ? OpenRawSocket(address, options_.socket) : OpenUdpSocket(address, options_.socket);
  if (!socket.ok()) return socket.status();
  return std::make_unique<UdpPort>(
      std::make_shared<UdpEndpoint>(loop_, *std::move(socket), options_, counters_, std::move(callbacks)));
}

const char* ToString(UdpDrop drop) {
  switch (drop) {
    case UdpDrop::kMalformed:
      return "malformed";
    case UdpDrop::kIcrc:
      return "icrc";
    case UdpDrop::kTruncated:
      return "truncated";
    case UdpDrop::kSocketBuffer:
      return "socket buffer";
    case UdpDrop::kUnreachable:
      return "unreachable";
    case UdpDrop::kTooLong:
      return "too long";
    case UdpDrop::kRefused:
      return "refused";
  }
  return "?";
}

}  // namespace tokamak::verbs::soft
