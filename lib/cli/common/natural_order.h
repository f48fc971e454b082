// Natural order: n2 before n10.
#pragma once

#include "absl/strings/string_view.h"

namespace tokamak::cli {

// Compares runs of digits as numbers, all else bytewise; equal numbers (n1, n01) as texts.
bool NaturallyBefore(absl::string_view a, absl::string_view b);

}  // namespace tokamak::cli
