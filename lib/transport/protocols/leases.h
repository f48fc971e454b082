// Leases make one range of our memory known to the devices of several rails, for one transfer.
#pragma once

#include <array>
#include <cstdint>
#include <optional>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "lib/transport/channels/bulk_job.h"
#include "lib/transport/channels/context.h"
#include "lib/transport/memory/registration.h"
#include "lib/transport/messages/message.h"

namespace tokamak::transport {

// The range has no key of `rail`; `primary` is the connection's.
void AddKey(uint32_t rail, uint32_t rkey, uint32_t primary, RemoteRange* range);

class Leases final {
 public:
  // Registers on each of `rails` (bits), or on none. Errors: those of Registration::Acquire.
  absl::Status Acquire(Context& context, uint32_t rails, absl::Span<uint8_t> memory, Registration::Use use);
  // Revokes the keys that are not shared: nobody touches the memory through them (but see
  // Limits::drop_stops_transfers).
  void Drop();

  bool empty() const { return rails_ == 0; }
  RemoteRange Tell(uint32_t primary) const;
  // Gives `job` the local keys, the peer's memory, and the rails with keys of both sides.
  void Aim(BulkJob* job, const RemoteRange& remote, uint32_t primary) const;

 private:
  uint8_t* memory_ = nullptr;
  uint32_t rails_ = 0;  // bits
  std::array<std::optional<Lease>, kMaxRails> leases_;
};

}  // namespace tokamak::transport
