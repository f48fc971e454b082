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
#include "lib/client/protocol/messages.h"
#include "lib/daemon/devices/device.h"

namespace tokamak::daemon {

bool IsIbvDevice(absl::string_view name);

absl::StatusOr<std::unique_ptr<OpenedDevice>> OpenIbvDevice(absl::string_view name, const DeviceSettings& settings);

// Appends a number for each file of `folder` that holds one, in the order of their names, and at
// most kMostCounters. Nothing for a folder that is not there: devices differ in what they count.
constexpr size_t kMostCounters = 64;
void AddCounters(const std::string& folder, std::vector<client::NumberEntry>& numbers);

}  // namespace tokamak::daemon
