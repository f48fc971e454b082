// NearestName finds the name that a misspelt one may stand for, for errors.
#pragma once

#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace tokamak::base {

// Returns the name with the least edit distance to `written` (letters inserted, deleted, changed,
// or two neighbours swapped), or an empty text if that is more than a third of the letters, so that
// unrelated names are not proposed.
std::string NearestName(absl::string_view written, const std::vector<std::string>& names);

// Returns "; did you mean memory?" as the end of an error, or an empty text if no name is near.
// `prefix`, such as --, goes before the name.
std::string DidYouMean(absl::string_view written, const std::vector<std::string>& names, absl::string_view prefix = "");

}  // namespace tokamak::base
