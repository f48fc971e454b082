#include "lib/verbs/ibv/translation/limits.h"

#include <algorithm>

#include "lib/verbs/ibv/translation/quirks.h"
#include "lib/verbs/time_codes.h"

namespace tokamak::verbs::ibv {
namespace {

uint32_t Count(int count) { return static_cast<uint32_t>(std::max(count, 0)); }

}  // namespace

Limits MakeLimits(LinkKind link, const ibv_device_attr& device, const ibv_port_attr& port, uint32_t max_inline) {
  const bool iwarp = link == LinkKind::kIwarp;
  const Quirks quirks = QuirksOf(device);
  Limits limits;
  limits.atomics = device.atomic_cap != IBV_ATOMIC_NONE;
  limits.immediate = !iwarp;
  limits.memory_windows =
      !iwarp && !quirks.windows_are_open && (device.device_cap_flags & IBV_DEVICE_MEM_WINDOW_TYPE_2B) != 0;
  limits.shared_receive = device.max_srq > 0;
  // By hand a queue pair is given an address; on InfiniBand the route is a LID, which an address
  // does not contain.
  limits.manual_modify = link == LinkKind::kRoce;
  limits.read_sink_needs_remote_write = iwarp;
  limits.three_way_connect = !iwarp;
  limits.acknowledgements = !iwarp;
  limits.region_read_rights = !quirks.reads_any_region;
  limits.queue_pair_rights = !quirks.ignores_queue_pair_rights;
  limits.solicited_events = !quirks.forgets_solicited;
  limits.drop_stops_transfers = !quirks.finishes_what_has_begun;
  limits.max_inline = max_inline;
  limits.max_sges = std::min(Count(device.max_sge), kMaxSges);
  // Some drivers leave max_sge_rd at 0, though a READ has an Sge on every device.
  limits.max_read_sges = std::min(limits.max_sges, iwarp ? 1 : std::max(Count(device.max_sge_rd), 1u));
  limits.max_send_requests = limits.max_receive_requests = Count(device.max_qp_wr);
  limits.max_completions = Count(device.max_cqe);
  limits.max_queue_pairs = Count(device.max_qp);
  limits.max_reads = std::min<uint32_t>({Count(device.max_qp_rd_atom), Count(device.max_qp_init_rd_atom), UINT8_MAX});
  limits.max_message = port.max_msg_sz;
  limits.active_mtu = MtuBytes(port.active_mtu);
  limits.repeats_may_fail = quirks.gets_lost_in_repeats;
  limits.ack_delay = AckTimeout(std::min<uint8_t>(device.local_ca_ack_delay, 31));
  return limits;
}

LinkKind LinkOf(ibv_transport_type transport, uint8_t link_layer) {
  if (transport == IBV_TRANSPORT_IWARP) return LinkKind::kIwarp;
  return link_layer == IBV_LINK_LAYER_ETHERNET ? LinkKind::kRoce : LinkKind::kInfiniBand;
}

}  // namespace tokamak::verbs::ibv
