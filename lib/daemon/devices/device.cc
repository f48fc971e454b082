#include "lib/daemon/devices/device.h"

#include "absl/strings/str_cat.h"
#include "lib/daemon/devices/ibv_device.h"
#include "lib/daemon/devices/soft_device.h"

namespace tokamak::daemon {

absl::StatusOr<std::unique_ptr<OpenedDevice>> OpenDevice(absl::string_view name, const DeviceSettings& settings) {
  if (IsSoftDevice(name)) return OpenSoftDevice(name, settings);
  if (IsIbvDevice(name)) return OpenIbvDevice(name, settings);
  return absl::InvalidArgumentError(absl::StrCat("unknown device '", name,
                                                 "': use soft:udp@IP, say soft:udp@127.0.0.1, soft:raw@IP, or "
                                                 "ibv:NAME, say ibv:mlx5_0"));
}

}  // namespace tokamak::daemon
