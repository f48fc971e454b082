// Credits count, for one connection, how many of the peer's receive slots we may still fill, and
// how many of ours we owe.
//
// A send that meets no posted slot stalls the whole queue pair. Slots posted again, or added by
// growth, are owed to the peer, and returned in batches, in any message or in one of their own; a
// RELEASE spends a credit for good.
//
// Law: 0 <= available() <= what the peer may post at once. A peer that grants more is broken.
// Law: never do both sides wait for credits for ever. Only a message that returns a whole batch may
//      take the last credit (kReserved), so whoever has run dry has sent a batch. A batch is more
//      than one slot, so messages that only return credits die out.
// Law: a silent peer can always be probed: one credit is a probe's alone, and no other is touched
//      for a probe until it is back.
#pragma once

#include <cstdint>

#include "absl/status/status.h"

namespace tokamak::transport {

class Credits final {
 public:
  static constexpr uint32_t kReserved = 1;  // for the return of a batch
  static constexpr uint32_t kProbe = 1;     // for a probe

  // The peer posted `peer_slots`, and `peer_most` at most; we posted `own_slots`.
  Credits(uint32_t peer_slots, uint32_t peer_most, uint32_t own_slots);

  // Sets our posted slots, without those given up.
  void SetOwn(uint32_t own_slots);

  // Returns false, changing nothing, when only reserved ones are left.
  [[nodiscard]] bool Take();
  // The same to return a batch, from the reserve too.
  [[nodiscard]] bool TakeForReturn();
  // The same for a probe.
  [[nodiscard]] bool TakeForProbe();
  bool can_take() const { return usual() > kReserved; }
  bool can_return() const { return usual() > 0; }
  bool can_probe() const { return can_take() || !probing_; }

  // kInvalidArgument: more than the peer can have posted.
  absl::Status Grant(uint32_t slots);

  void Owe(uint32_t slots);
  // Returns the number for the message that leaves now.
  uint16_t TakeOwed();
  // True if a batch is due, even without another message.
  bool return_due() const { return owed_ >= batch_; }

  // Credits beyond the peer's first window.
  uint32_t spare() const { return available_ > peer_first_ ? available_ - peer_first_ : 0; }

  uint32_t available() const { return available_; }
  uint32_t owed() const { return owed_; }
  uint32_t batch() const { return batch_; }

 private:
  // Credits without the probe's.
  uint32_t usual() const { return available_ - (probing_ ? 0 : kProbe); }

  uint32_t peer_first_;
  uint32_t peer_most_;
  uint32_t batch_;
  uint32_t available_;
  uint32_t owed_ = 0;
  bool probing_ = false;  // its credit is taken
};

}  // namespace tokamak::transport
