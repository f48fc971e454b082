// NearestName finds the name that a misspelt one may stand for, for errors.
#pragma once

#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace tokamak::base {

// Returns the name at the least edit distance from `written` (letters inserted, deleted, changed,
// or neighbours swapped), or an empty text if that is more than a third of the letters.
std::string NearestName(absl::string_view written, const std::vector<std::string>& names);

// Returns "; did you mean memory?" as the end of an error, or an empty text if no name is near.
// `prefix`, such as --, goes before the name.
std::string DidYouMean(absl::string_view written, const std::vector<std::string>& names, absl::string_view prefix = "");

}  // namespace tokamak::base
