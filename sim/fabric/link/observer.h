// Observer sees the events of a fabric: write-only, so nothing in it can depend on being watched.
//
// Calls come in the order of the events, during each; the loop's Now() is their time. A frame may
// be read during the call only.
#pragma once

#include <cstdint>

#include "sim/fabric/link/frame.h"

namespace tokamak::sim {

enum class DropReason : uint8_t {
  kBuffer,         // a switch's shared buffer, or a queue's share of it, was full
  kHeadroom,       // the same, lossless: its headroom was full, too
  kNoRoute,        // to its destination
  kWatchdog,       // its queue had been paused for too long
  kLoss,           // by the link's loss model
  kLinkDown,       // down, or went down while the frame was on it
  kReceiveBuffer,  // the host was too slow
  kNobody,         // no NIC is plugged in
};
constexpr int kDropReasons = 8;
const char* ToString(DropReason reason);

// A port of a node, numbered as in the topology, hosts first.
struct Place {
  uint32_t node = 0;
  uint32_t port = 0;
};

class Observer {
 public:
  virtual ~Observer() = default;

  // A frame joins the queue of its priority; `queue_bytes` counts it.
  virtual void OnEnqueue(const Place&, const Frame&, uint64_t /*queue_bytes*/) {}

  // A frame leaves its queue for the wire; `queue_bytes` stay.
  virtual void OnDequeue(const Place&, const Frame&, uint64_t /*queue_bytes*/) {}

  // A frame, pause frames included, is put on the wire, or has come from it.
  virtual void OnTransmit(const Place&, const Frame&) {}
  virtual void OnReceive(const Place&, const Frame&) {}

  // On a link the place is the sender's.
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
