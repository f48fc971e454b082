#include "lib/verbs/soft/nic_limits.h"

#include <algorithm>

#include "lib/verbs/soft/packets/packet.h"
#include "lib/verbs/soft/queue_pair_table.h"
#include "lib/verbs/soft/rc/expected_answers.h"
#include "lib/verbs/soft/state/work_queue.h"

namespace tokamak::verbs::soft {
namespace {

constexpr uint32_t kMaxRequests = 16384;
constexpr uint32_t kMaxCompletions = 1 << 20;

}  // namespace

Limits MakeLimits(uint32_t active_mtu) {
  Limits limits;
  limits.atomics = true;
  limits.immediate = true;
  limits.memory_windows = true;
  limits.shared_receive = true;
  limits.manual_modify = true;
  limits.three_way_connect = true;
  limits.acknowledgements = true;
  limits.region_read_rights = true;
  limits.queue_pair_rights = true;
  limits.solicited_events = true;
  limits.drop_stops_transfers = true;
  limits.max_inline = kMaxInline;
  limits.max_sges = kMaxSges;
  limits.max_read_sges = kMaxSges;
  limits.max_send_requests = kMaxRequests;
  limits.max_receive_requests = kMaxRequests;
  limits.max_completions = kMaxCompletions;
  limits.max_queue_pairs = QueuePairTable::kMaxQueuePairs - 2;
  limits.max_reads = kMaxReads;
  limits.max_message = kMaxMessage;
  limits.active_mtu = active_mtu;
  return limits;
}

uint32_t RoundMtu(uint32_t mtu) {
  uint32_t rounded = kMinMtu;
  while (rounded * 2 <= std::min(mtu, kMaxMtu)) rounded *= 2;
  return rounded;
}

}  // namespace tokamak::verbs::soft
