// SoftDevice is an RDMA NIC in software: the verbs interface above, a Fabric below, and in between the InfiniBand reliable
// connection protocol written once.
//
// The NIC has an event loop of its own. Over udp that loop runs on a thread of its own, as hardware works beside its host; in
// a simulation it is a loop with a processor of its own. Host threads talk to it as to hardware: requests and completions
// travel through rings in memory, doorbells and completion events are Signals.
//
// Thread rule: see verbs.h. Open and the destructor may be called from any thread while the NIC's loop runs; the NIC's loop
// must outlive the device, and the device all its handles' last use.
#pragma once

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "lib/base/event_loop.h"
#include "lib/base/random.h"
#include "lib/base/trace.h"
#include "lib/verbs/soft/fabric.h"
#include "lib/verbs/verbs.h"

namespace tokamak::verbs::soft {

struct DeviceOptions {
  std::string name = "soft";
  Address address;  // where the fabric shall plug it in
  uint32_t max_mtu = kMaxMtu;
  uint64_t seed = 1;        // PSNs, queue pair numbers, keys
  uint32_t trace_node = 0;  // TraceEvent::node
};

// `nic_loop`, `fabric` and `trace` must outlive the device. Called on the NIC loop's own thread, or before that loop runs.
absl::StatusOr<std::unique_ptr<Device>> OpenSoftDevice(base::EventLoop& nic_loop, Fabric& fabric, base::Trace& trace,
                                                       const DeviceOptions& options);

}  // namespace tokamak::verbs::soft
