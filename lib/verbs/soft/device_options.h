// DeviceOptions sets up one software NIC: see OpenSoftDevice.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "lib/base/time.h"
#include "lib/verbs/soft/congestion/congestion.h"
#include "lib/verbs/soft/host_memory.h"
#include "lib/verbs/types.h"

namespace tokamak::verbs::soft {

constexpr uint32_t kMostWindow = 4096;  // packets, by default

struct DeviceOptions {
  std::string name = "soft";
  Address address;  // at which the fabric plugs it in
  uint32_t max_mtu = kMaxMtu;
  uint64_t seed = 1;        // PSNs, queue pair numbers, keys
  uint32_t trace_node = 0;  // TraceEvent::node

  // See congestion.h. The default finds the network's capacity.
  CongestionControl congestion = CongestionControl::kAdditive;
  DcqcnParameters dcqcn;

  // Bounds of unacknowledged packets. All queue pairs together may have what the port's
  // receive_window holds, up to kMostWindow, or `nic_packets`, or `window_packets` if that is more.
  // kNone bounds neither.
  uint32_t window_packets = 0;  // of one queue pair; 0: what the port's receive_window holds
  uint32_t nic_packets = 0;     // 0: what the port's receive_window holds

  // Packets until a requester asks for an acknowledgement, at the latest; it also asks at a
  // message's end. 0: 32 or fewer, and at a batch's end.
  uint32_t ack_every = 0;

  // As responder: how long the acknowledgement of a SEND of one packet may wait for another packet
  // to leave with, at most kPatientAcknowledgements of them. It spares a wake-up at peers whose
  // messages are answered by messages. 0: none waits.
  base::Duration ack_delay;

  // True if only the missing packets of SENDs and WRITEs are repeated: each queue pair keeps up to
  // kHeldPackets that arrived behind a gap, and the NAK (a packet of our own) names the missing
  // ones. A peer without selective repeat goes back as usual.
  bool selective_repeat = false;

  // Packets of a batch, at least 1; larger batches are cheaper.
  uint32_t batch_packets = 128;

  // Time that threads and timers may add to a round trip; 0 in virtual time.
  base::Duration pause = kPause;

  // The least time between two congestion notifications of a queue pair.
  base::Duration notification_interval = base::Microseconds(50);

  // DSCP of queue pairs' packets; congestion notifications have kNotificationDscp, CM messages 0.
  uint8_t dscp = 0;

  // Asked before each access to registered memory; outlives the device. Null: no check.
  const HostMemory* host_memory = nullptr;

  // Runs a call on the NIC loop's thread and waits for it (LoopThread::CallOn). Null: calls are
  // direct, and the last handle must be dropped on that thread, or while the loop is stopped.
  std::function<void(const std::function<void()>&)> run_on_nic_loop;
};

}  // namespace tokamak::verbs::soft
