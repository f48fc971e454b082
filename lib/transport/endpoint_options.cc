#include "lib/transport/endpoint_options.h"

#include <algorithm>

namespace tokamak::transport {

DeviceKind KindOf(bool is_rdma, const verbs::Limits& limits) {
  if (!is_rdma) return DeviceKind::kSoftware;
  return limits.repeats_may_fail || !limits.drop_stops_transfers ? DeviceKind::kKernel : DeviceKind::kHardware;
}

base::Duration SuitableAckTimeout(const verbs::Limits& limits) {
  const verbs::ReliabilityOptions usual;
  const base::Duration twice = limits.ack_delay * 2;
  const base::Duration wanted = limits.repeats_may_fail ? twice : twice / (usual.retry_count + 1);
  return std::clamp(wanted, usual.ack_timeout, kLongestSuitableAckTimeout);
}

}  // namespace tokamak::transport
