// SecondaryRail is a rail of a connection beside its primary one: bulk queue pairs on another
// device, which come and go while the connection lives.
//
//   absent --> joining --> up --> failing --> waiting --> absent
//                 |         |                   ^
//                 +---------+-------------------+
//
// Failing: completions from before the end are still taken in. Waiting: for the peer's RAIL_DOWN.
//
// The puller joins, and again a while after a failure. The side that notices a failure drops its
// queue pairs and sends RAIL_DOWN; the other answers with the same. So each side sends it once for
// each life of the rail, and both know when no queue pair is left.
//
// Law: RAIL_DOWN leaves when the queue pairs are gone: nothing moves over the rail any more, and
//      what was received over it has been passed on. A puller's names the writes that it still
//      waits for.
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
  // `bulk`, the connection's, may go before us when our links have gone.
  SecondaryRail(Context& context, RailHost& host, BulkChannel& bulk, uint32_t rail)
      : context_(context), host_(host), bulk_(bulk), side_(bulk.side()), rail_(rail) {}

  // Puller: joins at the owner's address `peer`, now and whenever the rail has failed.
  void Join(const verbs::Address& peer);
  // Owner: accepts one of the peer's queue pairs.
  absl::Status Accept(verbs::ConnectionRequest& request, const Hello& theirs);

  // A completion was taken in.
  void OnTaken();

  void Fail(const absl::Status& status);
  // The owner resolves what the puller still wants. kInvalidArgument: a protocol violation.
  absl::Status OnPeerDown(absl::Span<const WantedWrite> wanted);
  void OnDeviceEvent(const verbs::DeviceEventInfo& info);

  // Disconnects, for a teardown.
  void DropLinks() { links_.reset(); }

 private:
  enum class State { kAbsent, kJoining, kUp, kFailing, kWaiting };

  // RailLinks::User
  Hello MyHello(uint32_t queue, const Hello* asked) override { return host_.MyHello(queue, asked); }
  absl::Status CheckAnswer(const Hello& /*mine*/, const Hello& theirs) override { return host_.CheckProof(theirs); }
  void OnPeerHello(const Hello& theirs) override { bulk_.OnPeerHello(theirs.queue - 1u, theirs); }
  void OnLinksUp(const RailLinks::Path& path) override;
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
  bool peer_is_down_ = false;         // its RAIL_DOWN came in this life
  bool device_is_gone_ = false;       // for good
  verbs::Address peer_;               // puller: the address to join
  std::unique_ptr<RailLinks> links_;  // of this life
  base::Timer timer_;                 // joining: its deadline; failing: the grace; absent: the next try
};

}  // namespace tokamak::transport
