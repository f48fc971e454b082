// Attributes for ibv_modify_qp at each step, for each kind of link, without a device.
#include "lib/verbs/ibv/translation/attributes.h"

#include <cstring>

#include "absl/status/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace tokamak::verbs::ibv {
namespace {

constexpr int kReceiveMask = IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
                             IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
constexpr int kSendMask =
    IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC;

Gid GidOf(uint8_t subnet, uint8_t last) { return {0xfe, 0x80, 0, 0, 0, 0, 0, subnet, 0, 0, 0, 0, 0, 0, 0, last}; }

LocalPort RocePort() {
  LocalPort port;
  port.link = LinkKind::kRoce;
  port.number = 2;
  port.gid = GidOf(0, 1);
  port.gid_index = 3;
  port.service_level = 5;
  port.traffic_class = 0x68;
  port.flow_label = 0x12345;
  port.hop_limit = 17;
  port.active_mtu = 4096;
  return port;
}

LocalPort InfiniBandPort() {
  LocalPort port = RocePort();
  port.link = LinkKind::kInfiniBand;
  port.lid = 0x21;
  port.path_bits = 1;
  port.pkey_index = 4;
  return port;
}

LocalPort IwarpPort() {
  LocalPort port = RocePort();
  port.link = LinkKind::kIwarp;
  return port;
}

PeerPort Peer(uint8_t subnet = 0) {
  PeerPort peer;
  peer.gid = GidOf(subnet, 9);
  peer.lid = 0x44;
  return peer;
}

Agreement Agreed() {
  Agreement agreement;
  agreement.peer_number = 0x123456;
  agreement.receive_psn = 0xabcdef;
  agreement.send_psn = 0xfedcba;
  agreement.path_mtu = 2048;
  agreement.reliability.reads_outstanding = 7;
  agreement.reliability.reads_served = 9;
  return agreement;
}

TEST(AttributesTest, InitNamesPortPartitionAndRights) {
  const Step step = InitStep(InfiniBandPort(), kRemoteRead | kRemoteWrite | kLocalWrite);
  EXPECT_EQ(step.mask, IBV_QP_STATE | IBV_QP_ACCESS_FLAGS | IBV_QP_PORT | IBV_QP_PKEY_INDEX);
  EXPECT_EQ(step.attributes.qp_state, IBV_QPS_INIT);
  EXPECT_EQ(step.attributes.port_num, 2);
  EXPECT_EQ(step.attributes.pkey_index, 4);
  EXPECT_EQ(step.attributes.qp_access_flags,
            static_cast<unsigned>(IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_LOCAL_WRITE));
}

TEST(AttributesTest, InitOfIwarpNamesRightsOnly) {
  EXPECT_EQ(InitStep(IwarpPort(), kLocalRead).mask, IBV_QP_STATE | IBV_QP_ACCESS_FLAGS);
}

TEST(AttributesTest, EveryRightHasItsFlag) {
  EXPECT_EQ(AccessFlags(kLocalRead), 0u);
  EXPECT_EQ(AccessFlags(kLocalWrite), static_cast<unsigned>(IBV_ACCESS_LOCAL_WRITE));
  EXPECT_EQ(AccessFlags(kRemoteWrite), static_cast<unsigned>(IBV_ACCESS_REMOTE_WRITE));
  EXPECT_EQ(AccessFlags(kRemoteRead), static_cast<unsigned>(IBV_ACCESS_REMOTE_READ));
  EXPECT_EQ(AccessFlags(kRemoteAtomic), static_cast<unsigned>(IBV_ACCESS_REMOTE_ATOMIC));
  EXPECT_EQ(AccessFlags(kWindowBind), static_cast<unsigned>(IBV_ACCESS_MW_BIND));
}

TEST(AttributesTest, RoceGoesByGid) {
  const auto step = ReadyToReceiveStep(RocePort(), Peer(), Agreed());
  ASSERT_TRUE(step.ok()) << step.status();
  EXPECT_EQ(step->mask, kReceiveMask);
  const ibv_qp_attr& attributes = step->attributes;
  EXPECT_EQ(attributes.qp_state, IBV_QPS_RTR);
  EXPECT_EQ(attributes.dest_qp_num, 0x123456u);
  EXPECT_EQ(attributes.rq_psn, 0xabcdefu);
  EXPECT_EQ(attributes.path_mtu, IBV_MTU_2048);
  EXPECT_EQ(attributes.max_dest_rd_atomic, 9);
  EXPECT_EQ(attributes.ah_attr.is_global, 1);
  EXPECT_EQ(attributes.ah_attr.port_num, 2);
  EXPECT_EQ(attributes.ah_attr.sl, 5);
  EXPECT_EQ(attributes.ah_attr.dlid, 0);
  EXPECT_EQ(attributes.ah_attr.grh.sgid_index, 3);
  EXPECT_EQ(attributes.ah_attr.grh.hop_limit, 17);
  EXPECT_EQ(attributes.ah_attr.grh.traffic_class, 0x68);
  EXPECT_EQ(attributes.ah_attr.grh.flow_label, 0x12345u);
  EXPECT_EQ(std::memcmp(attributes.ah_attr.grh.dgid.raw, Peer().gid.data(), 16), 0);
}

TEST(AttributesTest, APortWithoutATrafficClassSendsInClassZero) {
  LocalPort port = RocePort();
  port.service_level.reset();
  port.traffic_class.reset();
  const auto step = ReadyToReceiveStep(port, Peer(), Agreed());
  ASSERT_TRUE(step.ok()) << step.status();
  EXPECT_EQ(step->attributes.ah_attr.sl, 0);
  EXPECT_EQ(step->attributes.ah_attr.grh.traffic_class, 0);
}

TEST(AttributesTest, TheKernelsRouteKeepsItsClassUnlessThePortHasOne) {
  Step step;
  step.attributes.ah_attr.is_global = 1;
  step.attributes.ah_attr.sl = 2;
  step.attributes.ah_attr.grh.traffic_class = 0x20;
  LocalPort port = RocePort();
  port.service_level.reset();
  port.traffic_class.reset();
  ASSERT_TRUE(OwnReadyToReceive(port, 1024, {}, &step).ok());
  EXPECT_EQ(step.attributes.ah_attr.sl, 2);
  EXPECT_EQ(step.attributes.ah_attr.grh.traffic_class, 0x20);
  ASSERT_TRUE(OwnReadyToReceive(RocePort(), 1024, {}, &step).ok());
  EXPECT_EQ(step.attributes.ah_attr.sl, 5);
  EXPECT_EQ(step.attributes.ah_attr.grh.traffic_class, 0x68);
}

TEST(AttributesTest, ARouteWithoutAGlobalHeaderHasNoTrafficClass) {
  Step step;
  ASSERT_TRUE(OwnReadyToReceive(InfiniBandPort(), 1024, {}, &step).ok());
  EXPECT_EQ(step.attributes.ah_attr.sl, 5);
  EXPECT_EQ(step.attributes.ah_attr.grh.traffic_class, 0);
}

TEST(AttributesTest, InfiniBandGoesByLidInsideItsSubnet) {
  const auto step = ReadyToReceiveStep(InfiniBandPort(), Peer(), Agreed());
  ASSERT_TRUE(step.ok()) << step.status();
  EXPECT_EQ(step->mask, kReceiveMask);
  EXPECT_EQ(step->attributes.ah_attr.is_global, 0);
  EXPECT_EQ(step->attributes.ah_attr.dlid, 0x44);
  EXPECT_EQ(step->attributes.ah_attr.src_path_bits, 1);
  EXPECT_EQ(step->attributes.ah_attr.sl, 5);
}

TEST(AttributesTest, InfiniBandGoesByGidAcrossSubnetsAndWhereThePortDemandsIt) {
  for (bool demanded : {false, true}) {
    LocalPort port = InfiniBandPort();
    port.global_routes_only = demanded;
    port.router_lid = 0x55;
    const auto step = ReadyToReceiveStep(port, Peer(demanded ? 0 : 1), Agreed());
    ASSERT_TRUE(step.ok()) << step.status();
    EXPECT_EQ(step->attributes.ah_attr.is_global, 1);
    EXPECT_EQ(step->attributes.ah_attr.dlid, demanded ? 0x44 : 0x55) << "the peer's own, or the router's";
    EXPECT_EQ(step->attributes.ah_attr.grh.sgid_index, 3);
  }
}

TEST(AttributesTest, AnInfiniBandPeerBehindAnUnknownRouterIsRefusedWithTheRemedy) {
  const absl::Status status = ReadyToReceiveStep(InfiniBandPort(), Peer(1), Agreed()).status();
  EXPECT_TRUE(absl::IsFailedPrecondition(status)) << status;
  EXPECT_NE(status.message().find("--router-lid"), absl::string_view::npos) << status;
  EXPECT_TRUE(ReadyToReceiveStep(RocePort(), Peer(1), Agreed()).ok());
}

TEST(AttributesTest, AnInfiniBandPeerWithoutALidIsRefused) {
  PeerPort peer = Peer();
  peer.lid = 0;
  EXPECT_TRUE(absl::IsInvalidArgument(ReadyToReceiveStep(InfiniBandPort(), peer, Agreed()).status()));
  EXPECT_TRUE(ReadyToReceiveStep(RocePort(), peer, Agreed()).ok());
}

TEST(AttributesTest, IwarpIsNotWalkedByHand) {
  EXPECT_TRUE(absl::IsUnimplemented(ReadyToReceiveStep(IwarpPort(), Peer(), Agreed()).status()));
  EXPECT_TRUE(absl::IsUnimplemented(ReadyToSendStep(IwarpPort(), Agreed()).status()));
}

TEST(AttributesTest, EveryPathMtuHasItsCode) {
  const std::pair<uint32_t, ibv_mtu> kMtus[] = {
      {256, IBV_MTU_256}, {512, IBV_MTU_512}, {1024, IBV_MTU_1024}, {2048, IBV_MTU_2048}, {4096, IBV_MTU_4096}};
  for (const auto& [bytes, code] : kMtus) {
    Agreement agreement = Agreed();
    agreement.path_mtu = bytes;
    const auto step = ReadyToReceiveStep(RocePort(), Peer(), agreement);
    ASSERT_TRUE(step.ok()) << step.status();
    EXPECT_EQ(step->attributes.path_mtu, code);
    EXPECT_EQ(MtuBytes(code), bytes);
  }
  EXPECT_EQ(MtuBytes(static_cast<ibv_mtu>(0)), 0u);
  EXPECT_EQ(MtuBytes(static_cast<ibv_mtu>(6)), 0u);
}

TEST(AttributesTest, InvalidPathMtusAndThoseThatThePortLacksAreRefused) {
  LocalPort port = RocePort();
  port.active_mtu = 1024;
  for (uint32_t mtu : {0u, 1u, 1000u, 1500u, 2048u, 8192u}) {
    Agreement agreement = Agreed();
    agreement.path_mtu = mtu;
    EXPECT_TRUE(absl::IsInvalidArgument(ReadyToReceiveStep(port, Peer(), agreement).status())) << mtu;
  }
}

TEST(AttributesTest, AckTimeoutsAreRoundedUpToAPowerOfTwo) {
  const auto code_of = [](base::Duration timeout) {
    Agreement agreement = Agreed();
    agreement.reliability.ack_timeout = timeout;
    return ReadyToSendStep(RocePort(), agreement)->attributes.timeout;
  };
  for (uint8_t code = 1; code < 32; ++code) EXPECT_EQ(code_of(base::Nanoseconds(int64_t{4096} << code)), code);
  EXPECT_EQ(code_of(base::Nanoseconds(1)), 1) << "0 would be for ever";
  EXPECT_EQ(code_of(base::Milliseconds(67)), 14);
  EXPECT_EQ(code_of(base::Milliseconds(68)), 15);
  EXPECT_EQ(code_of(base::Seconds(100000)), 31);
}

TEST(AttributesTest, NotReadyDelaysAreRoundedUpInTheTable) {
  const auto code_of = [](base::Duration delay) {
    Agreement agreement = Agreed();
    agreement.reliability.rnr_delay = delay;
    return ReadyToReceiveStep(RocePort(), Peer(), agreement)->attributes.min_rnr_timer;
  };
  EXPECT_EQ(code_of(base::Microseconds(1)), 1);
  EXPECT_EQ(code_of(base::Microseconds(10)), 1);
  EXPECT_EQ(code_of(base::Microseconds(640)), 12);
  EXPECT_EQ(code_of(base::Microseconds(641)), 13);
  EXPECT_EQ(code_of(base::Microseconds(491520)), 31);
  EXPECT_EQ(code_of(base::Milliseconds(492)), 0) << "655.36 ms";
}

TEST(AttributesTest, RetriesAreExplicitAndNeverForEver) {
  for (uint8_t count = 0; count <= kMaxRetryCount; ++count) {
    Agreement agreement = Agreed();
    agreement.reliability.retry_count = count;
    agreement.reliability.rnr_retry_count = static_cast<uint8_t>(kMaxRetryCount - count);
    const auto step = ReadyToSendStep(RocePort(), agreement);
    ASSERT_TRUE(step.ok()) << step.status();
    EXPECT_EQ(step->mask, kSendMask);
    EXPECT_EQ(step->attributes.qp_state, IBV_QPS_RTS);
    EXPECT_EQ(step->attributes.retry_cnt, count);
    EXPECT_EQ(step->attributes.rnr_retry, kMaxRetryCount - count);
    EXPECT_EQ(step->attributes.sq_psn, 0xfedcbau);
    EXPECT_EQ(step->attributes.max_rd_atomic, 7);
  }
  Agreement agreement = Agreed();
  agreement.reliability.retry_count = 7;
  EXPECT_TRUE(absl::IsInvalidArgument(ReadyToSendStep(RocePort(), agreement).status()));
  agreement = Agreed();
  agreement.reliability.rnr_retry_count = 7;
  EXPECT_TRUE(absl::IsInvalidArgument(ReadyToSendStep(RocePort(), agreement).status()));
}

// As the kernel's connection manager leaves it: its route and PSN stay, its MTU, time-outs and
// retries do not.
TEST(AttributesTest, TheKernelsValuesAreOverruledWhereWeDecide) {
  Step receive;
  receive.attributes.ah_attr.is_global = 1;
  receive.attributes.ah_attr.grh.sgid_index = 8;
  receive.attributes.dest_qp_num = 77;
  receive.attributes.rq_psn = 78;
  receive.attributes.path_mtu = IBV_MTU_4096;
  receive.attributes.min_rnr_timer = 0;
  receive.mask = kReceiveMask | IBV_QP_ALT_PATH | 0xe00000;
  ReliabilityOptions reliability;
  reliability.reads_served = 3;
  reliability.reads_outstanding = 2;
  ASSERT_TRUE(OwnReadyToReceive(RocePort(), 1024, reliability, &receive).ok());
  EXPECT_EQ(receive.mask, kReceiveMask);
  EXPECT_EQ(receive.attributes.path_mtu, IBV_MTU_1024);
  EXPECT_EQ(receive.attributes.min_rnr_timer, 12);
  EXPECT_EQ(receive.attributes.max_dest_rd_atomic, 3);
  EXPECT_EQ(receive.attributes.dest_qp_num, 77u);
  EXPECT_EQ(receive.attributes.rq_psn, 78u);
  EXPECT_EQ(receive.attributes.ah_attr.grh.sgid_index, 8);

  Step send;
  send.attributes.sq_psn = 79;
  send.attributes.retry_cnt = 7;
  send.attributes.rnr_retry = 7;
  send.attributes.timeout = 19;
  send.mask = kSendMask | IBV_QP_PATH_MIG_STATE;
  ASSERT_TRUE(OwnReadyToSend(reliability, &send).ok());
  EXPECT_EQ(send.mask, kSendMask);
  EXPECT_EQ(send.attributes.sq_psn, 79u);
  EXPECT_EQ(send.attributes.retry_cnt, 6);
  EXPECT_EQ(send.attributes.rnr_retry, 6);
  EXPECT_EQ(send.attributes.timeout, 14);
  EXPECT_EQ(send.attributes.max_rd_atomic, 2);
  EXPECT_TRUE(absl::IsInvalidArgument(OwnReadyToReceive(RocePort(), 3000, reliability, &receive)));
  reliability.retry_count = 7;
  EXPECT_TRUE(absl::IsInvalidArgument(OwnReadyToSend(reliability, &send)));
}

}  // namespace
}  // namespace tokamak::verbs::ibv
