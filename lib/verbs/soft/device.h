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
  // From any thread.
  virtual DeviceCounters counters() const = 0;
  virtual absl::StatusOr<QueuePairCounters> queue_pair_counters(uint32_t number) const = 0;  // kNotFound

  // For who walks queue pairs by itself: connections in messages alone. `call` runs under the NIC's
  // mutex; what it leads to is sent.
  virtual void WithManager(absl::FunctionRef<void(SoftConnectionManager&)> call) = 0;
};

// Called on the NIC loop's own thread, or before that loop runs. Errors: those of Fabric::Open;
// kInvalidArgument for options beyond their bounds.
absl::StatusOr<std::unique_ptr<SoftDevice>> OpenSoftDevice(base::EventLoop& nic_loop, Fabric& fabric,
                                                           base::Trace& trace, const DeviceOptions& options);

// As ProtectionDomain::RegisterMemory, of a software NIC, but that sges and peers name the first byte
// `base`, and others from there on. (ibv_reg_mr_iova) kInvalidArgument: also where base + size wraps.
absl::StatusOr<std::unique_ptr<MemoryRegion>> RegisterFrom(uint64_t base, ProtectionDomain& domain,
                                                           absl::Span<uint8_t> memory, Access access);

// Makes another region of one of a software NIC, which keeps its key: of that domain, memory, base
// and access. Nothing of what it was is touched any more when this returns; windows that were bound in
// it open nothing. (10.6.6.2; ibv_rereg_mr) kInvalidArgument: as of RegisterMemory, and then it is
// as it was.
absl::Status Reregister(MemoryRegion& region, uint64_t base, ProtectionDomain& domain, absl::Span<uint8_t> memory,
                        Access access);

// The next bind of a software NIC's window gives it the key `next`, as programs of ibverbs choose it,
// and not one of the device's choice. With `zero_based` peers name its first byte 0. False: only the
// last 8 bits may differ. (10.6.7.2.1)
bool ChooseNextKey(MemoryWindow& window, uint32_t next, bool zero_based);

}  // namespace tokamak::verbs::soft
