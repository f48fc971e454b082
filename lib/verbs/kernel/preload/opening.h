// Opening a device file of ours.
//
// Thread rule: any thread.
#pragma once

#include <cstddef>

#include "lib/verbs/kernel/preload/paths.h"

namespace tokamak::verbs::kernel::preload {

// Works as open(). Trouble of the device's network is reported once.
int OpenDeviceFile(const DeviceFile& file, int flags);

size_t DeviceIndexOf(int descriptor);

}  // namespace tokamak::verbs::kernel::preload
