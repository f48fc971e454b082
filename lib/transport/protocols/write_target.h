// WriteTarget is a range of our memory that the peer of one transfer may WRITE into, with a key for
// exactly that range on each of several rails: a window if possible, which costs a request,
// otherwise a region of its own, which costs a registration.
//
//   opening --> open --> closing --> closed
//
// A window is for the peer of one queue pair, and a message has one key of each rail: so windows
// need a rail with one bulk queue pair, and that up.
//
// Law: while it is opening, no key may leave. A rail that drops out takes its window along.
#pragma once

#include <array>
#include <cstdint>
#include <optional>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "lib/transport/channels/bulk_channel.h"
#include "lib/transport/channels/context.h"
#include "lib/transport/channels/window.h"
#include "lib/transport/limits.h"
#include "lib/transport/messages/message.h"
#include "lib/transport/protocols/leases.h"

namespace tokamak::transport {

class WriteTarget final : private Window::Owner {
 public:
  class Owner {
   public:
    virtual ~Owner() = default;
    // It is open, or closed. May not drop it.
    virtual void OnTarget() = 0;
  };

  explicit WriteTarget(Owner& owner) : owner_(owner) {}

  // Opens `memory`, which is not empty, to the peer on all live rails, with the channel's next
  // Pump. If it is opening() then, OnTarget follows. Errors: those of Registration::Acquire.
  absl::Status Open(Context& context, BulkChannel& bulk, absl::Span<uint8_t> memory);
  bool opening() const;
  // It must be open.
  RemoteRange Tell() const;

  // Regions close at once, windows with the channel's next Pump. If it is not closed() then,
  // OnTarget follows.
  void Close();
  // True if nobody can write there (but see Limits::drop_stops_transfers).
  bool closed() const;
  // Closes the rest in this very call.
  void Revoke();

 private:
  bool Bind(Context& context, BulkChannel& bulk, uint32_t rail, absl::Span<uint8_t> memory);
  void OnWindow() override;

  Owner& owner_;
  uint32_t primary_ = 0;
  uint8_t* memory_ = nullptr;
  std::array<std::optional<Window>, kMaxRails> windows_;
  Leases regions_;
  bool closing_ = false;
};

}  // namespace tokamak::transport
