// DeviceName names an RDMA device of libibverbs: "ibv:NAME[:PORT][@GID_INDEX]", say ibv:rxe0,
// ibv:mlx5_0:2 or ibv:mlx5_0:1@3.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace tokamak::verbs::ibv {

struct DeviceName {
  std::string device;                 // as ibv_devices lists it
  uint8_t port = 0;                   // from 1; 0: the first that is active
  std::optional<uint32_t> gid_index;  // none: the best, see gid.h

  std::string ToString() const;
};

// kInvalidArgument shows a name's form.
absl::StatusOr<DeviceName> ParseDeviceName(absl::string_view text);

}  // namespace tokamak::verbs::ibv
