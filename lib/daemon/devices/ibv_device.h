// Real verbs, opened by name: ibv:NAME[:PORT][@GID_INDEX], say ibv:mlx5_0 or ibv:rxe0:1@1. For
// OpenDevice.
//
// Their numbers are the counters that the kernel keeps for the port, each under its own name:
// rdma_NAME.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "lib/daemon/devices/device.h"
#include "lib/daemon/metrics/named_number.h"

namespace tokamak::daemon {

bool IsIbvDevice(absl::string_view name);

absl::StatusOr<std::unique_ptr<OpenedDevice>> OpenIbvDevice(absl::string_view name, const DeviceSettings& settings);

// Appends a number for each file of `folder` that holds one, in the order of their names: at most
// kMostCounters, and none whose name is longer than kLongestCounterName bytes. A folder that is not
// there has none: devices differ in what they count.
constexpr size_t kMostCounters = 64;
constexpr size_t kLongestCounterName = 120;
void AddCounters(const std::string& folder, std::vector<NamedNumber>& numbers);

}  // namespace tokamak::daemon
