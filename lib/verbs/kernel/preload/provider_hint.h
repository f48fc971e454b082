// Why a program of rdma-core sees none of our devices: it has no provider for them.
//
// Thread rule: any thread.
#pragma once

namespace tokamak::verbs::kernel::preload {

// The program lists `folder`. Where that is libibverbs' list of providers, which it reads once it
// has found devices that it knows none of, and ours is not in it, the user is told once.
void HintAtProvider(const char* folder);

}  // namespace tokamak::verbs::kernel::preload
