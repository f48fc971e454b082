#include "sim/fabric/link/rate.h"

#include <cmath>

#include "absl/strings/str_cat.h"
#include "lib/base/units.h"

namespace tokamak::sim {

absl::StatusOr<Rate> Rate::Parse(absl::string_view text) {
  const auto bits = base::ParseRate(text);
  if (!bits.ok()) return bits.status();
  if (*bits < kLeast || *bits > kMost) {
    return absl::InvalidArgumentError(absl::StrCat("a rate of ", text, ": between 1Mb/s and 8Tb/s can be simulated"));
  }
  return Rate(*bits);
}

std::string Rate::ToString() const {
  const double bits = static_cast<double>(bits_per_second_);
  return bits_per_second_ < 1'000'000'000 ? absl::StrCat(bits / 1e6, " Mb/s") : absl::StrCat(bits / 1e9, " Gb/s");
}

uint64_t Rate::BytesIn(base::Duration time) const {
  if (time <= base::Duration()) return 0;
  const double bytes = static_cast<double>(bits_per_second_) / 8 * time.seconds();
  // A hair above a whole number is that number: both factors were rounded.
  return static_cast<uint64_t>(std::ceil(bytes - 1e-6));
}

}  // namespace tokamak::sim
