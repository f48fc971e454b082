// Whether a device hears from its peer what became of a send or a write. InfiniBand and RoCE do: a request completes when the
// peer's device has it, one that is refused fails with the reason, and one that meets no receive is tried again. iWARP does not: it
// completes what it has handed to its stream, and whatever is wrong at the other side ends the connection.
#pragma once

#include "gtest/gtest.h"
#include "lib/verbs/types.h"

namespace tokamak::verbs::conformance {

// Limits name iWARP by what it asks of a READ's sink.
inline bool Acknowledges(const Limits& limits) { return !limits.read_sink_needs_remote_write; }

}  // namespace tokamak::verbs::conformance

// Ends the test where the device is not told.
#define TOKAMAK_NEEDS_ACKNOWLEDGEMENTS() \
  if (!Acknowledges(limits())) GTEST_SKIP() << "skipped: device lacks acknowledgements (iWARP)"
