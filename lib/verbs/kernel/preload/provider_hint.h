// Explains why a program of rdma-core sees none of our devices: it has no provider for them.
//
// Thread rule: any thread.
#pragma once

namespace tokamak::verbs::kernel::preload {

// The program lists `folder`. If that is libibverbs' list of providers, which it reads when it has
// found unknown devices, and ours is not in it, prints a hint, once.
void HintAtProvider(const char* folder);

}  // namespace tokamak::verbs::kernel::preload
