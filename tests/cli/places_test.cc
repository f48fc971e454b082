// Which device and which address each node of a cluster gets.
#include "lib/cli/cluster/places.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <string>

#include "absl/strings/str_cat.h"
#include "lib/os/file_descriptor.h"

namespace tokamak::cli {
namespace {

TEST(PlacesTest, EachNodeHasASoftwareNicOfItsOwnByDefault) {
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

// As where another user, or another state folder, has a cluster already.
TEST(PlacesTest, ANetworkWithATakenPortIsAvoided) {
  Places places;
  places.udp_port = 4810;
  const os::FileDescriptor taken(socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(4811);  // of bulk
  ASSERT_EQ(inet_pton(AF_INET, "127.0.0.2", &address.sin_addr), 1);
  ASSERT_EQ(bind(taken.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
  const auto of_one = FreeNetwork(places, 1);
  const auto of_two = FreeNetwork(places, 2);
  ASSERT_TRUE(of_one.ok() && of_two.ok()) << of_one.status() << of_two.status();
  EXPECT_EQ(*of_one, "127.0.0");
  EXPECT_EQ(*of_two, absl::StrCat("127.", 1 + getuid() % 250, ".1"));
  places.network = *of_two;
  const auto placed = PlaceNodes(places, 2);
  ASSERT_TRUE(placed.ok()) << placed.status();
  EXPECT_EQ((*placed)[1].device, absl::StrCat("soft:udp@", *of_two, ".2:4810"));
  EXPECT_EQ((*placed)[1].listen.ToString(), absl::StrCat(*of_two, ".2:7000"));
}

TEST(PlacesTest, NodesTakeDevicesInTurnAndPortsDifferOnASharedOne) {
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

TEST(PlacesTest, ADeviceThatCannotBeOpenedIsReported) {
  Places places;
  places.devices = {"soft:udp@127.0.0.5", "hard:candy"};
  const auto placed = PlaceNodes(places, 2);
  ASSERT_FALSE(placed.ok());
  EXPECT_NE(placed.status().message().find("hard:candy"), std::string::npos) << placed.status();
}

TEST(PlacesTest, RunningOutOfPortsIsReported) {
  Places places;
  places.devices = {"soft:udp@127.0.0.5"};
  places.port = 65530;
  EXPECT_TRUE(PlaceNodes(places, 1).ok());
  EXPECT_TRUE(absl::IsInvalidArgument(PlaceNodes(places, 2).status()));
}

}  // namespace
}  // namespace tokamak::cli
