#include "lib/transport/protocols/leases.h"

#include <optional>
#include <utility>

namespace tokamak::transport {

void AddKey(uint32_t rail, uint32_t rkey, uint32_t primary, RemoteRange* range) {
  if (rail == primary) {
    range->rkey = rkey;
    return;
  }
  RailKeys& further = range->further;
  uint32_t at = further.count++;
  for (; at > 0 && further.keys[at - 1].rail > rail; --at) further.keys[at] = further.keys[at - 1];
  further.keys[at] = {rail, rkey};
}

absl::Status Leases::Acquire(Context& context, uint32_t rails, absl::Span<uint8_t> memory, Registration::Use use) {
  memory_ = memory.data();
  for (uint32_t rail = 0; rail < context.rails.size(); ++rail) {
    if ((rails >> rail & 1) == 0) continue;
    auto lease = context.rails[rail].registration.Acquire(memory, use);
    if (!lease.ok()) {
      Drop();
      return lease.status();
    }
    if (lease->registered_now()) ++context.counters.regions_registered;
    leases_[rail] = *std::move(lease);
    rails_ |= 1u << rail;
  }
  return absl::OkStatus();
}

void Leases::Drop() {
  for (std::optional<Lease>& lease : leases_) lease.reset();
  rails_ = 0;
}

RemoteRange Leases::Tell(uint32_t primary) const {
  RemoteRange range;
  if (empty()) return range;
  range.address = reinterpret_cast<uintptr_t>(memory_);
  for (uint32_t rail = 0; rail < kMaxRails; ++rail) {
    if (leases_[rail].has_value()) AddKey(rail, leases_[rail]->rkey(), primary, &range);
  }
  return range;
}

void Leases::Aim(BulkJob* job, const RemoteRange& remote, uint32_t primary) const {
  job->local = memory_;
  job->remote = remote.address;
  job->rkeys[primary] = remote.rkey;
  uint32_t told = 1u << primary;
  for (uint32_t i = 0; i < remote.further.count; ++i) {
    const RailKey& key = remote.further.keys[i];
    job->rkeys[key.rail] = key.rkey;
    told |= 1u << key.rail;
  }
  job->rails = rails_ & told;
  for (uint32_t rail = 0; rail < kMaxRails; ++rail) {
    if (leases_[rail].has_value()) job->lkeys[rail] = leases_[rail]->lkey();
  }
}

}  // namespace tokamak::transport
