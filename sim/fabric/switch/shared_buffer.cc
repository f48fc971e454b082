#include "sim/fabric/switch/shared_buffer.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "lib/base/check.h"
#include "lib/base/units.h"

namespace tokamak::sim {

uint64_t HeadroomOf(const LinkParameters& link, uint32_t mtu, base::Duration response) {
  const uint64_t frame = MostWireBytes(mtu);
  return 3 * frame + PauseFrame::kWireBytes + link.rate.BytesIn(link.delay * 2 + response);
}

void SharedBuffer::AddPort(const LinkParameters& link) {
  Port port;
  port.headroom = pfc_.headroom != 0 ? pfc_.headroom : HeadroomOf(link, options_.mtu, pfc_.response);
  ports_.push_back(port);
}

absl::Status SharedBuffer::Start() {
  const auto priorities = static_cast<uint64_t>(__builtin_popcount(pfc_.lossless));
  uint64_t aside = 0;
  for (const Port& port : ports_) aside += options_.reserved * kPriorities + port.headroom * priorities;
  if (aside >= options_.bytes) {
    return absl::InvalidArgumentError(absl::StrCat(
        "a buffer of ", base::FormatSize(options_.bytes), " is too small: reserves and headroom of ", ports_.size(),
        " ports take ", base::FormatSize(aside), "; make it larger, or fewer priorities lossless"));
  }
  shared_ = options_.bytes - aside;
  return absl::OkStatus();
}

bool SharedBuffer::Take(uint32_t ingress, uint32_t egress, uint8_t priority, uint32_t bytes) {
  Ingress& in = ports_[ingress].in[priority];
  uint64_t& out = ports_[egress].out[priority];
  const bool is_lossless = lossless(priority);
  const uint64_t reserved = std::min<uint64_t>(bytes, options_.reserved - in.reserved);
  const uint64_t shared = bytes - reserved;
  const bool fits =
      shared == 0 || (in.shared + shared <= IngressThreshold(priority) && shared_used_ + shared <= shared_);
  if (!is_lossless && (!fits || (shared > 0 && out + bytes > Threshold(options_.egress_alpha)))) return false;
  if (fits) {
    in.reserved += reserved;
    in.shared += shared;
    shared_used_ += shared;
  } else {
    if (in.headroom + bytes > ports_[ingress].headroom) return false;
    in.headroom += bytes;
    most_headroom_ = std::max(most_headroom_, in.headroom);
  }
  out += bytes;
  used_ += bytes;
  most_used_ = std::max(most_used_, used_);
  return true;
}

// Headroom empties first, for its next use; the reserve last.
void SharedBuffer::Release(uint32_t ingress, uint32_t egress, uint8_t priority, uint32_t bytes) {
  Ingress& in = ports_[ingress].in[priority];
  uint64_t& out = ports_[egress].out[priority];
  CHECK(in.total() >= bytes && out >= bytes) << "more leaves the buffer than came";
  const uint64_t from_headroom = std::min<uint64_t>(bytes, in.headroom);
  const uint64_t from_shared = std::min<uint64_t>(bytes - from_headroom, in.shared);
  in.headroom -= from_headroom;
  in.shared -= from_shared;
  shared_used_ -= from_shared;
  in.reserved -= bytes - from_headroom - from_shared;
  out -= bytes;
  used_ -= bytes;
}

bool SharedBuffer::AboveXoff(uint32_t port, uint8_t priority) const {
  const Ingress& in = ports_[port].in[priority];
  return in.headroom > 0 || in.shared > IngressThreshold(priority);
}

bool SharedBuffer::BelowXon(uint32_t port, uint8_t priority) const {
  const Ingress& in = ports_[port].in[priority];
  if (in.headroom > 0) return false;
  if (in.shared == 0) return true;
  if (pfc_.xoff != 0) return in.shared <= pfc_.xon;
  return in.shared + 2 * uint64_t{MostWireBytes(options_.mtu)} <= IngressThreshold(priority);
}

}  // namespace tokamak::sim
