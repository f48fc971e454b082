// The wire between the RDMA devices of this machine, and what goes wrong on it: arranged with tc,
// as root.
//
// Only net devices that the kernel made up (veth, in the lab's guest) are touched, so a test that
// is started on a machine with real ports harms nobody. An arrangement ends with its handle. Thread
// rule: one.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace tokamak::faults {

// The net device below an RDMA device: "rxe0" -> "v0". kNotFound: it has none.
absl::StatusOr<std::string> NetDeviceOf(const std::string& rdma_device);

// kUnavailable for a net device that the kernel did not make up.
absl::Status CheckVirtual(const std::string& net_device);

// A cable of its own between two ends of this machine, with an RDMA device at each, as the lab's:
// what one sends goes to the other.
class Cable final {
 public:
  struct End {
    std::string net_device;
    std::string rdma_device;
    std::string address;  // "10.0.1.1/24"
  };
  // Devices of a type that `rdma link add` knows. kUnavailable: the kernel or the user lacks
  // something.
  static absl::StatusOr<std::unique_ptr<Cable>> Lay(const std::string& type, const End& one, const End& other);
  ~Cable();
  Cable(const Cable&) = delete;
  Cable& operator=(const Cable&) = delete;

 private:
  Cable() = default;

  std::string net_device_;                 // one end; the other goes with it
  std::vector<std::string> rdma_devices_;  // that were made
};

// tc's command that has what `net_device` sends go through netem with these words: "loss 1%". netem
// holds as many packets as the lab's do (ci/lab/guest/netem_limit): by itself it holds 1,000, and
// would lose more of a burst than was asked for.
std::vector<std::string> NetemCommand(const std::string& net_device, const std::string& words);

class Netem final {
 public:
  // From now on what `net_devices` send goes through netem with these words, see NetemCommand.
  // kUnavailable: they are no virtual ones, the kernel or the user lacks something, or they have a
  // netem already.
  static absl::StatusOr<std::unique_ptr<Netem>> Start(const std::vector<std::string>& net_devices,
                                                      const std::string& words);
  ~Netem();
  Netem(const Netem&) = delete;
  Netem& operator=(const Netem&) = delete;

 private:
  Netem() = default;

  std::vector<std::string> net_devices_;  // that have it
};

}  // namespace tokamak::faults
