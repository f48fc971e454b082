// PeerWatch looks after the peer of a connection that is up: while there is work it probes one that
// is silent, so that a dead one is noticed; without work it gives up the peer's slots that it does
// not need, and leaves after a longer while.
//
// The side that did not connect stays longer, so that in good order it is the other that leaves.
#pragma once

#include <cstdint>

#include "absl/status/status.h"
#include "lib/base/event_loop.h"
#include "lib/transport/channels/context.h"
#include "lib/transport/channels/control_channel.h"

namespace tokamak::transport {

class PeerWatch final {
 public:
  class User {
   public:
    virtual ~User() = default;
    // Transfers or calls are under way: silence is suspicious.
    virtual bool busy() const = 0;
    // There is something to send.
    virtual void Wake() = 0;
    // The peer or the device is taken for dead, or nobody needs the connection. May drop us.
    virtual void Break(absl::Status status) = 0;
  };

  // `idle_limit`: for how long a connection without work stays.
  PeerWatch(Context& context, ControlChannel& control, base::Duration idle_limit, User& user);

  // There is work (again).
  void Watch();
  // Messages came or left: there may be something to give up.
  void OnTurn();

 private:
  void OnWatch();
  bool DeviceIsStuck();
  bool PeerIsStuck();

  Context& context_;
  ControlChannel& control_;
  const base::Duration idle_limit_;
  User& user_;
  base::Timer timer_;
  bool watching_ = false;    // probing, rather than waiting to be idle long enough
  bool looks_soon_ = false;  // whether windows may rest
  bool draining_ = false;    // the last watch asked what became of the last messages
  uint64_t received_ = 0;    // messages, at the last watch
  uint64_t completions_ = 0;
  int watches_without_completion_ = 0;
  int watches_without_credit_ = 0;
  base::Time idle_since_;
};

}  // namespace tokamak::transport
