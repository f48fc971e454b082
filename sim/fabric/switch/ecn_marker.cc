#include "sim/fabric/switch/ecn_marker.h"

#include "absl/strings/str_cat.h"

namespace tokamak::sim {

absl::Status EcnOptions::Check() const {
  if (kmin > kmax) {
    return absl::InvalidArgumentError(absl::StrCat("kmin is ", kmin, " and kmax ", kmax, ": kmin must not be larger"));
  }
  if (pmax >= 0 && pmax <= 1) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("pmax is ", pmax, ": a probability lies between 0 and 1"));
}

double EcnMarker::Probability(uint64_t queue_bytes) const {
  if (options_.kmax == 0 || queue_bytes <= options_.kmin) return 0;
  if (queue_bytes >= options_.kmax) return 1;
  return options_.pmax * static_cast<double>(queue_bytes - options_.kmin) /
         static_cast<double>(options_.kmax - options_.kmin);
}

}  // namespace tokamak::sim
