// Caller asks a peer something short and gets its reply, outside of any transfer.
//
// CallHandler is the other end: it answers what peers ask.
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

  // Sends `request` to the service at `peer`. `done` runs once by the deadline, on the caller's
  // loop and never inside the call; the reply's bytes live during it. Request and reply have at
  // most max_call_size() bytes. Errors: kUnavailable (no connection, or it broke: the peer may or
  // may not have acted), kDeadlineExceeded, kInvalidArgument (too long). Dropping the handle
  // cancels: the peer drops its work on the answer.
  [[nodiscard]] virtual base::Pending Call(const verbs::Address& peer, absl::Span<const uint8_t> request,
                                           base::Duration deadline, CallCallback done) = 0;

  virtual uint32_t max_call_size() const = 0;
};

// `request` is valid during the call only; `reply` may be kept and run later, on this loop. Returns
// the work on the answer, null if there is none. It is dropped after the reply, or when the caller
// has cancelled, its deadline has passed or its connection has ended; in a task of its own, so the
// reply may be a part of it.
using CallHandler = std::function<base::Pending(absl::Span<const uint8_t> request, Reply reply)>;

}  // namespace tokamak::transport
