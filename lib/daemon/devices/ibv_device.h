// Real verbs, opened by name: ibv:NAME[:PORT][@GID_INDEX], e.g. ibv:mlx5_0 or ibv:rxe0:1@1. For
// OpenDevice.
//
// Their numbers are the kernel's counters of the port, each as rdma_NAME.
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

// Appends a number for each file of `folder` that holds one, sorted by name: at most kMostCounters,
// without names longer than kLongestCounterName bytes. A missing folder has none: devices differ in
// their counters.
constexpr size_t kMostCounters = 64;
constexpr size_t kLongestCounterName = 120;
void AddCounters(const std::string& folder, std::vector<NamedNumber>& numbers);

}  // namespace tokamak::daemon
