#include "lib/verbs/soft/shared/shared_address_fabric.h"

#include <sys/epoll.h>
#include <sys/socket.h>

#include <cerrno>
#include <set>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "lib/base/check.h"
#include "lib/base/log.h"
#include "lib/os/file_descriptor.h"
#include "lib/verbs/soft/packets/datagram.h"
#include "lib/verbs/soft/shm/names.h"

namespace tokamak::verbs::soft {
namespace {

UdpFabricOptions SendsOnly() {
  UdpFabricOptions options;
  options.socket.sends_only = true;
  return options;
}

// One NIC's port, to the others at its address and to the wire.
class SharedPort final : public Port {
 public:
  SharedPort(os::EpollLoop& loop, UdpFabric& receiving, UdpFabric& sending, const Address& address,
             PortCallbacks callbacks)
      : loop_(loop),
        receiving_(receiving),
        sending_(sending),
        address_(WithRocePort(address)),
        callbacks_(std::move(callbacks)) {}
  ~SharedPort() override { *open_ = false; }

  absl::Status Open(ShmFabric& neighbours) {
    absl::StatusOr<std::unique_ptr<ShmPort>> port = neighbours.OpenShm(
        address_,
        {[this](absl::Span<const Packet> packets) { callbacks_.on_packets(packets); }, [this] { TellReady(); }});
    if (!port.ok()) return port.status();
    neighbours_ = *std::move(port);
    Elect();
    if (is_anothers_) return AnothersName();
    return holds_name() ? Hold() : OpenWire(sending_);
  }

  size_t Send(absl::Span<const Packet> packets) override {
    size_t taken = 0;
    while (taken < packets.size()) {
      const bool near = IsNear(packets[taken]);
      size_t end = taken + 1;
      while (end < packets.size() && IsNear(packets[end]) == near) ++end;
      const absl::Span<const Packet> part = packets.subspan(taken, end - taken);
      const size_t sent = near ? neighbours_->Send(part) : wire_->Send(part);
      taken += sent;
      if (sent < part.size()) break;
    }
    return taken;
  }

  const Address& address() const override { return address_; }
  NumberShare numbers() const override { return neighbours_->numbers(); }
  absl::Status Serve(uint64_t service_id) override { return neighbours_->Serve(service_id); }
  void Withdraw(uint64_t service_id) override { neighbours_->Withdraw(service_id); }
  uint32_t max_mtu() const override { return wire_->max_mtu(); }
  uint64_t receive_window() const override { return wire_->receive_window(); }

  absl::Status Join(const Address& group) override {
    absl::Status joined = wire_->Join(group);
    if (joined.ok()) groups_.insert(group);
    return joined;
  }
  void Leave(const Address& group) override {
    groups_.erase(group);
    wire_->Leave(group);
  }

 private:
  // The time between two looks at a name or a port that is changing its owner.
  static constexpr base::Duration kRetry = base::Milliseconds(1);
  static constexpr base::Duration kLongestRetry = base::Milliseconds(100);
  static constexpr base::Duration kSettled = base::Milliseconds(200);  // after a warning

  bool IsNear(const Packet& packet) const {
    return packet.peer.ip == address_.ip && (packet.peer.port == 0 || packet.peer.port == address_.port);
  }
  bool holds_name() const { return name_.valid(); }

  absl::Status AnothersName() const {
    return absl::PermissionDeniedError(
        absl::StrCat("a program of another user has the address ", address_.ToString(), ": choose another"));
  }

  // Takes the name, or waits for its owner's end.
  void Elect() {
    name_ = BindName(SOCK_SEQPACKET, WireName(address_));
    // Connections are not accepted: they only wait for the end.
    if (holds_name() && listen(name_.get(), NumberShare::kShares) == 0) {
      election_retry_ = kRetry;
      return;
    }
    name_.Close();
    holder_ = ConnectName(SOCK_SEQPACKET, WireName(address_));
    const int error = holder_.valid() ? 0 : errno;
    const bool was_anothers = std::exchange(is_anothers_, error == EACCES);
    LOG_IF(WARNING, is_anothers_ && !was_anothers && wire_ != nullptr)
        << "no packet arrives from other machines: " << AnothersName().message();
    if (holder_.valid()) {
      election_retry_ = kRetry;
      holder_watch_ = loop_.Watch(holder_.get(), EPOLLIN | EPOLLRDHUP, [this](uint32_t) {
        holder_watch_.Reset();
        holder_.Close();
        Succeed();
      });
      return;
    }
    // A name that changes its owner is free for a moment. A stranger's, or one whose owner does not
    // let us wait, is looked for ever less often.
    LOG_IF(WARNING, election_retry_ == kLongestRetry && !is_anothers_)
        << "no packet may arrive from other machines: who has the address " << address_.ToString()
        << " does not say when it ends";
    retry_ = loop_.RunAfter(election_retry_, [this] { Succeed(); });
    election_retry_ = election_retry_ < kLongestRetry ? std::min(election_retry_ * 2, kLongestRetry) : kSettled;
  }

  // Succeeds an owner of the name that is gone, or was not found.
  void Succeed() {
    Elect();
    if (holds_name()) TakePort(kRetry);
  }

  // Tries until the former owner of the port has let it go.
  void TakePort(base::Duration retry) {
    const absl::Status held = Hold();
    if (held.ok()) return TellReady();
    LOG_IF(WARNING, retry == kLongestRetry) << "until then no packet arrives from other machines: " << held.message();
    retry_ = loop_.RunAfter(
        retry, [this, retry] { TakePort(retry < kLongestRetry ? std::min(retry * 2, kLongestRetry) : kSettled); });
  }

  absl::Status Hold() { return OpenWire(receiving_); }

  absl::Status OpenWire(UdpFabric& fabric) {
    absl::StatusOr<std::unique_ptr<Port>> port = fabric.Open(
        loop_, address_, {[this](absl::Span<const Packet> packets) { OnWire(packets); }, [this] { TellReady(); }});
    if (!port.ok()) return port.status();
    wire_.reset();
    for (const Address& group : groups_) {
      if (absl::Status joined = (*port)->Join(group); !joined.ok()) LOG(WARNING) << joined.message();
    }
    wire_ = *std::move(port);
    return absl::OkStatus();
  }

  // Packets from the wire are mostly for us.
  void OnWire(absl::Span<const Packet> packets) {
    const std::shared_ptr<const bool> open = open_;
    size_t begin = 0;
    for (size_t i = 0; i < packets.size() && *open; ++i) {
      if (!neighbours_->HandOn(packets[i])) continue;
      if (i > begin) callbacks_.on_packets(packets.subspan(begin, i - begin));
      begin = i + 1;
    }
    if (*open && begin < packets.size()) callbacks_.on_packets(packets.subspan(begin));
    if (*open) neighbours_->Publish();
  }

  void TellReady() {
    if (callbacks_.on_ready) callbacks_.on_ready();
  }

  os::EpollLoop& loop_;
  UdpFabric& receiving_;
  UdpFabric& sending_;
  const Address address_;
  const PortCallbacks callbacks_;
  const std::shared_ptr<bool> open_ = std::make_shared<bool>(true);
  std::unique_ptr<ShmPort> neighbours_;
  std::unique_ptr<Port> wire_;
  std::set<Address> groups_;
  os::FileDescriptor name_;    // the wire's, if held
  os::FileDescriptor holder_;  // ends with the owner
  bool is_anothers_ = false;   // true if a stranger owns it
  base::Duration election_retry_ = kRetry;
  os::FdWatch holder_watch_;
  base::Timer retry_;
};

}  // namespace

SharedAddressFabric::SharedAddressFabric(os::EpollLoop& loop)
    : loop_(loop), neighbours_(loop), receiving_(loop), sending_(loop, SendsOnly()) {}

absl::StatusOr<std::unique_ptr<Port>> SharedAddressFabric::Open(base::EventLoop& loop, const Address& address,
                                                                PortCallbacks callbacks) {
  CHECK(&loop == &loop_) << "a SharedAddressFabric belongs to one loop";
  auto port = std::make_unique<SharedPort>(loop_, receiving_, sending_, address, std::move(callbacks));
  if (absl::Status opened = port->Open(neighbours_); !opened.ok()) return opened;
  return port;
}

}  // namespace tokamak::verbs::soft
