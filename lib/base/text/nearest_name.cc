#include "lib/base/text/nearest_name.h"

#include <algorithm>
#include <cstddef>

#include "absl/strings/str_cat.h"

namespace tokamak::base {
namespace {

// Optimal string alignment, in three rows.
size_t EditDistance(absl::string_view a, absl::string_view b) {
  std::vector<size_t> before(b.size() + 1), last(b.size() + 1), row(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (size_t i = 1; i <= a.size(); ++i) {
    before.swap(last);
    last.swap(row);
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      row[j] = std::min({last[j] + 1, row[j - 1] + 1, last[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1)});
      const bool swapped = i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1];
      if (swapped) row[j] = std::min(row[j], before[j - 2] + 1);
    }
  }
  return row[b.size()];
}

}  // namespace

std::string NearestName(absl::string_view written, const std::vector<std::string>& names) {
  std::string nearest;
  size_t least = written.size() / 3 + 1;
  for (const std::string& name : names) {
    const size_t distance = EditDistance(written, name);
    if (distance >= least) continue;
    least = distance;
    nearest = name;
  }
  return nearest;
}

std::string DidYouMean(absl::string_view written, const std::vector<std::string>& names, absl::string_view prefix) {
  const std::string nearest = NearestName(written, names);
  return nearest.empty() ? "" : absl::StrCat("; did you mean ", prefix, nearest, "?");
}

}  // namespace tokamak::base
