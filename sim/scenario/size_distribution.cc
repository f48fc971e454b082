#include "sim/scenario/size_distribution.h"

#include <algorithm>
#include <fstream>
#include <sstream>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

namespace tokamak::sim {
namespace {

constexpr double kMostBytesDrawn = 1 << 30;

}  // namespace

absl::StatusOr<SizeDistribution> SizeDistribution::Parse(absl::string_view text) {
  SizeDistribution result;
  size_t number = 0;
  for (absl::string_view line : absl::StrSplit(text, '\n')) {
    ++number;
    line = line.substr(0, line.find('#'));
    const std::vector<absl::string_view> words = absl::StrSplit(line, absl::ByAnyChar(" \t\r"), absl::SkipEmpty());
    if (words.empty()) continue;
    Point point{};
    const Point last = result.points_.empty() ? Point{} : result.points_.back();
    if (words.size() != 2 || !absl::SimpleAtod(words[0], &point.bytes) || !absl::SimpleAtod(words[1], &point.percent) ||
        !(point.bytes >= last.bytes && point.bytes <= kMostBytesDrawn) ||
        !(point.percent >= last.percent && point.percent <= 100)) {
      return absl::InvalidArgumentError(absl::StrCat(
          "line ", number, ": a size of at most 1 GiB and a percentage are needed here, both at least those before"));
    }
    result.points_.push_back(point);
  }
  if (result.points_.empty() || result.points_.back().percent != 100) {
    return absl::InvalidArgumentError("the last line must say 100 (percent)");
  }
  if (result.points_.front().percent > 0) result.points_.insert(result.points_.begin(), {result.points_[0].bytes, 0});
  return result;
}

absl::StatusOr<SizeDistribution> SizeDistribution::ReadFile(const std::string& path) {
  std::ifstream file(path);
  std::ostringstream text;
  if (!file || !(text << file.rdbuf())) return absl::NotFoundError(absl::StrCat("cannot read ", path));
  absl::StatusOr<SizeDistribution> result = Parse(text.str());
  if (result.ok()) return result;
  return absl::Status(result.status().code(), absl::StrCat(path, ": ", result.status().message()));
}

uint32_t SizeDistribution::Draw(base::Random* random) const {
  const double percent = 100 * random->Fraction();
  const auto upper = std::upper_bound(points_.begin(), points_.end(), percent,
                                      [](double value, const Point& point) { return value < point.percent; });
  const Point& b = upper == points_.end() ? points_.back() : *upper;
  const Point& a = upper == points_.begin() ? b : *(upper - 1);
  const double part = b.percent > a.percent ? (percent - a.percent) / (b.percent - a.percent) : 1;
  return std::max(1u, static_cast<uint32_t>(a.bytes + part * (b.bytes - a.bytes)));
}

double SizeDistribution::Mean() const {
  double mean = 0;
  for (size_t i = 1; i < points_.size(); ++i) {
    mean += (points_[i].percent - points_[i - 1].percent) / 100 * (points_[i].bytes + points_[i - 1].bytes) / 2;
  }
  return std::max(1.0, mean);
}

}  // namespace tokamak::sim
