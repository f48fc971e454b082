// The order in which people count: n2 before n10.
#pragma once

#include "absl/strings/string_view.h"

namespace tokamak::cli {

// Whether `a` comes first. Runs of digits compare as numbers, all else byte by byte; what is the same
// so (n1 and n01) as texts.
bool NaturallyBefore(absl::string_view a, absl::string_view b);

}  // namespace tokamak::cli
