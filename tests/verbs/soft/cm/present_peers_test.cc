#include "lib/verbs/soft/cm/present_peers.h"

#include "gtest/gtest.h"

namespace tokamak::verbs::soft {
namespace {

Address Host(uint32_t number) {
  Address address;
  address.ip[13] = static_cast<uint8_t>(number >> 16);
  address.ip[14] = static_cast<uint8_t>(number >> 8);
  address.ip[15] = static_cast<uint8_t>(number);
  return address;
}

TEST(PresentPeersTest, APeerIsRememberedForItsPeriodAndTheNext) {
  PresentPeers peers;
  peers.Add(Host(1), 5);
  EXPECT_TRUE(peers.Has(Host(1), 5));
  EXPECT_FALSE(peers.Has(Host(2), 5));
  peers.Add(Host(2), 6);
  EXPECT_TRUE(peers.Has(Host(1), 6));
  EXPECT_FALSE(peers.Has(Host(1), 7));
  EXPECT_TRUE(peers.Has(Host(2), 7));
  EXPECT_FALSE(peers.Has(Host(2), 100)) << "many periods went by in silence";
}

TEST(PresentPeersTest, APeerIsAnAddressWhateverItsPort) {
  PresentPeers peers;
  Address one = Host(1);
  one.udp_port = 5000;
  peers.Add(one, 0);
  EXPECT_TRUE(peers.Has(Host(1), 0));
}

TEST(PresentPeersTest, PeersBeyondTheBoundAreNotRemembered) {
  PresentPeers peers;
  for (uint32_t i = 0; i <= PresentPeers::kMost; ++i) peers.Add(Host(i), 0);
  EXPECT_TRUE(peers.Has(Host(PresentPeers::kMost - 1), 0));
  EXPECT_FALSE(peers.Has(Host(PresentPeers::kMost), 0));
}

}  // namespace
}  // namespace tokamak::verbs::soft
