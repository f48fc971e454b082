// SizeDistribution draws sizes of transfers from a measured distribution: lines of bytes and
// percentage of transfers no larger, both rising, to 100. Sizes between are drawn evenly; # begins
// a comment.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "lib/base/random.h"

namespace tokamak::sim {

class SizeDistribution final {
 public:
  // kInvalidArgument names the line.
  static absl::StatusOr<SizeDistribution> Parse(absl::string_view text);
  static absl::StatusOr<SizeDistribution> ReadFile(const std::string& path);  // also kNotFound

  uint32_t Draw(base::Random* random) const;  // at least 1
  double Mean() const;

 private:
  struct Point {
    double bytes;
    double percent;
  };
  std::vector<Point> points_;
};

}  // namespace tokamak::sim
