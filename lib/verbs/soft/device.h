// SoftDevice is an RDMA NIC in software: verbs above, a Fabric below, and the InfiniBand reliable
// connection protocol in between.
//
// The NIC has an event loop of its own: over udp on its own thread, as hardware works beside its
// host, in a simulation with its own processor. Host threads talk to it as to hardware: requests
// and completions travel through rings in memory; doorbells and completion events are Signals.
//
// Thread rule: see verbs.h. The parts of the NIC's loop (port, timers) are dropped with the last
// handle, on any thread, see DeviceOptions::run_on_nic_loop. The NIC's loop and the fabric outlive
// all handles.
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

// Opens a device, on the NIC loop's own thread or before that loop runs. Errors: those of
// Fabric::Open; kInvalidArgument for options beyond their bounds.
absl::StatusOr<std::unique_ptr<SoftDevice>> OpenSoftDevice(base::EventLoop& nic_loop, Fabric& fabric,
                                                           base::Trace& trace, const DeviceOptions& options);

// Registers memory as ProtectionDomain::RegisterMemory does, except that sges and peers name its
// first byte `base`. (ibv_reg_mr_iova) kInvalidArgument: also when base + size wraps.
absl::StatusOr<std::unique_ptr<MemoryRegion>> RegisterFrom(uint64_t base, ProtectionDomain& domain,
                                                           absl::Span<uint8_t> memory, Access access);

// Gives a region another domain, memory, base and access; its key stays. Afterwards the old memory
// is not touched, and windows bound in the region open nothing. (10.6.6.2; ibv_rereg_mr)
// kInvalidArgument: as of RegisterMemory; the region is unchanged.
absl::Status Reregister(MemoryRegion& region, uint64_t base, ProtectionDomain& domain, absl::Span<uint8_t> memory,
                        Access access);

// Makes `next` the key of a window after its next bind, instead of the device's choice. With
// `zero_based` peers name its first byte 0. Returns false when more than the last 8 bits differ.
// (10.6.7.2.1)
bool ChooseNextKey(MemoryWindow& window, uint32_t next, bool zero_based);

}  // namespace tokamak::verbs::soft
