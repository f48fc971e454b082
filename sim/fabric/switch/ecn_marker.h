// EcnMarker decides which packets leave a switch with the mark of congestion: none while their
// queue is shorter than kmin, all from kmax on, and in between a share that grows linearly to pmax.
//
// RED (Floyd and Jacobson 1993) on the momentary queue, as in DCQCN (Zhu et al. 2015); the mark is
// RFC 3168's.
#pragma once

#include <cstdint>

#include "absl/status/status.h"
#include "lib/base/random.h"

namespace tokamak::sim {

struct EcnOptions {
  uint64_t kmin = 0;  // bytes
  uint64_t kmax = 0;  // bytes; 0: nothing is marked
  double pmax = 0.2;

  absl::Status Check() const;
};

class EcnMarker final {
 public:
  EcnMarker(const EcnOptions& options, const base::Random& random) : options_(options), random_(random) {}

  // `queue_bytes`: with the packet.
  double Probability(uint64_t queue_bytes) const;

  bool Marks(uint64_t queue_bytes) {
    if (options_.kmax == 0 || queue_bytes <= options_.kmin) return false;
    return queue_bytes >= options_.kmax || random_.Chance(Probability(queue_bytes));
  }

 private:
  const EcnOptions options_;
  base::Random random_;
};

}  // namespace tokamak::sim
