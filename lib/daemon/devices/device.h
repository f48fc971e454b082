// OpenedDevice is an RDMA device that was opened by name, with what it runs on: the wiring's one
// place that knows backends.
//
//   soft:udp@IP[:UDP_PORT]   our software NIC over UDP (RoCEv2), on its owner's loop or a thread of its own
//   soft:raw@IP[:UDP_PORT]   the same through raw sockets: all of the IPv4 header is ours; needs CAP_NET_RAW
//   ibv:NAME[:PORT][@GID]    real verbs (rdma-core): InfiniBand, RoCE, iWARP, Soft-RoCE, Soft-iWARP
//
// No silent fallback: a name that this build cannot open is an error that says what it can open.
// Thread rule: opened and dropped by one thread, which is none of the device's loops but for
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

// How the connections of real verbs are made.
enum class ConnectBy {
  kRdmaCm,  // by the kernel's manager, which needs IP on the fabric
  kTcp,     // by an exchange over TCP, on any network that joins the hosts; not for iWARP
};

// How packets are to travel. What is not given is the fabric's to say, or 0.
struct FabricSettings {
  // With kTcp, on InfiniBand: the partition, by its place in the port's table.
  uint16_t pkey_index = 0;
  // The largest that a path carries, in bytes, where that is less than the ports do.
  std::optional<uint32_t> path_mtu;
  // With kTcp, on InfiniBand: of the router to other subnets.
  std::optional<uint16_t> router_lid;
  // 0..15; for RoCE the priority; neither iWARP nor software NICs have one.
  std::optional<uint8_t> service_level;
  // The IP header's DSCP and ECN; a software NIC marks for ECN by itself.
  std::optional<uint8_t> traffic_class;
};

struct DeviceSettings {
  // A software NIC works on this loop, whose thread opens and drops it; null: on a thread of its
  // own.
  os::EpollLoop* loop = nullptr;
  // With `loop`: there is a second software NIC for bulk, on a thread of its own and the next UDP
  // port.
  bool bulk = false;
  os::Detection detection;           // of the software NIC's thread
  uint64_t seed = os::SecretSeed();  // of the software NIC
  std::string pcap_path;             // the software NIC's packets go there, as RoCEv2; empty: nowhere
  std::optional<verbs::soft::CongestionChoice> congestion;  // of the software NIC; none: its own choice
  ConnectBy connect_by = ConnectBy::kRdmaCm;
  verbs::Address address;  // with kTcp: where peers reach this host
  FabricSettings fabric;
};

class OpenedDevice {
 public:
  // Everything that came from the device must be dropped before.
  virtual ~OpenedDevice() = default;
  virtual verbs::Device& device() = 0;
  // Whatever engines for bulk use, on other loops: the same device, but for software NICs.
  virtual verbs::Device& bulk_device() { return device(); }
  virtual void AddNumbers(std::vector<NamedNumber>& numbers) const = 0;
  // Processors of the NUMA node that it hangs on; none: it hangs nowhere in particular.
  virtual std::vector<int> ProcessorsNear() const = 0;
};

absl::StatusOr<std::unique_ptr<OpenedDevice>> OpenDevice(absl::string_view name, const DeviceSettings& settings);

}  // namespace tokamak::daemon
