#include "lib/verbs/soft/shm/link.h"

#include <sys/epoll.h>
#include <sys/socket.h>

#include <cerrno>
#include <utility>
#include <vector>

#include "lib/os/sockets/passed_descriptors.h"
#include "lib/verbs/soft/shm/names.h"
#include "lib/verbs/soft/shm/packet_record.h"

namespace tokamak::verbs::soft {
namespace {

// The first message, which hands over the ring.
constexpr uint32_t kHello = 0x746b6e31;
constexpr int kMostWakes = 64;  // in one turn

bool SendHello(int socket, int ring) {
  uint32_t hello = kHello;
  iovec piece{&hello, sizeof(hello)};
  msghdr message{};
  message.msg_iov = &piece;
  message.msg_iovlen = 1;
  os::PassedDescriptors passed;
  passed.Attach({ring}, &message);
  return sendmsg(socket, &message, MSG_NOSIGNAL) == sizeof(hello);
}

// Returns the ring that came with a hello; none if it was no hello.
os::FileDescriptor ReceiveHello(int socket) {
  uint32_t hello = 0;
  iovec piece{&hello, sizeof(hello)};
  msghdr message{};
  message.msg_iov = &piece;
  message.msg_iovlen = 1;
  os::PassedDescriptors passed;
  passed.Expect(&message);
  const ssize_t length = recvmsg(socket, &message, MSG_CMSG_CLOEXEC);
  if (length < 0) return os::FileDescriptor();
  std::vector<os::FileDescriptor> came;
  const bool all = os::PassedDescriptors::Take(&message, &came).ok();
  if (!all || came.size() != 1 || length != sizeof(hello) || hello != kHello) return os::FileDescriptor();
  return std::move(came.front());
}

// Wakes the other side. A full socket holds a wake-up already.
void Wake(int socket) {
  const uint8_t woken = 1;
  if (send(socket, &woken, sizeof(woken), MSG_NOSIGNAL) != sizeof(woken)) return;
}

// Reads wake-ups. Returns false if the other side is gone.
bool TakeWakes(int socket) {
  for (int i = 0; i < kMostWakes; ++i) {
    uint8_t woken = 0;
    const ssize_t length = recv(socket, &woken, sizeof(woken), 0);
    if (length > 0) continue;
    return length < 0 && (errno == EAGAIN || errno == EINTR);
  }
  return true;
}

}  // namespace

// ---- The writer's.

std::unique_ptr<OutgoingLink> OutgoingLink::Connect(os::EpollLoop& loop, const std::string& name,
                                                    std::function<void()> on_room, std::function<void()> on_end) {
  os::FileDescriptor socket = ConnectName(SOCK_SEQPACKET, name);
  if (!socket.valid()) return nullptr;
  const absl::StatusOr<os::SharedMemory> memory = os::SharedMemory::Create("tokamak-ring", kRingMemory);
  if (!memory.ok()) return nullptr;
  absl::StatusOr<os::MemoryMapping> mapping = os::SharedMemory::Attach(memory->descriptor(), kRingMemory, true);
  if (!mapping.ok()) return nullptr;
  // Ready before the reader has it.
  RingWriter ring(*std::move(mapping));
  if (!SendHello(socket.get(), memory->descriptor())) return nullptr;
  return std::unique_ptr<OutgoingLink>(
      new OutgoingLink(loop, std::move(socket), std::move(ring), std::move(on_room), std::move(on_end)));
}

OutgoingLink::OutgoingLink(os::EpollLoop& loop, os::FileDescriptor socket, RingWriter ring,
                           std::function<void()> on_room, std::function<void()> on_end)
    : loop_(loop),
      socket_(std::move(socket)),
      on_room_(std::move(on_room)),
      on_end_(std::move(on_end)),
      ring_(std::move(ring)) {
  watch_ = loop_.Watch(socket_.get(), EPOLLIN, [this](uint32_t) { OnSocket(); });
}

void OutgoingLink::OnSocket() {
  const std::function<void()> tell = TakeWakes(socket_.get()) ? on_room_ : on_end_;
  tell();
}

OutgoingLink::Result OutgoingLink::Write(const Packet& packet, const Address& source) {
  const uint32_t length = RecordLength(packet);
  uint8_t* const record = ring_.Reserve(length);
  if (record != nullptr) {
    full_since_.reset();
    WriteRecord(packet, source, record);
    ring_.Add(length);
    unpublished_ = true;
    return Result::kTaken;
  }
  Publish();
  const base::Time now = loop_.Now();
  if (!full_since_) full_since_ = now;
  if (now - *full_since_ >= kPatience) return Result::kLost;
  patience_ = loop_.RunAfter(kPatience, on_room_);
  return Result::kFull;
}

void OutgoingLink::Publish() {
  if (!std::exchange(unpublished_, false)) return;
  if (ring_.Publish()) Wake(socket_.get());
}

// ---- The reader's.

IncomingLink::IncomingLink(os::EpollLoop& loop, os::FileDescriptor socket) : socket_(std::move(socket)) {
  watch_ = loop.Watch(socket_.get(), EPOLLIN, [this](uint32_t) { OnSocket(); });
}

void IncomingLink::OnSocket() {
  if (ring_ ? TakeWakes(socket_.get()) : TakeHello()) return;
  watch_.Reset();
  if (ring_) ring_->End();
  ended_ = true;
}

bool IncomingLink::TakeHello() {
  const os::FileDescriptor memory = ReceiveHello(socket_.get());
  if (!memory.valid()) return false;
  absl::StatusOr<os::MemoryMapping> mapping = os::SharedMemory::Attach(memory.get(), kRingMemory, true);
  if (mapping.ok()) ring_.emplace(*std::move(mapping));
  return mapping.ok();
}

IncomingLink::Found IncomingLink::Next(Packet* packet) {
  if (!ring_) return Found::kNothing;
  const absl::Span<const uint8_t> record = ring_->Next();
  if (record.empty()) return Found::kNothing;
  return ReadRecord(record, packet) ? Found::kPacket : Found::kNoPacket;
}

void IncomingLink::Release() {
  if (ring_ && ring_->Release()) Wake(socket_.get());
}

}  // namespace tokamak::verbs::soft
