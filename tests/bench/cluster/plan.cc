#include "tests/bench/cluster/plan.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "lib/base/check.h"

namespace tokamak::bench {

namespace {

constexpr Pattern kPatterns[] = {Pattern::kOneToOne, Pattern::kOneToMany, Pattern::kManyToOne, Pattern::kAllToAll};

// As the store's allocator rounds.
constexpr uint64_t kAlignment = 64;

}  // namespace

const char* ToString(Pattern pattern) {
  switch (pattern) {
    case Pattern::kOneToOne:
      return "one-to-one";
    case Pattern::kOneToMany:
      return "one-to-many";
    case Pattern::kManyToOne:
      return "many-to-one";
    case Pattern::kAllToAll:
      return "all-to-all";
  }
  return "?";
}

absl::StatusOr<Pattern> ParsePattern(absl::string_view text) {
  for (const Pattern pattern : kPatterns) {
    if (text == ToString(pattern)) return pattern;
  }
  return absl::InvalidArgumentError(
      absl::StrCat("unknown pattern '", text, "': use one-to-one, one-to-many, many-to-one or all-to-all"));
}

std::vector<Edge> EdgesOf(Pattern pattern, uint32_t ranks) {
  CHECK_GE(ranks, 2u);
  std::vector<Edge> edges;
  for (uint32_t to = 0; to < ranks; ++to) {
    for (uint32_t from = 0; from < ranks; ++from) {
      if (from == to) continue;
      const bool wanted = pattern == Pattern::kAllToAll || (pattern == Pattern::kOneToOne && from == 0 && to == 1) ||
                          (pattern == Pattern::kOneToMany && from == 0) || (pattern == Pattern::kManyToOne && to == 0);
      if (wanted) edges.push_back({from, to});
    }
  }
  return edges;
}

std::vector<Case> ShuffledCases(const std::vector<Pattern>& patterns, const std::vector<uint64_t>& sizes,
                                size_t contenders, base::Random random) {
  std::vector<Case> cases;
  for (const Pattern pattern : patterns) {
    for (const uint64_t size : sizes) {
      for (size_t contender = 0; contender < contenders; ++contender) cases.push_back({pattern, size, contender});
    }
  }
  for (size_t left = cases.size(); left > 1; --left) std::swap(cases[left - 1], cases[random.Below(left)]);
  return cases;
}

uint64_t MostBytesOfARank(const std::vector<Case>& cases, uint32_t ranks) {
  uint64_t most = 0;
  for (const Case& one : cases) {
    std::vector<uint64_t> objects(ranks);
    for (const Edge& edge : EdgesOf(one.pattern, ranks)) {
      ++objects[edge.from];
      ++objects[edge.to];
    }
    const uint64_t rounded = (one.size + kAlignment - 1) / kAlignment * kAlignment;
    most = std::max(most, rounded * *std::max_element(objects.begin(), objects.end()));
  }
  return most;
}

}  // namespace tokamak::bench
