// A fuzz target is one function that takes any bytes and dies (CHECK, a sanitizer) when a promise
// does not hold.
//
// Linked with libFuzzer (ci/fuzz) it is called millions of times with inputs that libFuzzer makes;
// linked with replay.cc it is an ordinary test. Law: what it does follows from the bytes alone, and
// nothing is left when it returns.
#pragma once

#include <cstddef>
#include <cstdint>

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);
