// ByteFabric encodes every packet that is sent through another fabric and decodes it again, so
// protocol tests over loopback or simulation pass through exactly what a wire would carry. A field
// that no header carries does not arrive; a packet that decodes to another one is a CHECK.
//
// A packet marked corrupt is damaged for real, and the ICRC must notice.
// Thread rule: that of the inner fabric, which must outlive this one, and this one its ports.
#pragma once

#include <cstdint>
#include <memory>

#include "absl/status/statusor.h"
#include "lib/base/event_loop.h"
#include "lib/base/random.h"
#include "lib/verbs/soft/fabric.h"

namespace tokamak::sim {

class ByteFabric final : public verbs::soft::Fabric {
 public:
  // `seed`: of IPv4 identifications and damage.
  explicit ByteFabric(verbs::soft::Fabric& inner, uint64_t seed = 1) : inner_(inner), random_(seed) {}

  absl::StatusOr<std::unique_ptr<verbs::soft::Port>> Open(base::EventLoop& loop, const verbs::Address& address,
                                                          verbs::soft::PortCallbacks callbacks) override;

 private:
  verbs::soft::Fabric& inner_;
  base::Random random_;
  uint64_t ports_opened_ = 0;
};

}  // namespace tokamak::sim
