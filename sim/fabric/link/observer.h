// Observer is told what happens in a fabric: write-only, so that nothing in it can depend on being
// watched. Statistics, pictures, packet captures and ns-3's trace sources are made of it.
//
// Calls come in the order in which things happen, during the event; the loop's Now() is their time.
// A frame may be looked at during the call only.
#pragma once

#include <cstdint>

#include "sim/fabric/link/frame.h"

namespace tokamak::sim {

// Why a frame went no further.
enum class DropReason : uint8_t {
  kBuffer,         // a switch's shared buffer, or the share of a queue in it, was full
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

  // On a link the place is that of the sender.
  virtual void OnDrop(const Place&, const Frame&, DropReason) {}

  // The frame has just got its congestion mark; `queue_bytes` is why.
  virtual void OnMark(const Place&, const Frame&, uint64_t /*queue_bytes*/) {}

  // The port asks its neighbour to stop (or to go on) sending a priority.
  virtual void OnPauseSent(const Place&, uint8_t /*priority*/, bool /*paused*/) {}

  // The port itself has to stop, or may go on.
  virtual void OnPaused(const Place&, uint8_t /*priority*/, bool /*paused*/) {}

  // A NIC sends a congestion notification.
  virtual void OnNotification(const Place&, const Frame&) {}

  // A queue has been paused for too long: from now on what is in it is dropped, or sent
  // nevertheless; and the end of that.
  virtual void OnWatchdog(const Place&, uint8_t /*priority*/, bool /*storm*/) {}
};

}  // namespace tokamak::sim
