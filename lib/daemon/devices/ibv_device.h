// Real verbs, opened by name: ibv:NAME[:PORT][@GID_INDEX], e.g. ibv:mlx5_0 or ibv:rxe0:1@1.
//
// Numbers: the port's kernel counters, as rdma_NAME.
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

// Appends a number per file of `folder` that holds one, by name: at most kMostCounters, with names
// up to kLongestCounterName bytes. The folder may be missing.
constexpr size_t kMostCounters = 64;
constexpr size_t kLongestCounterName = 120;
void AddCounters(const std::string& folder, std::vector<NamedNumber>& numbers);

}  // namespace tokamak::daemon
