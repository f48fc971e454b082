// Lives of clusters from seeds, judged by docs/consistency.md. The environment may name other seeds
// than the built-in ones:
//
//   TOKAMAK_SEEDS=1000-1499 bazel test //tests/sim:world_test
//
// ci/worlds runs many. TOKAMAK_TRIALS=burst,stall leaves only these trials (sim/worlds/trials.h). A
// life that fails prints its seed; TOKAMAK_SEEDS=N repeats it, and TOKAMAK_DESCRIBE=object1 prints
// the calls about that object.
#include "sim/worlds/world.h"

#include <algorithm>
#include <cstdlib>
#include <iostream>
#include <string>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "gtest/gtest.h"

namespace tokamak::sim {
namespace {

constexpr uint64_t kFirst = 1, kLast = 40;
constexpr size_t kMostPrinted = 4;  // violations of one seed

// "7" or "1000-1499".
std::vector<uint64_t> Seeds() {
  uint64_t first = kFirst, last = kLast;
  if (const char* text = std::getenv("TOKAMAK_SEEDS"); text != nullptr && *text != '\0') {
    const std::vector<std::string> parts = absl::StrSplit(text, '-');
    if (parts.size() > 2 || !absl::SimpleAtoi(parts.front(), &first) || !absl::SimpleAtoi(parts.back(), &last) ||
        first > last) {
      std::cerr << "TOKAMAK_SEEDS=" << text << ": expected N or N-M\n";
      std::exit(2);
    }
  }
  std::vector<uint64_t> seeds;
  for (uint64_t seed = first; seed <= last; ++seed) seeds.push_back(seed);
  return seeds;
}

WorldOptions OptionsOf(uint64_t seed) {
  WorldOptions options = WorldOptions::OfSeed(seed);
  const char* const names = std::getenv("TOKAMAK_TRIALS");
  if (names == nullptr || *names == '\0') return options;
  options.trials &= Trials::Named(absl::StrSplit(names, ','));
  return options;
}

class WorldTest : public testing::TestWithParam<uint64_t> {};

TEST_P(WorldTest, KeepsTheContract) {
  World world(OptionsOf(GetParam()));
  const std::vector<std::string> wrong = world.Run();
  for (size_t i = 0; i < std::min(wrong.size(), kMostPrinted); ++i) ADD_FAILURE() << wrong[i];
  EXPECT_EQ(wrong.size(), 0u) << world.Describe();
  EXPECT_GT(world.history().size(), 100u);
  if (const char* id = std::getenv("TOKAMAK_DESCRIBE"); id != nullptr) std::cout << world.history().Describe(id);
}

INSTANTIATE_TEST_SUITE_P(Seeds, WorldTest, testing::ValuesIn(Seeds()));

TEST(WorldRepeatTest, TheSameSeedIsTheSameLife) {
  uint64_t hashes[2];
  for (uint64_t& hash : hashes) {
    World world(WorldOptions::OfSeed(99));
    world.Run();
    hash = world.trace_hash();
  }
  EXPECT_EQ(hashes[0], hashes[1]);
}

}  // namespace
}  // namespace tokamak::sim
