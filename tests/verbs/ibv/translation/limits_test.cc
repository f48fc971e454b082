#include "lib/verbs/ibv/translation/limits.h"

#include "gtest/gtest.h"

namespace tokamak::verbs::ibv {
namespace {

class MakeLimitsTest : public testing::Test {
 protected:
  MakeLimitsTest() {
    device.atomic_cap = IBV_ATOMIC_HCA;
    device.device_cap_flags = IBV_DEVICE_MEM_WINDOW_TYPE_2B;
    device.max_srq = 10;
    device.max_sge = 30;
    device.max_sge_rd = 20;
    device.max_qp_wr = 1000;
    device.max_cqe = 2000;
    device.max_qp = 3000;
    device.max_qp_rd_atom = 128;
    device.max_qp_init_rd_atom = 16;
    device.local_ca_ack_delay = 15;
    port.max_msg_sz = 1 << 30;
    port.active_mtu = IBV_MTU_2048;
  }

  ibv_device_attr device{};
  ibv_port_attr port{};
};

TEST_F(MakeLimitsTest, RoceHasTheLimitsOfItsDevice) {
  const Limits limits = MakeLimits(LinkKind::kRoce, device, port, 512);
  EXPECT_TRUE(limits.atomics);
  EXPECT_TRUE(limits.immediate);
  EXPECT_TRUE(limits.memory_windows);
  EXPECT_TRUE(limits.shared_receive);
  EXPECT_TRUE(limits.manual_modify);
  EXPECT_FALSE(limits.read_sink_needs_remote_write);
  EXPECT_TRUE(limits.three_way_connect);
  EXPECT_TRUE(limits.acknowledgements);
  EXPECT_TRUE(limits.region_read_rights);
  EXPECT_TRUE(limits.queue_pair_rights);
  EXPECT_TRUE(limits.solicited_events);
  EXPECT_TRUE(limits.drop_stops_transfers);
  EXPECT_EQ(limits.max_inline, 512u);
  EXPECT_EQ(limits.max_sges, 30u);
  EXPECT_EQ(limits.max_read_sges, 20u);
  EXPECT_EQ(limits.max_send_requests, 1000u);
  EXPECT_EQ(limits.max_receive_requests, 1000u);
  EXPECT_EQ(limits.max_completions, 2000u);
  EXPECT_EQ(limits.max_queue_pairs, 3000u);
  EXPECT_EQ(limits.max_reads, 16u);
  EXPECT_EQ(limits.max_message, 1u << 30);
  EXPECT_EQ(limits.active_mtu, 2048u);
  EXPECT_EQ(limits.ack_delay, base::Nanoseconds(4096 << 15));
}

TEST_F(MakeLimitsTest, ADriverThatNamesNoPiecesOfAReadHasOne) {
  device.max_sge_rd = 0;
  EXPECT_EQ(MakeLimits(LinkKind::kRoce, device, port, 512).max_read_sges, 1u);
}

TEST_F(MakeLimitsTest, IwarpHasTheLimitsOfItsProtocolWhateverTheDeviceSays) {
  const Limits limits = MakeLimits(LinkKind::kIwarp, device, port, 80);
  EXPECT_FALSE(limits.immediate);
  EXPECT_FALSE(limits.memory_windows);
  EXPECT_FALSE(limits.manual_modify);
  EXPECT_TRUE(limits.read_sink_needs_remote_write);
  EXPECT_FALSE(limits.three_way_connect);
  EXPECT_FALSE(limits.acknowledgements);
  EXPECT_EQ(limits.max_read_sges, 1u);
}

TEST_F(MakeLimitsTest, IwarpKeepsFeaturesThatItsProtocolAllows) {
  const Limits limits = MakeLimits(LinkKind::kIwarp, device, port, 80);
  EXPECT_TRUE(limits.region_read_rights);
  EXPECT_TRUE(limits.queue_pair_rights);
  EXPECT_TRUE(limits.solicited_events);
  EXPECT_TRUE(limits.drop_stops_transfers);
}

TEST_F(MakeLimitsTest, BrokenFeaturesOfAProviderAreNotClaimed) {
  device.vendor_id = 0x626d74;  // siw's
  const Limits limits = MakeLimits(LinkKind::kIwarp, device, port, 80);
  EXPECT_FALSE(limits.region_read_rights);
  EXPECT_FALSE(limits.queue_pair_rights);
  EXPECT_FALSE(limits.solicited_events);
  EXPECT_FALSE(limits.drop_stops_transfers);
}

TEST_F(MakeLimitsTest, OnInfiniBandAnAddressIsNotEnoughToWalkByHand) {
  EXPECT_FALSE(MakeLimits(LinkKind::kInfiniBand, device, port, 0).manual_modify);
}

TEST_F(MakeLimitsTest, InfiniBandHasEverythingElseThatIwarpLacks) {
  const Limits limits = MakeLimits(LinkKind::kInfiniBand, device, port, 0);
  EXPECT_TRUE(limits.immediate);
  EXPECT_TRUE(limits.three_way_connect);
  EXPECT_TRUE(limits.acknowledgements);
  EXPECT_FALSE(limits.read_sink_needs_remote_write);
}

TEST_F(MakeLimitsTest, MissingFeaturesOfTheDeviceAreFalse) {
  device = ibv_device_attr{};
  const Limits limits = MakeLimits(LinkKind::kRoce, device, port, 0);
  EXPECT_FALSE(limits.atomics);
  EXPECT_FALSE(limits.memory_windows);
  EXPECT_FALSE(limits.shared_receive);
}

TEST_F(MakeLimitsTest, WindowsOfType1AloneAreNone) {
  device.device_cap_flags = IBV_DEVICE_MEM_WINDOW;
  EXPECT_FALSE(MakeLimits(LinkKind::kRoce, device, port, 0).memory_windows);
}

TEST_F(MakeLimitsTest, WindowsThatPeersCanLeaveAreNone) {
  device.vendor_id = 0xffffff;  // rdma_rxe's
  EXPECT_FALSE(MakeLimits(LinkKind::kRoce, device, port, 0).memory_windows);
}

TEST_F(MakeLimitsTest, LongListsOfPiecesEndAtOurs) {
  device.max_sge = 1000;
  EXPECT_EQ(MakeLimits(LinkKind::kRoce, device, port, 0).max_sges, kMaxSges);
}

TEST_F(MakeLimitsTest, ReadsFitTheOptionsThatNameThem) {
  device.max_qp_rd_atom = device.max_qp_init_rd_atom = 1000;
  EXPECT_EQ(MakeLimits(LinkKind::kRoce, device, port, 0).max_reads, 255u);
}

TEST(LinkOfTest, TheTransportComesBeforeTheLinkLayer) {
  EXPECT_EQ(LinkOf(IBV_TRANSPORT_IWARP, IBV_LINK_LAYER_ETHERNET), LinkKind::kIwarp);
  EXPECT_EQ(LinkOf(IBV_TRANSPORT_IB, IBV_LINK_LAYER_ETHERNET), LinkKind::kRoce);
  EXPECT_EQ(LinkOf(IBV_TRANSPORT_IB, IBV_LINK_LAYER_INFINIBAND), LinkKind::kInfiniBand);
}

}  // namespace
}  // namespace tokamak::verbs::ibv
