// SoftDevice is an RDMA NIC in software: the verbs interface above, a Fabric below, and in between
// the InfiniBand reliable connection protocol written once.
//
// The NIC has an event loop of its own. Over udp that loop runs on a thread of its own, as hardware
// works beside its host; in a simulation it is a loop with a processor of its own. Host threads
// talk to it as to hardware: requests and completions travel through rings in memory, doorbells and
// completion events are Signals.
//
// Thread rule: see verbs.h. What belongs to the NIC's loop (its port, its timers) is made by
// OpenSoftDevice and dropped with the last handle; that may be on any thread, see
// DeviceOptions::run_on_nic_loop. The NIC's loop and the fabric outlive all handles.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "lib/base/event_loop.h"
#include "lib/base/trace.h"
#include "lib/verbs/soft/congestion.h"
#include "lib/verbs/soft/counters.h"
#include "lib/verbs/soft/fabric.h"
#include "lib/verbs/verbs.h"

namespace tokamak::verbs::soft {

struct DeviceOptions {
  std::string name = "soft";
  Address address;  // where the fabric shall plug it in
  uint32_t max_mtu = kMaxMtu;
  uint64_t seed = 1;        // PSNs, queue pair numbers, keys
  uint32_t trace_node = 0;  // TraceEvent::node

  // How many packets a queue pair may have unacknowledged, see congestion.h. The default finds out
  // what the network can take. All queue pairs together may have as many as the port's
  // receive_window holds, or `window_packets` where that is more.
  CongestionControl congestion = CongestionControl::kAdditive;
  uint32_t window_packets = 0;  // the most; 0: what the port's receive_window holds

  // Runs a call on the NIC loop's thread and returns when it has returned: LoopThread::CallOn,
  // where that loop has a thread of its own. Without it the call is made directly: the last handle
  // is then dropped on the loop's thread, or while it is stopped.
  std::function<void(const std::function<void()>&)> run_on_nic_loop;
};

class SoftDevice : public Device {
 public:
  // From any thread.
  virtual DeviceCounters counters() const = 0;
  virtual absl::StatusOr<QueuePairCounters> queue_pair_counters(uint32_t number) const = 0;  // kNotFound
};

// Called on the NIC loop's own thread, or before that loop runs. Errors: those of Fabric::Open.
absl::StatusOr<std::unique_ptr<SoftDevice>> OpenSoftDevice(base::EventLoop& nic_loop, Fabric& fabric,
                                                           base::Trace& trace, const DeviceOptions& options);

}  // namespace tokamak::verbs::soft
