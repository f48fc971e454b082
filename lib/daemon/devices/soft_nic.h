// SoftNic is one software NIC over UDP with its loop, socket and packet trace.
//
// Thread rule: opened and dropped by its owner's thread; all but the counters belongs to its loop.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "lib/base/trace.h"
#include "lib/daemon/devices/device.h"
#include "lib/daemon/metrics/named_number.h"
#include "lib/os/epoll_loop.h"
#include "lib/verbs/soft/device.h"
#include "lib/verbs/soft/packets/pcap.h"
#include "lib/verbs/soft/udp/udp_fabric.h"

namespace tokamak::daemon {

class SoftNic final {
 public:
  static constexpr int kEcnBits = 2;  // low bits of a traffic class, set by the NIC

  // `run` runs a call on the loop and waits for it. `ack_delay`: see verbs::soft::DeviceOptions.
  SoftNic(os::EpollLoop& loop, std::function<void(const std::function<void()>&)> run, base::Duration ack_delay);
  ~SoftNic();
  SoftNic(const SoftNic&) = delete;
  SoftNic& operator=(const SoftNic&) = delete;

  absl::Status Open(absl::string_view name, const verbs::soft::UdpDeviceName& parsed, const DeviceSettings& settings);

  verbs::soft::SoftDevice& device() const { return *device_; }

  // Appends the same names in the same order each time.
  void AddNumbers(std::vector<NamedNumber>& numbers) const;

 private:
  absl::Status OpenOnLoop(absl::string_view name, const verbs::soft::UdpDeviceName& parsed,
                          const DeviceSettings& settings);

  os::EpollLoop& loop_;
  const std::function<void(const std::function<void()>&)> run_;
  const base::Duration ack_delay_;
  base::NoTrace trace_;
  std::unique_ptr<verbs::soft::PcapWriter> pcap_;
  std::unique_ptr<verbs::soft::UdpFabric> fabric_;
  std::unique_ptr<verbs::soft::SoftDevice> device_;
};

}  // namespace tokamak::daemon
