// OpenedDevice is an RDMA device opened by name, with its resources: the wiring's one place that
// knows backends.
//
//  soft:udp@IP[:UDP_PORT]   our software NIC over UDP (RoCEv2), on its owner's loop or a thread
//  soft:raw@IP[:UDP_PORT]   the same through raw sockets, with our IPv4 header; needs CAP_NET_RAW
//  ibv:NAME[:PORT][@GID]    real verbs (rdma-core): InfiniBand, RoCE, iWARP, Soft-RoCE, Soft-iWARP
//
// An unknown name is an error that lists the possible ones. Thread rule: opened and dropped by one
// thread, outside the device's loops except DeviceSettings::loop.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "lib/daemon/metrics/named_number.h"
#include "lib/os/epoll_loop.h"
#include "lib/os/secret_seed.h"
#include "lib/verbs/soft/congestion/congestion.h"
#include "lib/verbs/verbs.h"

namespace tokamak::daemon {

enum class ConnectBy {
  kRdmaCm,  // the kernel's manager; needs IP on the fabric
  kTcp,     // over TCP, on any network of the hosts; not for iWARP
};

// Without a value: the fabric's choice, or 0.
struct FabricSettings {
  // P_Key index; with kTcp on InfiniBand.
  uint16_t pkey_index = 0;
  // Bound of a path's MTU, in bytes.
  std::optional<uint32_t> path_mtu;
  // Router to other subnets; with kTcp on InfiniBand.
  std::optional<uint16_t> router_lid;
  // 0..15; for RoCE the priority; not for iWARP and software NICs.
  std::optional<uint8_t> service_level;
  // DSCP and ECN; a software NIC sets ECN itself.
  std::optional<uint8_t> traffic_class;
};

struct DeviceSettings {
  // A software NIC's, whose thread opens and drops it; null: a thread of its own.
  os::EpollLoop* loop = nullptr;
  // With `loop`: a second software NIC for bulk, on its own thread and the next UDP port.
  bool bulk = false;
  os::Detection detection;  // its thread's
  uint64_t seed = os::SecretSeed();
  std::string pcap_path;                                    // packet trace, as RoCEv2; empty: none
  std::optional<verbs::soft::CongestionChoice> congestion;  // nullopt: the software NIC's choice
  ConnectBy connect_by = ConnectBy::kRdmaCm;
  verbs::Address address;  // with kTcp: this host's, for peers
  FabricSettings fabric;
};

class OpenedDevice {
 public:
  // Requires its objects dropped.
  virtual ~OpenedDevice() = default;
  virtual verbs::Device& device() = 0;
  // For engines on other loops; another device only for software NICs.
  virtual verbs::Device& bulk_device() { return device(); }
  virtual void AddNumbers(std::vector<NamedNumber>& numbers) const = 0;
  // On its NUMA node; empty: none.
  virtual std::vector<int> ProcessorsNear() const = 0;
};

absl::StatusOr<std::unique_ptr<OpenedDevice>> OpenDevice(absl::string_view name, const DeviceSettings& settings);

}  // namespace tokamak::daemon
