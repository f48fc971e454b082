// AckRequests decides which packets ask the peer for an acknowledgement: the last of a message, the
// one that fills the window, and enough of those between to keep the window moving.
//
// A packet also asks at the end of a turn, since the next may have to wait for room that only
// acknowledgements give back; when room is scarce and no packet on its way asks, since there may be
// no other turn; and when packets leave so slowly, by their rate or because a thousand take turns,
// that the time-out could come first.
//
// Thread rule: under the NIC's mutex.
#pragma once

#include <algorithm>
#include <cstdint>

#include "lib/base/time.h"

namespace tokamak::verbs::soft {

class AckRequests final {
 public:
  // The peer acknowledges after this many packets at the latest, and often enough to keep a window
  // moving.
  static constexpr uint32_t kMaxPacketsPerAck = 32;
  static constexpr uint32_t kAcksPerWindow = 4;
  static constexpr int64_t kAsksPerTimeout = 4;

  // The packet that leaves now, and when others may follow.
  struct Leaving {
    uint64_t sequence = 0;
    uint64_t unacked = 0;  // the oldest unacknowledged packet
    uint32_t window = 1;   // packets
    bool last_of_message = false;
    bool last_of_batch = false;
    bool room = true;     // true if the NIC has room for another unacknowledged packet
    bool scarce = false;  // true if such room is scarce
    base::Time now;
    base::Time next;         // when the next packet may leave
    base::Duration timeout;  // agreed for acknowledgements
  };

  // `every`: see DeviceOptions::ack_every.
  explicit AckRequests(uint32_t every) : every_(every) {}

  // Begins a new connection.
  void Start() { since_ = asked_ = 0; }

  // Returns true if the packet asks. Called for each, in the order in which they leave.
  [[nodiscard]] bool Asks(const Leaving& packet) {
    ++since_;
    if (packet.sequence == packet.unacked) quiet_since_ = packet.now;
    const uint32_t interval =
        std::max(1u, std::min(every_ != 0 ? every_ : kMaxPacketsPerAck, packet.window / kAcksPerWindow));
    const bool window_full = packet.sequence + 1 - packet.unacked >= packet.window;
    const bool turn_ends = (every_ == 0 && packet.last_of_batch) || !packet.room;
    const bool scarce = packet.scarce && !awaited(packet);
    const bool slow = packet.next - quiet_since_ >= packet.timeout / kAsksPerTimeout;
    if (!packet.last_of_message && !window_full && !turn_ends && !scarce && !slow && since_ < interval) return false;
    since_ = 0;
    asked_ = packet.sequence + 1;
    quiet_since_ = packet.now;
    return true;
  }

  // Notes that a READ or an atomic left, which has an answer anyway.
  void AskedByAnswer() { since_ = 0; }

  // Packets are sent again, from the oldest unacknowledged one: none is on its way.
  void GoBack() { asked_ = 0; }

  // Returns true if the packet that left last asked.
  bool just_asked() const { return since_ == 0; }

 private:
  // True if one of the packets on their way asked for an acknowledgement.
  bool awaited(const Leaving& packet) const { return packet.unacked < asked_; }

  const uint32_t every_;
  uint32_t since_ = 0;      // packets since the last that asked
  uint64_t asked_ = 0;      // one past the packet that asked last
  base::Time quiet_since_;  // the time of that packet, or of the oldest unacknowledged if none asked
};

}  // namespace tokamak::verbs::soft
