// PeerWatch watches the peer of a connection that is up. With work it probes a silent one; without
// it gives up the peer's surplus slots, and after a longer while ends the connection.
//
// The side that connected normally leaves first.
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
    // True while transfers or calls are under way: silence is suspicious.
    virtual bool busy() const = 0;
    virtual void Wake() = 0;
    // The peer or the device is taken for dead, or nobody needs the connection. May drop us.
    virtual void Break(absl::Status status) = 0;
  };

  // `idle_limit`: of a connection without work.
  PeerWatch(Context& context, ControlChannel& control, base::Duration idle_limit, User& user);

  // There is work (again).
  void Watch();
  // Messages came or left.
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
  bool watching_ = false;    // else waiting for the idle limit
  bool looks_soon_ = false;  // to see whether windows may rest
  bool draining_ = false;    // the last watch asked for the last messages' completion
  uint64_t received_ = 0;    // messages, at the last watch
  uint64_t completions_ = 0;
  int watches_without_completion_ = 0;
  int watches_without_credit_ = 0;
  base::Time idle_since_;
};

}  // namespace tokamak::transport
