#include "lib/cli/common/natural_order.h"

#include <algorithm>

#include "absl/strings/ascii.h"

namespace tokamak::cli {

namespace {

bool IsDigit(char c) { return absl::ascii_isdigit(static_cast<unsigned char>(c)); }

absl::string_view TakeNumber(absl::string_view& text) {
  const auto end = std::find_if_not(text.begin(), text.end(), IsDigit);
  absl::string_view digits = text.substr(0, static_cast<size_t>(end - text.begin()));
  text.remove_prefix(digits.size());
  digits.remove_prefix(std::min(digits.find_first_not_of('0'), digits.size()));
  return digits;
}

}  // namespace

bool NaturallyBefore(absl::string_view a, absl::string_view b) {
  absl::string_view x = a, y = b;
  while (!x.empty() && !y.empty()) {
    if (IsDigit(x.front()) && IsDigit(y.front())) {
      const absl::string_view m = TakeNumber(x), n = TakeNumber(y);
      if (m.size() != n.size()) return m.size() < n.size();
      if (m != n) return m < n;
    } else {
      if (x.front() != y.front()) return x.front() < y.front();
      x.remove_prefix(1);
      y.remove_prefix(1);
    }
  }
  return x.empty() == y.empty() ? a < b : x.empty();
}

}  // namespace tokamak::cli
