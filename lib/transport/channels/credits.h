// Credits count, for one connection, how many of the peer's receive slots we may still fill, and
// how many of ours we owe.
//
// A send that meets no posted slot stalls the whole queue pair, so a message leaves only while it
// can take a credit. Slots that were drained and posted again are owed to the peer, and returned in
// batches, in any message or in one of their own. A side whose window has grown owes the added
// slots, too; a side that needs fewer spends credits on messages that give slots up (RELEASE).
//
// Law: 0 <= available() <= what the peer may post at once. A peer that grants more is broken.
// Law: never do both sides wait for credits for ever. Only a message that returns a whole batch may
//      take the last credit (kReserved), so whoever has run dry has sent a batch to the other. And
//      a batch is more than one slot, so messages that only return credits die out.
// Law: a silent peer can be probed whatever else was sent: one credit is a probe's alone. It comes
//      back with others, and until then no other is touched for a probe.
#pragma once

#include <cstdint>

#include "absl/status/status.h"

namespace tokamak::transport {

class Credits final {
 public:
  static constexpr uint32_t kReserved = 1;  // for messages that return a batch
  static constexpr uint32_t kProbe = 1;     // for a probe

  // The peer posted `peer_slots` and may post `peer_most` at once; we posted `own_slots`.
  Credits(uint32_t peer_slots, uint32_t peer_most, uint32_t own_slots);

  // Sets our posted slots, without those that were given up.
  void SetOwn(uint32_t own_slots);

  // Claims one of the peer's slots. Returns false, changing nothing, when only the reserved ones
  // are left.
  [[nodiscard]] bool Take();
  // The same for a message that returns a batch: may take the reserved one.
  [[nodiscard]] bool TakeForReturn();
  // The same for a probe: may take its own.
  [[nodiscard]] bool TakeForProbe();
  bool can_take() const { return usual() > kReserved; }
  bool can_return() const { return usual() > 0; }
  bool can_probe() const { return can_take() || !probing_; }

  // The peer gave back `slots`. kInvalidArgument: more than it can have posted.
  absl::Status Grant(uint32_t slots);

  // We posted `slots` of ours, again or for the first time.
  void Owe(uint32_t slots);
  // Returns the number for the message that leaves now; they are no longer owed.
  uint16_t TakeOwed();
  // True if a batch is due, even without another message.
  bool return_due() const { return owed_ >= batch_; }

  // Credits beyond the peer's first window, which an idle connection gives up.
  uint32_t spare() const { return available_ > peer_first_ ? available_ - peer_first_ : 0; }

  uint32_t available() const { return available_; }
  uint32_t owed() const { return owed_; }
  uint32_t batch() const { return batch_; }

 private:
  // Without the probe's.
  uint32_t usual() const { return available_ - (probing_ ? 0 : kProbe); }

  uint32_t peer_first_;
  uint32_t peer_most_;
  uint32_t batch_;
  uint32_t available_;
  uint32_t owed_ = 0;
  bool probing_ = false;  // the probe's credit is taken
};

}  // namespace tokamak::transport
