// SoftDevice is an RDMA NIC in software: verbs above, a Fabric below, and the InfiniBand reliable
// connection protocol in between.
//
// The NIC works on an event loop of its own: over udp on its own thread, in a simulation on its own
// processor. Requests and completions travel through rings in memory; doorbells and completion
// events are Signals.
//
// Thread rule: see verbs.h. The NIC's port and timers are dropped with the last handle, which may
// be on any thread (see DeviceOptions::run_on_nic_loop). The NIC's loop and the fabric outlive all
// handles.
#pragma once

#include <cstdint>
#include <memory>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "lib/base/event_loop.h"
#include "lib/base/trace.h"
#include "lib/verbs/soft/device_options.h"
#include "lib/verbs/soft/fabric.h"
#include "lib/verbs/soft/state/counters.h"
#include "lib/verbs/verbs.h"

namespace tokamak::verbs::soft {

class SoftConnectionManager;

class SoftDevice : public Device {
 public:
  // Any thread.
  virtual DeviceCounters counters() const = 0;
  virtual absl::StatusOr<QueuePairCounters> queue_pair_counters(uint32_t number) const = 0;  // kNotFound

  // Runs `call` under the NIC's mutex, then sends what it leads to. For connections in messages
  // alone.
  virtual void WithManager(absl::FunctionRef<void(SoftConnectionManager&)> call) = 0;
};

// Opens a device, on the NIC loop's thread or before that loop runs. Errors are those of
// Fabric::Open; kInvalidArgument: options beyond their bounds.
absl::StatusOr<std::unique_ptr<SoftDevice>> OpenSoftDevice(base::EventLoop& nic_loop, Fabric& fabric,
                                                           base::Trace& trace, const DeviceOptions& options);

// Registers memory whose first byte sges and peers name `base` (ibv_reg_mr_iova). Errors are those
// of RegisterMemory; kInvalidArgument also when base + size wraps.
absl::StatusOr<std::unique_ptr<MemoryRegion>> RegisterFrom(uint64_t base, ProtectionDomain& domain,
                                                           absl::Span<uint8_t> memory, Access access);

// Changes everything of a region except its key. Afterwards the old memory is not touched, and
// windows bound in the region open nothing (10.6.6.2; ibv_rereg_mr). kInvalidArgument: as for
// RegisterMemory; nothing has changed.
absl::Status Reregister(MemoryRegion& region, uint64_t base, ProtectionDomain& domain, absl::Span<uint8_t> memory,
                        Access access);

// Makes `next` the key after the next bind, instead of the device's choice; with `zero_based` peers
// name the first byte 0. Returns false when more than the last 8 bits differ (10.6.7.2.1).
bool ChooseNextKey(MemoryWindow& window, uint32_t next, bool zero_based);

}  // namespace tokamak::verbs::soft
