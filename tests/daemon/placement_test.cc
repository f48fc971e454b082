// Placement of engines by a made tree of /sys.
#include "lib/daemon/devices/placement.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "tests/support/short_folder.h"

namespace tokamak::daemon {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

class PlacementTest : public testing::Test {
 protected:
  void AddDevice(const std::string& name, const std::string& node, const std::string& processors) {
    const std::string folder = sysfs_.Path("class/infiniband/" + name + "/device");
    std::filesystem::create_directories(folder);
    std::ofstream(folder + "/numa_node") << node << "\n";
    std::ofstream(folder + "/local_cpulist") << processors << "\n";
  }

  const testing_support::ShortFolder sysfs_;
};

TEST_F(PlacementTest, ProcessorsOfTheDevicesNodeAreNear) {
  AddDevice("mlx5_0", "0", "0-1,4-5");
  AddDevice("mlx5_1", "1", "2-3,6-7");
  EXPECT_THAT(ProcessorsNear(sysfs_.path(), "mlx5_0"), ElementsAre(0, 1, 4, 5));
  EXPECT_THAT(ProcessorsNear(sysfs_.path(), "mlx5_1"), ElementsAre(2, 3, 6, 7));
}

TEST_F(PlacementTest, NothingIsNearIfTheKernelKnowsNoNode) {
  AddDevice("mlx5_0", "-1", "0-7");
  AddDevice("mlx5_1", "", "0-7");
  EXPECT_THAT(ProcessorsNear(sysfs_.path(), "mlx5_0"), IsEmpty());
  EXPECT_THAT(ProcessorsNear(sysfs_.path(), "mlx5_1"), IsEmpty());
  EXPECT_THAT(ProcessorsNear(sysfs_.path(), "rxe0"), IsEmpty()) << "it has no device folder";
}

TEST(PlaceNearTest, ThePlaceIsTheIntersectionOfNearAndAllowed) {
  EXPECT_THAT(PlaceNear({2, 3, 6}, {0, 1, 2, 3}), ElementsAre(2, 3));
}

TEST(PlaceNearTest, NothingIsBoundIfThatChangesNothing) {
  EXPECT_THAT(PlaceNear({0, 1, 2, 3}, {0, 1}), IsEmpty());
  EXPECT_THAT(PlaceNear({}, {0, 1}), IsEmpty());
  EXPECT_THAT(PlaceNear({4, 5}, {0, 1}), IsEmpty()) << "all that are near are forbidden";
}

}  // namespace
}  // namespace tokamak::daemon
