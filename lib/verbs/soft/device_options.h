// DeviceOptions is how one software NIC is set up: see OpenSoftDevice.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "lib/base/time.h"
#include "lib/verbs/soft/congestion/congestion.h"
#include "lib/verbs/soft/host_memory.h"
#include "lib/verbs/types.h"

namespace tokamak::verbs::soft {

constexpr uint32_t kMostWindow = 4096;  // packets, unless an option asks for more

struct DeviceOptions {
  std::string name = "soft";
  Address address;  // where the fabric shall plug it in
  uint32_t max_mtu = kMaxMtu;
  uint64_t seed = 1;        // PSNs, queue pair numbers, keys
  uint32_t trace_node = 0;  // TraceEvent::node

  // How fast a queue pair sends, see congestion.h. The default finds out what the network can take.
  CongestionControl congestion = CongestionControl::kAdditive;
  DcqcnParameters dcqcn;

  // How many packets a queue pair may have unacknowledged. All queue pairs together may have as
  // many as the port's receive_window holds, up to kMostWindow, or `nic_packets`, or
  // `window_packets` where that is more; kNone bounds neither.
  uint32_t window_packets = 0;  // the most; 0: what the port's receive_window holds
  uint32_t nic_packets = 0;     // 0: what the port's receive_window holds

  // A requester asks for an acknowledgement after this many packets at the latest, and at the end
  // of each message. 0: as suits batches, 32 or fewer, and also where a batch ends.
  uint32_t ack_every = 0;

  // As responder: the acknowledgement of a SEND of one packet may wait this long for something that
  // leaves, and goes with it in one batch; at most kPatientAcknowledgements wait. For who answers
  // most messages with one of its own: the peer is then woken once, not twice. 0: none waits.
  base::Duration ack_delay;

  // What a peer's SENDs and WRITEs lost on the way is asked for alone: packets behind it are kept,
  // up to kHeldPackets for each queue pair, and the NAK says which (a packet of our own). As
  // requester, this NIC then repeats only what is missing; a peer that does not know how goes back
  // as usual.
  bool selective_repeat = false;

  // Packets that the NIC makes before it gives them to the port: the more, the cheaper. At least 1.
  uint32_t batch_packets = 128;

  // What threads and timers may add to a round trip before something counts as lost: nothing, where
  // time is virtual.
  base::Duration pause = kPause;

  // A peer whose packets are marked is told at most once in this time, for each queue pair.
  base::Duration notification_interval = base::Microseconds(50);

  // Of the queue pairs' packets. Congestion notifications have kNotificationDscp, the connection
  // manager's few messages 0.
  uint8_t dscp = 0;

  // What is asked before each access to registered memory; outlives the device. Null: nobody.
  const HostMemory* host_memory = nullptr;

  // Runs a call on the NIC loop's thread and returns when it has returned: LoopThread::CallOn,
  // where that loop has a thread of its own. Without it the call is made directly: the last handle
  // is then dropped on the loop's thread, or while it is stopped.
  std::function<void(const std::function<void()>&)> run_on_nic_loop;
};

}  // namespace tokamak::verbs::soft
