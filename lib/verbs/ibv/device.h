// OpenIbvDevice opens an RDMA device of the machine through libibverbs: InfiniBand, RoCE or iWARP,
// hardware or the kernel's Soft-RoCE and SoftiWARP.
//
// One port and one GID make one verbs::Device. Opening it makes a domain, a completion queue and a
// queue pair, so that an unusable device is refused now, in words, and not at the first transfer.
//
// Completion queues and connections live on the owner's loops, which must be os::EpollLoops
// (loops.h). One thread of the device reads its asynchronous events (async_events.h), another one
// connects (call_thread.h).
//
// Thread rule: see verbs.h.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "lib/verbs/ibv/translation/device_name.h"
#include "lib/verbs/verbs.h"

namespace tokamak::verbs::ibv {

enum class Exchange : uint8_t {
  kRdmaCm,  // the kernel's connection manager: needs IP on the fabric
  kTcp,     // numbers over TCP, queue pairs walked by hand: no IP on the fabric; not for iWARP
};

struct DeviceOptions {
  DeviceName name;
  Exchange exchange = Exchange::kRdmaCm;
  Address tcp_address;      // kTcp: the address that peers reach, and Device::address()
  uint16_t pkey_index = 0;  // kTcp: the partition

  // Default: the port's path MTU; with kTcp no peers of other InfiniBand subnets.
  std::optional<uint32_t> max_path_mtu;  // bytes: if a switch carries less than the ports do
  std::optional<uint16_t> router_lid;    // kTcp

  // How packets travel. Default: as rdma_cm finds it out, or 0 with kTcp.
  std::optional<uint8_t> service_level;  // 0..15; for RoCE the priority; iWARP has none
  std::optional<uint8_t> traffic_class;  // with a GRH; of RoCE v2 and iWARP the IP header's byte
};

// Errors, whose texts name the remedy:
//   kInvalidArgument    the options themselves
//   kUnimplemented      iWARP over TCP
//   kNotFound           no such device or port; the text lists what there is
//   kUnavailable        not usable: the port is down, no GID is usable, the provider refuses
//   kPermissionDenied   /dev/infiniband
absl::StatusOr<std::unique_ptr<Device>> OpenIbvDevice(const DeviceOptions& options);

}  // namespace tokamak::verbs::ibv
