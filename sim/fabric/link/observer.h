// Observer sees the events of a fabric: write-only, so nothing in it can depend on being watched.
//
// Calls come during the events, at the loop's Now(). A frame may be read during the call only.
#pragma once

#include <cstdint>

#include "sim/fabric/link/frame.h"

namespace tokamak::sim {

enum class DropReason : uint8_t {
  kBuffer,         // a switch's shared buffer, or a queue's share of it, was full
  kHeadroom,       // the same, lossless, and its headroom
  kNoRoute,        // to its destination
  kWatchdog,       // its queue had been paused for too long
  kLoss,           // by the link's loss model
  kLinkDown,       // down, or went down while the frame was on it
  kReceiveBuffer,  // the host was too slow
  kNobody,         // no NIC is plugged in
};
constexpr int kDropReasons = 8;
const char* ToString(DropReason reason);

// Numbered as in the topology, hosts first.
struct Place {
  uint32_t node = 0;
  uint32_t port = 0;
};

class Observer {
 public:
  virtual ~Observer() = default;

  // `queue_bytes` counts it.
  virtual void OnEnqueue(const Place&, const Frame&, uint64_t /*queue_bytes*/) {}

  // A frame leaves for the wire; `queue_bytes` stay.
  virtual void OnDequeue(const Place&, const Frame&, uint64_t /*queue_bytes*/) {}

  // Pause frames included.
  virtual void OnTransmit(const Place&, const Frame&) {}
  virtual void OnReceive(const Place&, const Frame&) {}

  // On a link the place is the sender's.
  virtual void OnDrop(const Place&, const Frame&, DropReason) {}

  // A frame got its mark because of `queue_bytes`.
  virtual void OnMark(const Place&, const Frame&, uint64_t /*queue_bytes*/) {}

  // Asks the neighbour to stop, or resume.
  virtual void OnPauseSent(const Place&, uint8_t /*priority*/, bool /*paused*/) {}

  // Has to stop, or may resume.
  virtual void OnPaused(const Place&, uint8_t /*priority*/, bool /*paused*/) {}

  virtual void OnNotification(const Place&, const Frame&) {}

  // A queue was paused for too long: its frames are dropped, or sent nevertheless, from now on; or
  // that ends.
  virtual void OnWatchdog(const Place&, uint8_t /*priority*/, bool /*storm*/) {}
};

}  // namespace tokamak::sim
