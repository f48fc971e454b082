// TapFabric shows a WireTap what passes through another fabric, as the datagrams that it would be
// on a wire. So a simulated run becomes a capture file that Wireshark reads. (A udp fabric shows
// its real ones itself: UdpFabricOptions::tap.)
//
// Thread rule: as the fabric inside. The fabric inside and the tap must outlive this one, and this
// one its ports.
#pragma once

#include <memory>

#include "absl/status/statusor.h"
#include "lib/base/event_loop.h"
#include "lib/verbs/soft/fabric.h"
#include "lib/verbs/soft/packets/wire_tap.h"

namespace tokamak::verbs::soft {

class TapFabric final : public Fabric {
 public:
  // Where all ends of a fabric are tapped, showing both would show each packet twice; what is lost
  // is sent only.
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
