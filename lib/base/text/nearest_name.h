// NearestName finds the name that somebody may have meant who wrote another: for errors.
#pragma once

#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace tokamak::base {

// Of `names` the one with the least edit distance to `written` (letters put in, left out, changed,
// or two neighbours swapped); empty where it takes more than a third of the letters, so that
// nothing is proposed that has little to do with it.
std::string NearestName(absl::string_view written, const std::vector<std::string>& names);

// "; did you mean memory?", to stand behind what is wrong; empty where nothing is near. `prefix`
// stands before the name, as -- does.
std::string DidYouMean(absl::string_view written, const std::vector<std::string>& names, absl::string_view prefix = "");

}  // namespace tokamak::base
