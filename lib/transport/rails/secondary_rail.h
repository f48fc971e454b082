// SecondaryRail is a rail of a connection beside its primary one: bulk queue pairs on another
// device, which come and go while the connection lives.
//
//   absent --> joining --> up --> failing --> waiting --> absent
//                 |         |                   ^
//                 +---------+-------------------+
//
// Failing: what came before the end is still taken in. Waiting: for the peer's RAIL_DOWN.
//
// The puller joins, when the owner has said where its rails are, and again a while after the rail
// has failed. Whoever finds that the rail has failed drops its queue pairs and says RAIL_DOWN; the
// other does the same in answer. So each side says it once for each life of the rail, and both know
// when nothing of it is left.
//
// Law: RAIL_DOWN leaves when the queue pairs are gone: nothing moves over the rail in either
//      direction any more, and what was received over it has been passed on. A puller's names the
//      writes that it still waits for.
#pragma once

#include <cstdint>
#include <memory>

#include "absl/status/status.h"
#include "lib/transport/channels/bulk_channel.h"
#include "lib/transport/channels/context.h"
#include "lib/transport/messages/hello.h"
#include "lib/transport/messages/rail_messages.h"
#include "lib/transport/rails/rail_host.h"
#include "lib/transport/rails/rail_links.h"
#include "lib/verbs/verbs.h"

namespace tokamak::transport {

class SecondaryRail final : private RailLinks::User {
 public:
  // `host` is the connection. `bulk` is its, too, and may go before us when our links have gone.
  SecondaryRail(Context& context, RailHost& host, BulkChannel& bulk, uint32_t rail)
      : context_(context), host_(host), bulk_(bulk), side_(bulk.side()), rail_(rail) {}

  // The puller: joins the rail whose owner's end is at `peer`, now and whenever it has failed.
  void Join(const verbs::Address& peer);
  // The owner: the peer asks for one of its queue pairs.
  absl::Status Accept(verbs::ConnectionRequest& request, const Hello& theirs);

  // A completion of it was taken in.
  void OnTaken();

  // It does not work any more.
  void Fail(const absl::Status& status);
  // The peer has said RAIL_DOWN; the owner looks at what the puller still wants. kInvalidArgument:
  // no honest puller would want it.
  absl::Status OnPeerDown(absl::Span<const WantedWrite> wanted);
  void OnDeviceEvent(const verbs::DeviceEventInfo& info);

  // Disconnects, for a connection that is torn down.
  void DropLinks() { links_.reset(); }

 private:
  enum class State { kAbsent, kJoining, kUp, kFailing, kWaiting };

  // RailLinks::User
  Hello MyHello(uint32_t queue) const override { return host_.MyHello(queue); }
  void OnPeerHello(const Hello& theirs) override { bulk_.OnPeerHello(theirs.queue - 1u, theirs); }
  void OnLinksUp(uint32_t path_mtu) override;
  void OnLinkLost(const verbs::ConnectionEvent& event) override;
  void OnBadHello(const absl::Status& status) override { Fail(status); }

  absl::Status Prepare();
  void Drop();
  void Rest();

  Context& context_;
  RailHost& host_;
  BulkChannel& bulk_;
  const BulkChannel::Side side_;
  const uint32_t rail_;
  State state_ = State::kAbsent;
  bool peer_is_down_ = false;         // it has said so in this life
  bool device_is_gone_ = false;       // for good
  verbs::Address peer_;               // the puller's, to join
  std::unique_ptr<RailLinks> links_;  // of this life
  base::Timer timer_;                 // joining: its deadline; failing: the grace; absent: the next try
};

}  // namespace tokamak::transport
