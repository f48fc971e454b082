#include "sim/fabric/rate.h"

#include <array>
#include <cmath>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

namespace tokamak::sim {

absl::StatusOr<Rate> Rate::Parse(absl::string_view text) {
  const absl::string_view stripped = absl::StripAsciiWhitespace(text);
  const size_t digits = stripped.find_first_not_of("0123456789.");
  double number = 0;
  if (digits == absl::string_view::npos || !absl::SimpleAtod(stripped.substr(0, digits), &number)) {
    return absl::InvalidArgumentError(absl::StrCat("'", text, "' is no rate: write one such as 100Gb/s or 200Mb/s"));
  }
  constexpr std::array<std::pair<absl::string_view, double>, 3> kUnits = {
      {{"Mb/s", 1e6}, {"Gb/s", 1e9}, {"Tb/s", 1e12}}};
  const absl::string_view unit = absl::StripAsciiWhitespace(stripped.substr(digits));
  for (const auto& [name, factor] : kUnits) {
    if (unit != name) continue;
    const double bits = number * factor;
    if (bits < static_cast<double>(kLeast) || bits > static_cast<double>(kMost)) {
      return absl::InvalidArgumentError(absl::StrCat("a rate of ", text, ": between 1Mb/s and 8Tb/s can be simulated"));
    }
    return Rate(static_cast<uint64_t>(std::llround(bits)));
  }
  return absl::InvalidArgumentError(absl::StrCat("unknown unit in '", text, "': use Mb/s, Gb/s or Tb/s"));
}

std::string Rate::ToString() const {
  const double bits = static_cast<double>(bits_per_second_);
  return bits_per_second_ < 1'000'000'000 ? absl::StrCat(bits / 1e6, " Mb/s") : absl::StrCat(bits / 1e9, " Gb/s");
}

uint64_t Rate::BytesIn(base::Duration time) const {
  if (time <= base::Duration()) return 0;
  const double bytes = static_cast<double>(bits_per_second_) / 8 * time.seconds();
  // A hair below a whole number is that number: both factors were rounded.
  return static_cast<uint64_t>(std::ceil(bytes - 1e-6));
}

}  // namespace tokamak::sim
