// One direction between two NICs of a machine: a ring that one writes and the other reads, and a
// socket that ends when either of them does.
//
// The socket's first message hands the ring over; others wake a side that waits for records or for
// room.
// Thread rule: one loop's.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <utility>

#include "absl/status/statusor.h"
#include "lib/base/time.h"
#include "lib/os/epoll_loop.h"
#include "lib/os/file_descriptor.h"
#include "lib/verbs/soft/packets/packet.h"
#include "lib/verbs/soft/shm/ring.h"

namespace tokamak::verbs::soft {

class OutgoingLink final {
 public:
  // A reader that takes nothing for this long loses packets until it does, and holds up no
  // others.
  static constexpr base::Duration kPatience = base::Milliseconds(10);

  enum class Result : uint8_t { kTaken, kFull, kLost };

  // Connects to the NIC of that name. `on_room` runs after kFull when it is armed and there is
  // room, and after kPatience; `on_end` runs when the other side is gone, and may drop the link.
  // Null: nobody has the name, or this process can have no more memory or descriptors.
  static std::unique_ptr<OutgoingLink> Connect(os::EpollLoop& loop, const std::string& name,
                                               std::function<void()> on_room, std::function<void()> on_end);

  // Writes a packet that comes from `source`. The other side sees it after Publish.
  Result Write(const Packet& packet, const Address& source);
  // Shows written packets to the other side; wakes it if it waits.
  void Publish();

  // After kFull: true if there is room again.
  bool has_room() const { return ring_.has_room(); }
  // Asks for a wake-up when there is room.
  void Arm() { ring_.WaitForRoom(); }

 private:
  OutgoingLink(os::EpollLoop& loop, os::FileDescriptor socket, RingWriter ring, std::function<void()> on_room,
               std::function<void()> on_end);
  void OnSocket();

  os::EpollLoop& loop_;
  const os::FileDescriptor socket_;
  const std::function<void()> on_room_;
  const std::function<void()> on_end_;
  RingWriter ring_;
  std::optional<base::Time> full_since_;
  bool unpublished_ = false;
  base::Timer patience_;
  os::FdWatch watch_;
};

class IncomingLink final {
 public:
  enum class Found : uint8_t { kNothing, kPacket, kNoPacket };

  // Another NIC connected `socket`.
  IncomingLink(os::EpollLoop& loop, os::FileDescriptor socket);

  // Finds the next record; its packet lives until Release.
  Found Next(Packet* packet);
  // True if the other NIC is gone or broke the protocol: Next finds only what it had written until
  // then.
  bool ended() const { return ended_; }
  // Gives the writer the room of the records that Next returned.
  void Release();
  // Asks for a wake-up when there is a record.
  void Arm() {
    if (ring_) ring_->Arm();
  }

 private:
  void OnSocket();
  bool TakeHello();

  const os::FileDescriptor socket_;
  std::optional<RingReader> ring_;  // once the hello has come
  bool ended_ = false;
  os::FdWatch watch_;
};

}  // namespace tokamak::verbs::soft
