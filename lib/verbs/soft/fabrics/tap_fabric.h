// TapFabric shows a WireTap the packets through another fabric, as datagrams on a wire. A udp
// fabric has UdpFabricOptions::tap.
//
// Thread rule: that of the inner fabric. It and the tap must outlive this one, and this one its
// ports.
#pragma once

#include <memory>

#include "absl/status/statusor.h"
#include "lib/base/event_loop.h"
#include "lib/verbs/soft/fabric.h"
#include "lib/verbs/soft/packets/wire_tap.h"

namespace tokamak::verbs::soft {

class TapFabric final : public Fabric {
 public:
  // kBoth shows each packet twice if both ends are tapped; lost packets are only sent.
  enum class Shows { kSent, kReceived, kBoth };

  TapFabric(Fabric& inner, WireTap& tap, Shows shows) : inner_(inner), tap_(tap), shows_(shows) {}

  absl::StatusOr<std::unique_ptr<Port>> Open(base::EventLoop& loop, const Address& address,
                                             PortCallbacks callbacks) override;

 private:
  Fabric& inner_;
  WireTap& tap_;
  const Shows shows_;
};

}  // namespace tokamak::verbs::soft
