// Opening a device file of ours.
//
// Thread rule: any thread.
#pragma once

#include <cstddef>

#include "lib/verbs/kernel/preload/paths.h"

namespace tokamak::verbs::kernel::preload {

// As open(): a descriptor, or -1 with errno. What is wrong with the device's network is said once.
int OpenDeviceFile(const DeviceFile& file, int flags);

// Which uverbs device the descriptor is of.
size_t DeviceIndexOf(int descriptor);

}  // namespace tokamak::verbs::kernel::preload
