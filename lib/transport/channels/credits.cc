#include "lib/transport/channels/credits.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "lib/base/check.h"
#include "lib/transport/messages/hello.h"

namespace tokamak::transport {
namespace {

// A batch is a quarter of the window: rare, yet early enough that the peer need not wait.
constexpr uint32_t kBatchesInFlight = 4;
constexpr uint32_t kMinBatch = 2;  // more than the slot of the message that returns it
static_assert(kMinFirstSlots >= kMinBatch + Credits::kReserved + Credits::kProbe,
              "a batch comes together before the peer runs dry");

}  // namespace

Credits::Credits(uint32_t peer_slots, uint32_t peer_most, uint32_t own_slots)
    : peer_first_(peer_slots), peer_most_(peer_most), available_(peer_slots) {
  CHECK(peer_slots >= kMinFirstSlots && peer_slots <= peer_most);
  SetOwn(own_slots);
}

void Credits::SetOwn(uint32_t own_slots) {
  CHECK_GE(own_slots, kMinFirstSlots);
  batch_ = std::max(own_slots / kBatchesInFlight, kMinBatch);
}

bool Credits::Take() {
  if (!can_take()) return false;
  --available_;
  return true;
}

bool Credits::TakeForReturn() {
  if (!can_return()) return false;
  --available_;
  return true;
}

bool Credits::TakeForProbe() {
  if (Take()) return true;
  if (probing_) return false;
  probing_ = true;
  --available_;
  return true;
}

absl::Status Credits::Grant(uint32_t slots) {
  if (slots > peer_most_ - available_) {
    return absl::InvalidArgumentError(
        absl::StrCat("the peer gave ", slots, " slots of ", peer_most_, ", and ", available_, " are not taken yet"));
  }
  available_ += slots;
  if (available_ > kReserved + kProbe) probing_ = false;
  return absl::OkStatus();
}

void Credits::Owe(uint32_t slots) { owed_ += slots; }

uint16_t Credits::TakeOwed() {
  const uint32_t now = std::min<uint32_t>(owed_, UINT16_MAX);
  owed_ -= now;
  return static_cast<uint16_t>(now);
}

}  // namespace tokamak::transport
