// Which device and which address each node of a cluster gets.
#include "lib/cli/places.h"

#include <gtest/gtest.h>

namespace tokamak::cli {
namespace {

TEST(PlacesTest, WithoutDevicesEachNodeHasASoftwareNicOfItsOwn) {
  Places places;
  places.port = 7100;
  places.udp_port = 4800;
  const auto placed = PlaceNodes(places, 2);
  ASSERT_TRUE(placed.ok()) << placed.status();
  ASSERT_EQ(placed->size(), 2u);
  EXPECT_EQ((*placed)[0].device, "soft:udp@127.0.0.1:4800");
  EXPECT_EQ((*placed)[0].listen.ToString(), "127.0.0.1:7100");
  EXPECT_EQ((*placed)[1].device, "soft:udp@127.0.0.2:4800");
  EXPECT_EQ((*placed)[1].listen.ToString(), "127.0.0.2:7100");
}

TEST(PlacesTest, NodesTakeDevicesInTurnAndThoseThatShareOneAreAllPortsApart) {
  Places places;
  places.devices = {"soft:udp@127.0.0.5", "soft:udp@127.0.0.6"};
  const auto placed = PlaceNodes(places, 5);
  ASSERT_TRUE(placed.ok()) << placed.status();
  const char* const expected[] = {"127.0.0.5:7000", "127.0.0.6:7000", "127.0.0.5:7016", "127.0.0.6:7016",
                                  "127.0.0.5:7032"};
  ASSERT_EQ(placed->size(), 5u);
  for (size_t i = 0; i < 5; ++i) {
    EXPECT_EQ((*placed)[i].device, places.devices[i % 2]);
    EXPECT_EQ((*placed)[i].listen.ToString(), expected[i]);
  }
}

TEST(PlacesTest, ADeviceThatCannotBeOpenedIsSaid) {
  Places places;
  places.devices = {"soft:udp@127.0.0.5", "hard:candy"};
  const auto placed = PlaceNodes(places, 2);
  ASSERT_FALSE(placed.ok());
  EXPECT_NE(placed.status().message().find("hard:candy"), std::string::npos) << placed.status();
}

TEST(PlacesTest, PortsEnd) {
  Places places;
  places.devices = {"soft:udp@127.0.0.5"};
  places.port = 65530;
  EXPECT_TRUE(PlaceNodes(places, 1).ok());
  EXPECT_TRUE(absl::IsInvalidArgument(PlaceNodes(places, 2).status()));
}

}  // namespace
}  // namespace tokamak::cli
