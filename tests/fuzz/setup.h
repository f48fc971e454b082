// The preparation of a target before the first input, under libFuzzer and in the replaying test
// alike: silence, and no forgiveness.
#pragma once

namespace tokamak::fuzz {

void Prepare();

}  // namespace tokamak::fuzz
