// Natural order: n2 before n10.
#pragma once

#include "absl/strings/string_view.h"

namespace tokamak::cli {

// Returns true if `a` comes first. Runs of digits compare as numbers, all else byte by byte; equal
// ones (n1 and n01) as texts.
bool NaturallyBefore(absl::string_view a, absl::string_view b);

}  // namespace tokamak::cli
