#include "lib/verbs/soft/shm/endpoint.h"

#include <sys/epoll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <iterator>

#include "absl/strings/str_cat.h"
#include "lib/os/sockets/unix_socket.h"
#include "lib/verbs/soft/packets/datagram.h"
#include "lib/verbs/soft/shm/mad_route.h"
#include "lib/verbs/soft/shm/names.h"

namespace tokamak::verbs::soft {
namespace {

// How long a process without free descriptors waits to accept again.
constexpr base::Duration kAcceptRetry = base::Milliseconds(100);

// Receives the next message, without its bytes if it is a stranger's. Negative: there is none.
ssize_t ReceiveTrusted(int socket, absl::Span<uint8_t> to) {
  iovec piece{to.data(), to.size()};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(ucred))];  // no room for descriptors: they stay out
  msghdr message{};
  message.msg_iov = &piece;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof(control);
  const ssize_t length = recvmsg(socket, &message, MSG_CMSG_CLOEXEC);
  if (length < 0) return length;
  for (cmsghdr* part = CMSG_FIRSTHDR(&message); part != nullptr; part = CMSG_NXTHDR(&message, part)) {
    if (part->cmsg_level != SOL_SOCKET || part->cmsg_type != SCM_CREDENTIALS) continue;
    ucred from{};
    std::memcpy(&from, CMSG_DATA(part), sizeof(from));
    if (IsTrusted(from.uid)) return length;
  }
  return 0;
}

}  // namespace

ShmEndpoint::ShmEndpoint(os::EpollLoop& loop, const Address& address, NumberShare share, os::FileDescriptor listener,
                         PortCallbacks callbacks)
    : loop_(loop),
      address_(address),
      share_(share),
      listener_(std::move(listener)),
      messenger_(socket(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0)),
      callbacks_(std::move(callbacks)) {}

void ShmEndpoint::Start() {
  listener_watch_ = loop_.Watch(listener_.get(), EPOLLIN, [this](uint32_t) { Accept(); });
  poller_ = loop_.AddPoller(*this);
}

void ShmEndpoint::Close() {
  open_ = false;
  poller_.Reset();
  listener_watch_.Reset();
  services_.clear();
  outgoing_.clear();
  accept_again_.Cancel();
  closed_.splice(closed_.end(), incoming_);
}

// ---- From others.

void ShmEndpoint::Accept() {
  for (int i = 0; i < kAcceptsPerTurn; ++i) {
    os::FileDescriptor socket(accept4(listener_.get(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
    if (!socket.valid() && (errno == EMFILE || errno == ENFILE)) {
      listener_watch_.SetEvents(0);
      accept_again_ = loop_.RunAfter(kAcceptRetry, [this] { listener_watch_.SetEvents(EPOLLIN); });
    }
    if (!socket.valid()) return;
    if (incoming_.size() >= kMostLinks || !IsTrusted(os::PeerOf(socket.get()).uid)) continue;
    incoming_.emplace_back(loop_, std::move(socket));
  }
}

bool ShmEndpoint::Poll() {
  const auto keep = shared_from_this();
  bool any = false;
  for (auto link = incoming_.begin(); link != incoming_.end();) {
    const bool drained = Drain(*link);
    if (!open_) return true;  // the links are gone
    const bool is_over = link->ended() && !drained;
    any |= drained || is_over;
    link = is_over ? incoming_.erase(link) : std::next(link);
  }
  if (full_link_ != nullptr && full_link_->has_room()) {
    full_link_ = nullptr;
    TellReady();
    any = true;
  }
  return any;
}

void ShmEndpoint::Arm() {
  for (IncomingLink& link : incoming_) link.Arm();
  if (full_link_ != nullptr) full_link_->Arm();
}

// Takes a batch of a link. Returns false if there was nothing.
bool ShmEndpoint::Drain(IncomingLink& link) {
  size_t looked_at = 0, count = 0;
  for (; looked_at < kBatch; ++looked_at) {
    const IncomingLink::Found found = link.Next(&batch_[count]);
    if (found == IncomingLink::Found::kNothing) break;
    if (found == IncomingLink::Found::kPacket) ++count;
  }
  if (looked_at == 0) return false;
  if (count > 0) Deliver(absl::MakeConstSpan(batch_.data(), count));
  if (open_) link.Release();
  return true;
}

void ShmEndpoint::Deliver(absl::Span<const Packet> packets) { callbacks_.on_packets(packets); }

void ShmEndpoint::OnService(uint64_t service_id) {
  const auto keep = shared_from_this();
  for (size_t count = 0; open_ && count < kBatch; ++count) {
    const auto service = services_.find(service_id);
    if (service == services_.end()) return;
    const ssize_t length = ReceiveTrusted(service->second.socket.get(), absl::MakeSpan(record_));
    if (length < 0) return;
    Packet packet;
    const absl::Span<const uint8_t> record(record_.data(), static_cast<size_t>(length));
    if (ReadRecord(record, &packet) && packet.destination == kManagementQueuePair) Deliver({&packet, 1});
  }
}

absl::Status ShmEndpoint::Serve(uint64_t service_id) {
  Service service;
  service.socket = BindName(SOCK_DGRAM, ServiceName(address_, service_id));
  if (!service.socket.valid()) {
    if (errno == EADDRINUSE) return absl::AlreadyExistsError("another program at this address serves it");
    return absl::UnavailableError(absl::StrCat("cannot make a Unix socket: ", std::strerror(errno)));
  }
  const int yes = 1;  // each message names its user
  if (setsockopt(service.socket.get(), SOL_SOCKET, SO_PASSCRED, &yes, sizeof(yes)) != 0) {
    return absl::UnavailableError(absl::StrCat("cannot make a Unix socket: ", std::strerror(errno)));
  }
  service.watch = loop_.Watch(service.socket.get(), EPOLLIN, [this, service_id](uint32_t) { OnService(service_id); });
  services_[service_id] = std::move(service);
  return absl::OkStatus();
}

// ---- To others.

size_t ShmEndpoint::Send(absl::Span<const Packet> packets) {
  size_t taken = 0;
  full_link_ = nullptr;
  for (const Packet& packet : packets) {
    OutgoingLink::Result result = OutgoingLink::Result::kLost;
    if (packet.destination == kManagementQueuePair) {
      result = WriteMad(packet, DestinationOf(packet.peer, address_), address_);
    } else {
      const uint32_t share = NumberShare::IndexOf(packet.destination, kQueuePairNumberBits);
      result = Write(LinkTo(packet.peer, share), packet, address_);
    }
    if (result == OutgoingLink::Result::kFull) {
      full_link_ = last_link_;
      break;
    }
    ++taken;
  }
  Publish();
  return taken;
}

bool ShmEndpoint::HandOn(const Packet& packet) {
  if (packet.came_to_group()) return false;
  if (packet.destination == kManagementQueuePair) {
    const MadRoute route = RouteOf(packet);
    if (route.service_id) {
      return services_.count(*route.service_id) == 0 && AskService(*route.service_id, packet, address_, packet.peer);
    }
    if (!route.share || *route.share == share_.index()) return false;
    OutgoingLink* const link = LinkTo(address_, *route.share);
    Write(link, packet, packet.peer);
    return link != nullptr;
  }
  const uint32_t share = NumberShare::IndexOf(packet.destination, kQueuePairNumberBits);
  if (share == share_.index()) return false;
  OutgoingLink* const link = LinkTo(address_, share);
  Write(link, packet, packet.peer);
  return link != nullptr;
}

void ShmEndpoint::Publish() {
  for (OutgoingLink* link : written_) link->Publish();
  written_.clear();
}

OutgoingLink::Result ShmEndpoint::Write(OutgoingLink* link, const Packet& packet, const Address& source) {
  if (link == nullptr) return OutgoingLink::Result::kLost;
  const OutgoingLink::Result result = link->Write(packet, source);
  if (result == OutgoingLink::Result::kTaken && (written_.empty() || written_.back() != link)) written_.push_back(link);
  return result;
}

// Any NIC may refuse a question without a service.
OutgoingLink::Result ShmEndpoint::WriteMad(const Packet& packet, const Address& to, const Address& source) {
  const MadRoute route = RouteOf(packet);
  if (route.service_id && AskService(*route.service_id, packet, to, source)) return OutgoingLink::Result::kTaken;
  return Write(route.share ? LinkTo(to, *route.share) : LinkToAnyAt(to), packet, source);
}

bool ShmEndpoint::AskService(uint64_t service_id, const Packet& packet, const Address& to, const Address& source) {
  std::array<uint8_t, kMaxRecord> record;
  const uint32_t length = RecordLength(packet);
  WriteRecord(packet, source, record.data());
  const AbstractName name(ServiceName(to, service_id));
  // A message that finds no room is lost.
  return sendto(messenger_.get(), record.data(), length, MSG_NOSIGNAL, name.get(), name.length) >= 0 || errno == EAGAIN;
}

OutgoingLink* ShmEndpoint::LinkTo(const Address& address, uint32_t share) {
  if (last_peer_ != nullptr && last_peer_->second == share && last_peer_->first.ip == address.ip &&
      last_peer_->first.port == (address.port == 0 ? address_.port : address.port)) {
    return last_link_;
  }
  const Peer peer(DestinationOf(address, address_), share);
  auto found = outgoing_.find(peer);
  if (found == outgoing_.end()) {
    if (outgoing_.size() >= kMostLinks) return nullptr;
    const auto absent = absent_until_.find(peer);
    if (absent != absent_until_.end() && loop_.Now() < absent->second) return nullptr;
    std::unique_ptr<OutgoingLink> link = OutgoingLink::Connect(
        loop_, NicName(peer.first, share), [this] { TellReady(); },
        [this, peer] {
          const auto ended = outgoing_.find(peer);
          if (ended == outgoing_.end()) return;
          last_peer_ = nullptr;
          if (full_link_ == ended->second.get()) full_link_ = nullptr;
          written_.erase(std::remove(written_.begin(), written_.end(), ended->second.get()), written_.end());
          outgoing_.erase(ended);
          TellReady();
        });
    if (link == nullptr) {
      if (absent_until_.size() >= kMostLinks) absent_until_.clear();
      absent_until_[peer] = loop_.Now() + kAbsence;
      return nullptr;
    }
    absent_until_.erase(peer);
    found = outgoing_.emplace(peer, std::move(link)).first;
  }
  last_peer_ = &found->first;
  last_link_ = found->second.get();
  return last_link_;
}

OutgoingLink* ShmEndpoint::LinkToAnyAt(const Address& address) {
  for (uint32_t share = 0; share < NumberShare::kShares; ++share) {
    if (OutgoingLink* const link = LinkTo(address, share)) return link;
  }
  return nullptr;
}

void ShmEndpoint::TellReady() {
  const auto keep = shared_from_this();
  if (open_ && callbacks_.on_ready) callbacks_.on_ready();
}

}  // namespace tokamak::verbs::soft
