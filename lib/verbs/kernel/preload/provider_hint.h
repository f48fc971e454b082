// Explains why a program of rdma-core sees none of our devices: it has no provider for them.
//
// Thread rule: any thread.
#pragma once

namespace tokamak::verbs::kernel::preload {

// Hints once, when the program lists libibverbs' providers in `folder`, as it does for unknown
// devices, and ours is missing.
void HintAtProvider(const char* folder);

}  // namespace tokamak::verbs::kernel::preload
