// OpenedDevice is an RDMA device that was opened by name, with its resources: the wiring's one
// place that knows backends.
//
//  soft:udp@IP[:UDP_PORT]   our software NIC over UDP (RoCEv2), on its owner's loop or a thread
//  soft:raw@IP[:UDP_PORT]   the same through raw sockets, with our IPv4 header; needs CAP_NET_RAW
//  ibv:NAME[:PORT][@GID]    real verbs (rdma-core): InfiniBand, RoCE, iWARP, Soft-RoCE, Soft-iWARP
//
// No silent fallback: a name that this build cannot open is an error that lists what it can open.
// Thread rule: opened and dropped by one thread, outside the device's loops except
// DeviceSettings::loop.
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

// Ways to make the connections of real verbs.
enum class ConnectBy {
  kRdmaCm,  // by the kernel's manager, which needs IP on the fabric
  kTcp,     // over TCP, on any network that joins the hosts; not for iWARP
};

// Settings of packets. Without a value the fabric decides, or it is 0.
struct FabricSettings {
  // Index of the partition in the port's table; with kTcp on InfiniBand.
  uint16_t pkey_index = 0;
  // Largest MTU of a path, in bytes, if below that of the ports.
  std::optional<uint32_t> path_mtu;
  // LID of the router to other subnets; with kTcp on InfiniBand.
  std::optional<uint16_t> router_lid;
  // 0..15; for RoCE the priority; iWARP and software NICs have none.
  std::optional<uint8_t> service_level;
  // DSCP and ECN of the IP header; a software NIC sets ECN itself.
  std::optional<uint8_t> traffic_class;
};

struct DeviceSettings {
  // The loop of a software NIC, whose thread opens and drops it; null: a thread of its own.
  os::EpollLoop* loop = nullptr;
  // With `loop`: true for a second software NIC for bulk, on its own thread and the next UDP port.
  bool bulk = false;
  os::Detection detection;           // of the software NIC's thread
  uint64_t seed = os::SecretSeed();  // of the software NIC
  std::string pcap_path;             // file for the software NIC's packets, as RoCEv2; empty: none
  std::optional<verbs::soft::CongestionChoice> congestion;  // of the software NIC; nullopt: its own choice
  ConnectBy connect_by = ConnectBy::kRdmaCm;
  verbs::Address address;  // with kTcp: this host's, for peers
  FabricSettings fabric;
};

class OpenedDevice {
 public:
  // Drop every object of the device before.
  virtual ~OpenedDevice() = default;
  virtual verbs::Device& device() = 0;
  // The device of engines for bulk, on other loops: the same, except for software NICs.
  virtual verbs::Device& bulk_device() { return device(); }
  virtual void AddNumbers(std::vector<NamedNumber>& numbers) const = 0;
  // Processors of the device's NUMA node; empty: it has none.
  virtual std::vector<int> ProcessorsNear() const = 0;
};

absl::StatusOr<std::unique_ptr<OpenedDevice>> OpenDevice(absl::string_view name, const DeviceSettings& settings);

}  // namespace tokamak::daemon
