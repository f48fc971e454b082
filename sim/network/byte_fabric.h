// ByteFabric puts every packet that is sent through another fabric into bytes and reads it back, so
// that protocol tests over loopback or simulation pass through exactly what a wire would carry.
// What a header has no room for does not arrive; what does not come back as it was is a bug of ours
// and a CHECK.
//
// A packet that the fabric inside marks corrupt is damaged for real and shown to the ICRC, which
// must notice.
//
// Thread rule: as the fabric inside, which must outlive this one, and this one its ports.
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
  // `seed`: for IPv4 identifications and for where packets are damaged.
  explicit ByteFabric(verbs::soft::Fabric& inner, uint64_t seed = 1) : inner_(inner), random_(seed) {}

  absl::StatusOr<std::unique_ptr<verbs::soft::Port>> Open(base::EventLoop& loop, const verbs::Address& address,
                                                          verbs::soft::PortCallbacks callbacks) override;

 private:
  verbs::soft::Fabric& inner_;
  base::Random random_;
  uint64_t ports_opened_ = 0;
};

}  // namespace tokamak::sim
