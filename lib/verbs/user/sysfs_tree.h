// The part of /sys in which rdma-core and others look for RDMA devices, as a folder of ordinary
// files: class/infiniband, class/infiniband_verbs and class/misc/rdma_cm, as the kernel has them.
//
// The folder is this user's alone and named after what is in it, so all processes with the same
// devices share one, and one that is killed leaves nothing that the next would not make.
//
// Thread rule: any thread.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "lib/verbs/user/user_device.h"

namespace tokamak::verbs::user {

// The numbers of device files: /dev/infiniband/uverbs0 and so on, and rdma_cm.
constexpr unsigned kUverbsMajor = 231;
constexpr unsigned kFirstUverbsMinor = 192;

// Returns the folder that stands for /sys, below `parent`. Errors: what the file system says.
absl::StatusOr<std::string> MakeSysfsTree(const std::string& parent, absl::Span<const Identity> devices);

}  // namespace tokamak::verbs::user
