// Steps of a pull that no pull may take.
#include "lib/node/pulls/pull_state.h"

#include <algorithm>
#include <vector>

#include "gtest/gtest.h"

namespace tokamak::node {
namespace {

constexpr PullState kAll[] = {PullState::kNew,     PullState::kLocating,    PullState::kHinted,   PullState::kBringing,
                              PullState::kBackOff, PullState::kRefreshing,  PullState::kQueued,   PullState::kBundled,
                              PullState::kMoving,  PullState::kRegistering, PullState::kVouching, PullState::kUnvouched,
                              PullState::kOver};

TEST(PullStateTest, NothingFollowsTheEndOrPrecedesTheBeginning) {
  for (PullState state : kAll) {
    EXPECT_FALSE(MayFollow(PullState::kOver, state));
    EXPECT_FALSE(MayFollow(state, PullState::kNew));
  }
}

TEST(PullStateTest, EveryPullMayEndOnceItHasBegun) {
  for (PullState state : kAll) {
    const bool may_end = state != PullState::kNew && state != PullState::kOver;
    EXPECT_EQ(MayFollow(state, PullState::kOver), may_end) << static_cast<int>(state);
  }
}

TEST(PullStateTest, AllBytesAreHereOnlyAfterATransfer) {
  for (PullState from : kAll) {
    for (PullState to : kAll) {
      if (!HasArrived(to) || !MayFollow(from, to)) continue;
      EXPECT_TRUE(from == PullState::kMoving || HasArrived(from)) << static_cast<int>(from);
    }
  }
}

TEST(PullStateTest, HoldersAreLookedUpOnceInARoundAndBundlesAskedOnce) {
  EXPECT_FALSE(MayFollow(PullState::kRefreshing, PullState::kRefreshing));
  EXPECT_FALSE(MayFollow(PullState::kBundled, PullState::kBundled));
}

TEST(PullStateTest, EveryStateCanBeReached) {
  std::vector<PullState> reached = {PullState::kNew};
  for (size_t i = 0; i < reached.size(); ++i) {
    for (PullState to : kAll) {
      const bool known = std::find(reached.begin(), reached.end(), to) != reached.end();
      if (!known && MayFollow(reached[i], to)) reached.push_back(to);
    }
  }
  EXPECT_EQ(reached.size(), std::size(kAll));
}

}  // namespace
}  // namespace tokamak::node
