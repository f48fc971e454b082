#include "lib/daemon/device.h"

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "lib/daemon/soft_device.h"

namespace tokamak::daemon {

absl::StatusOr<std::unique_ptr<OpenedDevice>> OpenDevice(absl::string_view name, const DeviceSettings& settings) {
  if (IsSoftDevice(name)) return OpenSoftDevice(name, settings);
  if (absl::StartsWith(name, "ibv:")) {
    return absl::UnimplementedError(
        absl::StrCat("this tokd cannot open '", name, "': it has no rdma-core backend; use soft:udp@IP"));
  }
  return absl::InvalidArgumentError(
      absl::StrCat("unknown device '", name, "': use soft:udp@IP, say soft:udp@127.0.0.1, or soft:raw@IP"));
}

}  // namespace tokamak::daemon
