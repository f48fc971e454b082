// Caller asks a peer something short and gets its reply: the transport's small talk, outside of any transfer's way.
#pragma once

#include <cstdint>
#include <functional>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "lib/base/time.h"
#include "lib/verbs/types.h"

namespace tokamak::transport {

class Caller {
 public:
  using CallCallback = std::function<void(absl::StatusOr<absl::Span<const uint8_t>>)>;

  virtual ~Caller() = default;

  // Sends `request` to the service at `peer`. `done` runs once by the deadline, on the caller's loop and never inside the
  // call; the reply's bytes live during it. Request and reply have at most max_call_size() bytes. Errors: kUnavailable (no
  // connection, or it broke: the peer may or may not have acted), kDeadlineExceeded, kInvalidArgument (too long).
  virtual void Call(const verbs::Address& peer, absl::Span<const uint8_t> request, base::Duration deadline,
                    CallCallback done) = 0;

  virtual uint32_t max_call_size() const = 0;
};

}  // namespace tokamak::transport
