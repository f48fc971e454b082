// The software NIC by name: soft:udp@IP[:UDP_PORT], or soft:raw@IP[:UDP_PORT] over raw sockets.
#pragma once

#include <memory>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "lib/daemon/devices/device.h"

namespace tokamak::daemon {

bool IsSoftDevice(absl::string_view name);

absl::StatusOr<std::unique_ptr<OpenedDevice>> OpenSoftDevice(absl::string_view name, const DeviceSettings& settings);

}  // namespace tokamak::daemon
