// Credits count, for one connection, how many of the peer's receive slots we may still fill, and
// how many of ours we owe.
//
// A send that meets no posted slot stalls the whole queue pair, so a message leaves only while it
// can take a credit. Slots that were drained and posted again are owed to the peer, and returned in
// batches, in any message or in one made for it.
//
// Law: 0 <= available() <= what the peer posted at the start. A peer that grants more is broken.
// Law: never do both sides wait for credits for ever. Only a message that returns a whole batch may
//      take the last credit (kReserved), so whoever has run dry has sent a batch to the other. And
//      a batch is more than one slot, so messages that only return credits die out.
#pragma once

#include <cstdint>

#include "absl/status/status.h"

namespace tokamak::transport {

class Credits final {
 public:
  static constexpr uint32_t kReserved = 1;

  // The peer posted `peer_slots`, we posted `own_slots`.
  Credits(uint32_t peer_slots, uint32_t own_slots);

  // Claims one of the peer's slots. Returns false, changing nothing, when none but the reserved
  // one is left.
  [[nodiscard]] bool Take();
  // The same for a message that returns a batch: may take the reserved one.
  [[nodiscard]] bool TakeForReturn();
  bool can_take() const { return available_ > kReserved; }

  // The peer gave back `slots`. kInvalidArgument: more than it ever took.
  absl::Status Grant(uint32_t slots);

  // We posted `slots` of ours again.
  void Owe(uint32_t slots);
  // How many to write into the message that leaves now; they are not owed any more.
  uint16_t TakeOwed();
  // A batch is due, with or without another message.
  bool return_due() const { return owed_ >= batch_; }

  uint32_t available() const { return available_; }
  uint32_t owed() const { return owed_; }
  uint32_t batch() const { return batch_; }

 private:
  uint32_t peer_slots_;
  uint32_t batch_;
  uint32_t available_;
  uint32_t owed_ = 0;
};

}  // namespace tokamak::transport
