#include "lib/transport/credits.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "glog/logging.h"
#include "lib/transport/hello.h"

namespace tokamak::transport {
namespace {

// Returned when a quarter is owed: late enough to be rare, early enough that the peer need not
// wait for it.
constexpr uint32_t kBatchesInFlight = 4;
static_assert(kMinReceiveSlots / kBatchesInFlight >= 2, "a batch is more than the slot that its return takes");

}  // namespace

Credits::Credits(uint32_t peer_slots, uint32_t own_slots)
    : peer_slots_(peer_slots), batch_(own_slots / kBatchesInFlight), available_(peer_slots) {
  CHECK_GE(peer_slots, kMinReceiveSlots);
  CHECK_GE(own_slots, kMinReceiveSlots);
}

bool Credits::Take() {
  if (available_ <= kReserved) return false;
  --available_;
  return true;
}

bool Credits::TakeForReturn() {
  if (available_ == 0) return false;
  --available_;
  return true;
}

absl::Status Credits::Grant(uint32_t slots) {
  if (slots > peer_slots_ - available_) {
    return absl::InvalidArgumentError(absl::StrCat("the peer gave back ", slots, " slots of ", peer_slots_, ", only ",
                                                   peer_slots_ - available_, " were taken"));
  }
  available_ += slots;
  return absl::OkStatus();
}

void Credits::Owe(uint32_t slots) { owed_ += slots; }

uint16_t Credits::TakeOwed() {
  const uint32_t now = std::min<uint32_t>(owed_, UINT16_MAX);
  owed_ -= now;
  return static_cast<uint16_t>(now);
}

}  // namespace tokamak::transport
