// Inventory reads libibverbs' facts about the devices of this machine, without making anything on
// them: for diagnosis.
//
// Opening a device is a system call into its driver, which may not return for long: a caller that
// cannot wait asks from a process that can be ended. Thread rule: any thread.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace tokamak::verbs::ibv {

// Lists, by name, the devices that libibverbs finds a provider for. Errors: the kernel has no
// verbs, or may not be asked.
absl::StatusOr<std::vector<std::string>> ListDevices();

struct PortInventory {
  uint8_t number = 0;
  bool active = false;
  uint32_t active_mtu = 0;  // bytes, as configured now
  uint32_t max_mtu = 0;     // bytes
};

struct DeviceInventory {
  std::string firmware;
  uint64_t max_region = 0;  // bytes
  std::vector<PortInventory> ports;
};

// Opens `name` and asks. kNotFound: libibverbs has no such device, the text names those that it
// has; kPermissionDenied: it may not be opened; else the provider's error.
absl::StatusOr<DeviceInventory> Inspect(const std::string& name);

}  // namespace tokamak::verbs::ibv
