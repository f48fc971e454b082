// HostInterface is where a NIC plugs in: the port of a host at its cable, which stays while NICs
// come and go.
//
// It takes one data packet from the NIC when its wire is free and the packet's priority is not
// paused: the NIC decides at the last moment. Congestion notifications are queued at any time.
// Arriving packets are handed to the NIC on its own loop; while that is busy they wait in the
// receive buffer, and are dropped when it is full. A NIC on the network's own loop is called
// directly.
//
// A host outside of the simulation may be plugged in instead (outside_port.h); the wrong kind of
// packet finds nobody.
//
// Law: a NIC that found no room, or whose packets were not all taken, hears when there is room.
// Law: received == delivered + dropped + waiting(), in frames without pause frames.
#pragma once

#include <array>
#include <cstdint>
#include <memory>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "lib/base/event_loop.h"
#include "lib/verbs/soft/fabric.h"
#include "lib/verbs/types.h"
#include "sim/fabric/link/environment.h"
#include "sim/fabric/link/link.h"
#include "sim/fabric/outside_port.h"
#include "sim/fabric/switch/egress_port.h"
#include "sim/fabric/switch/frame_queue.h"
#include "sim/fabric/topology/address_book.h"

namespace tokamak::sim {

constexpr int kDscps = 64;

// Class selectors (RFC 2474): the upper three bits. 26, RoCE's usual DSCP, is in priority 3, and
// 48, of congestion notifications, in 6.
constexpr std::array<uint8_t, kDscps> ClassSelectors() {
  std::array<uint8_t, kDscps> priorities{};
  for (uint8_t i = 0; i < kDscps; ++i) priorities[i] = i / 8;
  return priorities;
}

struct InterfaceOptions {
  uint32_t max_mtu = verbs::kMaxMtu;
  uint64_t receive_buffer = 8 << 20;  // bytes; half of it is receive_window()
  SchedulingOptions scheduling;
  std::array<uint8_t, kDscps> priority_of_dscp = ClassSelectors();
};

class HostInterface final : public FrameReceiver, private EgressOwner {
 public:
  // `number`: its own in `addresses`, which is complete before the first packet.
  HostInterface(Environment& environment, const InterfaceOptions& options, const AddressBook& addresses,
                uint32_t number, Link& out, const Place& place);
  ~HostInterface() override;

  // See Fabric::Open. kAlreadyExists: a NIC is plugged in.
  absl::StatusOr<std::unique_ptr<verbs::soft::Port>> Open(base::EventLoop& loop, const verbs::Address& address,
                                                          verbs::soft::PortCallbacks callbacks);

  // Plugs in a host outside. `on_frame` runs on the network's loop, and must not unplug. `queue`:
  // bytes of each priority that wait to leave. kAlreadyExists: something is plugged in.
  absl::StatusOr<std::unique_ptr<OutsidePort>> OpenOutside(uint64_t queue, OutsidePort::Receiver on_frame);

  void OnLinkChange() { egress_.ForgetPauses(); }

  void Receive(Frame* frame, uint32_t port) override;

  EgressPort& egress() { return egress_; }
  PortCounters counters() const { return egress_.counters(); }
  uint64_t delivered() const { return delivered_; }
  uint64_t notifications_sent() const { return notifications_sent_; }
  uint64_t waiting() const { return waiting_.frames(); }

 private:
  friend class HostPort;
  friend class OutsidePort;

  // Beyond, the NIC's port paces it.
  static constexpr uint64_t kMostNotifications = 1024;

  // For HostPort.
  size_t Send(absl::Span<const verbs::soft::Packet> packets);
  size_t Room();
  void Unplug();

  // For OutsidePort.
  OutsidePort::Sent SendOutside(const OutsideFrame& frame);
  void UnplugOutside() { on_outside_frame_ = nullptr; }

  // EgressOwner.
  void OnDequeue(uint32_t, const Frame&) override {}
  PauseFrame MakePause(uint32_t) override { return PauseFrame(); }
  void OnIdle(uint32_t) override;
  void OnResumed(uint32_t) override;

  bool Takes(const verbs::soft::Packet& packet, uint8_t priority) const;
  void SendFrame(const verbs::soft::Packet& packet, uint8_t priority);
  void Want(uint8_t priority);
  void PostReady();
  void Ready();
  void HandOver();
  void Deliver(Frame* frame);
  void DeliverOutside(Frame* frame);
  void Drop(Frame* frame, DropReason reason);
  uint8_t PriorityOf(const verbs::soft::Packet& packet) const;

  Environment& environment_;
  const InterfaceOptions options_;
  const AddressBook& addresses_;
  const uint32_t number_;
  const uint64_t address_hash_;
  EgressPort egress_;

  // The NIC.
  base::EventLoop* loop_ = nullptr;  // null: none
  verbs::Address address_;
  verbs::soft::PortCallbacks callbacks_;
  bool in_callback_ = false;
  verbs::soft::PortCallbacks retired_;  // of a NIC that unplugged during one of them
  bool wants_ready_ = false;
  uint8_t wanted_priority_ = 0;  // of the packet that could not go
  uint8_t data_priority_ = 0;    // of its last packet
  base::Timer ready_;
  base::Timer hand_over_;
  FrameQueue waiting_;
  verbs::soft::Packet packet_;  // being delivered

  // The host outside.
  OutsidePort::Receiver on_outside_frame_;  // null: none
  uint64_t outside_queue_ = 0;

  verbs::Address last_peer_;
  uint32_t last_number_ = AddressBook::kUnknown;
  uint64_t last_hash_ = 0;

  uint64_t delivered_ = 0;
  uint64_t notifications_sent_ = 0;
};

}  // namespace tokamak::sim
