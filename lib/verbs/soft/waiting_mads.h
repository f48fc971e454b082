// WaitingMads are the connection manager's messages on their way to the port.
//
// Their packets in the outbox point here, so they stay until the outbox is empty.
//
// Bound: kMaxMadsWaiting. Thread rule: under the NIC's mutex.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>

#include "absl/types/span.h"
#include "lib/verbs/soft/cm/management.h"
#include "lib/verbs/soft/packets/packet.h"
#include "lib/verbs/soft/state/outbox.h"
#include "lib/verbs/types.h"

namespace tokamak::verbs::soft {

class WaitingMads final {
 public:
  // `psn`: of the first.
  explicit WaitingMads(uint32_t psn) : psn_(psn) {}

  // Takes a copy of `mad`, kMadSize bytes. Returns false, changing nothing, if too many wait.
  [[nodiscard]] bool Add(const Address& peer, absl::Span<const uint8_t> mad);

  // True if some are not in the outbox yet.
  bool any_left() const { return added_ < mads_.size(); }

  // Adds those to the outbox for which it has room. Returns how many.
  size_t AddTo(Outbox& outbox);

  // The outbox is empty: those that were added are gone.
  void ForgetAdded() {
    for (; added_ > 0; --added_) mads_.pop_front();
  }

 private:
  struct Mad {
    Address peer;  // as fabrics write it
    std::array<uint8_t, kMadSize> bytes;
  };

  std::deque<Mad> mads_;
  size_t added_ = 0;  // how many of them, from the first on, are in the outbox
  uint32_t psn_;      // of the next
};

}  // namespace tokamak::verbs::soft
