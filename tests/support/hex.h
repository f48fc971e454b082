// Bytes that a test has in hexadecimal. Abseil's functions for that differ between its releases.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/strings/string_view.h"

namespace tokamak::support {

// Anything else than pairs of digits is a mistake in the test.
std::vector<uint8_t> BytesOfHex(absl::string_view hex);

}  // namespace tokamak::support
