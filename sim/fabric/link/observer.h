// Observer sees the events of a fabric: write-only, so nothing in it can depend on being watched.
// Statistics, pictures, packet captures and ns-3's trace sources are made of it.
//
// Calls come in the order of the events, during each; the loop's Now() is their time. A frame may
// be read during the call only.
#pragma once

#include <cstdint>

#include "sim/fabric/link/frame.h"

namespace tokamak::sim {

// The reason why a frame was dropped.
enum class DropReason : uint8_t {
  kBuffer,         // a switch's shared buffer, or a queue's share of it, was full
  kHeadroom,       // the same for a lossless priority: its headroom was full, too
  kNoRoute,        // no way to its destination is left
  kWatchdog,       // its queue had been paused for too long
  kLoss,           // by the link's loss model
  kLinkDown,       // the link was down, or went down while the frame was on it
  kReceiveBuffer,  // the host did not take packets fast enough
  kNobody,         // no NIC is plugged in
};
constexpr int kDropReasons = 8;
const char* ToString(DropReason reason);

// A port of a node: hosts and switches are numbered as in their topology, hosts first.
struct Place {
  uint32_t node = 0;
  uint32_t port = 0;
};

class Observer {
 public:
  virtual ~Observer() = default;

  // A frame joins the queue of its priority at a port; `queue_bytes` counts it.
  virtual void OnEnqueue(const Place&, const Frame&, uint64_t /*queue_bytes*/) {}

  // A frame leaves its queue for the wire, where its first bit goes now; `queue_bytes` is what
  // stays.
  virtual void OnDequeue(const Place&, const Frame&, uint64_t /*queue_bytes*/) {}

  // A frame, pause frames included, is put on the wire at this port, or has come from it.
  virtual void OnTransmit(const Place&, const Frame&) {}
  virtual void OnReceive(const Place&, const Frame&) {}

  // A frame is dropped. On a link the place is that of the sender.
  virtual void OnDrop(const Place&, const Frame&, DropReason) {}

  // A frame got its congestion mark, because of `queue_bytes`.
  virtual void OnMark(const Place&, const Frame&, uint64_t /*queue_bytes*/) {}

  // The port asks its neighbour to stop, or resume, sending a priority.
  virtual void OnPauseSent(const Place&, uint8_t /*priority*/, bool /*paused*/) {}

  // The port itself has to stop, or may resume.
  virtual void OnPaused(const Place&, uint8_t /*priority*/, bool /*paused*/) {}

  // A NIC sends a congestion notification.
  virtual void OnNotification(const Place&, const Frame&) {}

  // A queue has been paused for too long: its frames are dropped, or sent nevertheless, from now
  // on; or that ends.
  virtual void OnWatchdog(const Place&, uint8_t /*priority*/, bool /*storm*/) {}
};

}  // namespace tokamak::sim
