#include "tests/bench/cluster/plan.h"

#include <algorithm>
#include <set>
#include <tuple>
#include <vector>

#include "gtest/gtest.h"
#include "tests/bench/cluster/content.h"

namespace tokamak::bench {
namespace {

const std::vector<Pattern> kPlannedPatterns = {Pattern::kOneToOne, Pattern::kOneToMany, Pattern::kManyToOne,
                                               Pattern::kAllToAll};

std::vector<std::pair<uint32_t, uint32_t>> Pairs(Pattern pattern, uint32_t ranks) {
  std::vector<std::pair<uint32_t, uint32_t>> pairs;
  for (const Edge& edge : EdgesOf(pattern, ranks)) pairs.emplace_back(edge.from, edge.to);
  return pairs;
}

using Expected = std::vector<std::pair<uint32_t, uint32_t>>;

TEST(PlanTest, APatternListsItsTransfers) {
  EXPECT_EQ(Pairs(Pattern::kOneToOne, 3), (Expected{{0, 1}}));
  EXPECT_EQ(Pairs(Pattern::kOneToMany, 3), (Expected{{0, 1}, {0, 2}}));
  EXPECT_EQ(Pairs(Pattern::kManyToOne, 3), (Expected{{1, 0}, {2, 0}}));
  EXPECT_EQ(Pairs(Pattern::kAllToAll, 3), (Expected{{1, 0}, {2, 0}, {0, 1}, {2, 1}, {0, 2}, {1, 2}}));
}

TEST(PlanTest, AllPatternsNeedOnlyTwoRanks) {
  EXPECT_EQ(Pairs(Pattern::kOneToMany, 2), (Expected{{0, 1}}));
  EXPECT_EQ(Pairs(Pattern::kManyToOne, 2), (Expected{{1, 0}}));
}

TEST(PlanTest, PatternsAreReadAsTheyAreWritten) {
  for (const Pattern pattern : kPlannedPatterns) EXPECT_EQ(*ParsePattern(ToString(pattern)), pattern);
  const auto unknown = ParsePattern("some-to-some");
  EXPECT_EQ(unknown.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_NE(unknown.status().message().find("all-to-all"), absl::string_view::npos);
}

TEST(PlanTest, ASeedShufflesAllCases) {
  const std::vector<uint64_t> sizes = {1, 64, 4096};
  const auto order = [&](uint64_t seed) {
    std::vector<std::tuple<Pattern, uint64_t, size_t>> cases;
    for (const Case& one : ShuffledCases(kPlannedPatterns, sizes, 4, base::Random(seed))) {
      cases.emplace_back(one.pattern, one.size, one.contender);
    }
    return cases;
  };
  auto first = order(1);
  EXPECT_EQ(order(1), first);
  EXPECT_NE(order(2), first);
  EXPECT_FALSE(std::is_sorted(first.begin(), first.end()));
  EXPECT_EQ(std::set(first.begin(), first.end()).size(), kPlannedPatterns.size() * sizes.size() * 4);
}

TEST(PlanTest, ARankNeedsRoomForWhatItGivesAndGets) {
  const auto most = [](Pattern pattern, uint64_t size, uint32_t ranks) {
    return MostBytesOfARank({{pattern, size, 0}}, ranks);
  };
  EXPECT_EQ(most(Pattern::kOneToOne, 1, 4), 64u);
  EXPECT_EQ(most(Pattern::kOneToMany, 128, 4), 3 * 128u);
  EXPECT_EQ(most(Pattern::kManyToOne, 128, 4), 3 * 128u);
  EXPECT_EQ(most(Pattern::kAllToAll, 128, 4), 6 * 128u);
  EXPECT_EQ(MostBytesOfARank({{Pattern::kOneToOne, 1000, 0}, {Pattern::kAllToAll, 64, 0}}, 3), 1024u);
}

TEST(ContentTest, PiecesAreTheSameHoweverTheyAreCut) {
  const Content content(1, 2, 3, {0, 1});
  std::vector<uint8_t> whole(1003), pieces(1003);
  content.Fill(0, absl::MakeSpan(whole));
  for (size_t at = 0; at < pieces.size(); at += 64) {
    content.Fill(at, absl::MakeSpan(pieces).subspan(at, 64));
  }
  EXPECT_EQ(pieces, whole);
}

TEST(ContentTest, NoTwoObjectsOfARunAreEqual) {
  std::set<base::ObjectId> ids;
  std::set<std::vector<uint8_t>> all;
  size_t made = 0;
  const auto add = [&](const Content& content) {
    std::vector<uint8_t> bytes(16);
    content.Fill(0, absl::MakeSpan(bytes));
    ids.insert(content.id());
    all.insert(bytes);
    ++made;
  };
  for (const uint32_t number : {1, 11}) {
    for (const uint32_t repetition : {1, 11}) {
      for (const Edge& edge : EdgesOf(Pattern::kAllToAll, 13)) add(Content(7, number, repetition, edge));
    }
  }
  EXPECT_EQ(ids.size(), made);
  EXPECT_EQ(all.size(), made);
}

}  // namespace
}  // namespace tokamak::bench
