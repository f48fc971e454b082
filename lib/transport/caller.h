// Caller asks a peer something short and gets its reply, outside of any transfer.
#pragma once

#include <cstdint>
#include <functional>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "lib/base/handle.h"
#include "lib/base/time.h"
#include "lib/transport/reply.h"
#include "lib/verbs/types.h"

namespace tokamak::transport {

class Caller {
 public:
  using CallCallback = std::function<void(absl::StatusOr<absl::Span<const uint8_t>>)>;

  virtual ~Caller() = default;

  // Sends `request` to the service at `peer`. `done` runs once by the deadline, in a task of the
  // caller's loop; the reply's bytes live during it. Errors: kUnavailable (no connection, or it
  // broke: the peer may have acted), kDeadlineExceeded, kInvalidArgument (more than max_call_size()
  // bytes). Dropping the handle cancels, at the peer too.
  [[nodiscard]] virtual base::Pending Call(const verbs::Address& peer, absl::Span<const uint8_t> request,
                                           base::Duration deadline, CallCallback done) = 0;

  virtual uint32_t max_call_size() const = 0;
};

// `request` lives during the call; `reply` may run later, on this loop. Returns the work on the
// answer or null. It is dropped after the reply, a cancel, the deadline or the connection's end, in
// a task of its own: the reply may be part of it.
using CallHandler = std::function<base::Pending(absl::Span<const uint8_t> request, Reply reply)>;

}  // namespace tokamak::transport
