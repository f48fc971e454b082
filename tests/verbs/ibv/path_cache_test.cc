#include "lib/verbs/ibv/cm/path_cache.h"

#include <arpa/inet.h>

#include <string>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"

namespace tokamak::verbs::ibv {
namespace {

uint64_t now = 0;  // nanoseconds
uint64_t Now() { return now; }

ibv_path_data PathTo(uint16_t lid) {
  ibv_path_data path{};
  path.path.dlid = htons(lid);
  return path;
}

class PathCacheTest : public testing::Test {
 protected:
  // The LID that is known, or 0.
  int Lid(const Address& peer) {
    const auto path = cache_.Find(peer);
    return path.has_value() ? ntohs(path->path.dlid) : 0;
  }

  PathCache cache_{&Now};
  const Address one_ = *Address::Parse("10.0.0.1:7000");
  const Address other_ = *Address::Parse("10.0.0.2:7000");
};

TEST_F(PathCacheTest, APathServesAllPortsOfAHost) {
  EXPECT_EQ(Lid(one_), 0);
  cache_.Keep(one_, PathTo(5));
  EXPECT_EQ(Lid(*Address::Parse("10.0.0.1:7001")), 5);
  EXPECT_EQ(Lid(other_), 0);
  cache_.Keep(one_, PathTo(6));
  EXPECT_EQ(Lid(one_), 6);
}

TEST_F(PathCacheTest, AFailureForgetsItsPathAndAChangeAllPaths) {
  cache_.Keep(one_, PathTo(5));
  cache_.Keep(other_, PathTo(6));
  cache_.Forget(one_);
  EXPECT_EQ(Lid(one_), 0);
  EXPECT_EQ(Lid(other_), 6);
  cache_.Clear();
  EXPECT_EQ(Lid(other_), 0);
}

TEST_F(PathCacheTest, APathIsQueriedAgainAfterItsLifetime) {
  cache_.Keep(one_, PathTo(5));
  now += static_cast<uint64_t>(PathCache::kLifetime.nanoseconds());
  EXPECT_EQ(Lid(one_), 5);
  ++now;
  EXPECT_EQ(Lid(one_), 0);
}

TEST_F(PathCacheTest, TheOldestPathGoesBeyondTheBound) {
  const auto peer = [](size_t i) { return *Address::Parse(absl::StrCat("10.1.", i / 256, ".", i % 256, ":1")); };
  for (size_t i = 0; i <= PathCache::kMaxPaths; ++i) {
    ++now;
    cache_.Keep(peer(i), PathTo(9));
  }
  EXPECT_EQ(Lid(peer(0)), 0);
  EXPECT_EQ(Lid(peer(1)), 9);
  EXPECT_EQ(Lid(peer(PathCache::kMaxPaths)), 9);
}

TEST(PathDataTest, PathDataIsThePathRecordOfTheSpecification) {
  ibv_sa_path_rec path{};
  path.dgid.raw[15] = 2;
  path.sgid.raw[15] = 1;
  path.dlid = htons(0x1234);
  path.slid = htons(0x4321);
  path.flow_label = htonl(0xabcde);
  path.hop_limit = 63;
  path.traffic_class = 104;
  path.pkey = htons(0x8001);
  path.sl = 5;
  path.mtu = IBV_MTU_2048;
  path.rate = IBV_RATE_100_GBPS;
  path.packet_life_time = 18;
  const ibv_path_data data = ToPathData(path);
  EXPECT_EQ(data.flags,
            IBV_PATH_FLAG_GMP | IBV_PATH_FLAG_PRIMARY | IBV_PATH_FLAG_OUTBOUND | IBV_PATH_FLAG_INBOUND_REVERSE);
  EXPECT_EQ(data.path.dgid.raw[15], 2);
  EXPECT_EQ(data.path.sgid.raw[15], 1);
  EXPECT_EQ(ntohs(data.path.dlid), 0x1234);
  EXPECT_EQ(ntohs(data.path.slid), 0x4321);
  EXPECT_EQ(ntohl(data.path.flowlabel_hoplimit), 0xabcde3fu);
  EXPECT_EQ(data.path.tclass, 104);
  EXPECT_EQ(data.path.reversible_numpath, 0x81);
  EXPECT_EQ(ntohs(data.path.pkey), 0x8001);
  EXPECT_EQ(ntohs(data.path.qosclass_sl), 5);
  EXPECT_EQ(data.path.mtu, 0x80 | IBV_MTU_2048);
  EXPECT_EQ(data.path.rate, 0x80 | IBV_RATE_100_GBPS);
  EXPECT_EQ(data.path.packetlifetime, 0x80 | 18);
}

TEST(ChangesPathsTest, EventsOfTheSubnetManagerAndOfThePortChangePaths) {
  ibv_async_event event{};
  event.element.port_num = 1;
  for (const auto type : {IBV_EVENT_SM_CHANGE, IBV_EVENT_CLIENT_REREGISTER, IBV_EVENT_LID_CHANGE, IBV_EVENT_PKEY_CHANGE,
                          IBV_EVENT_GID_CHANGE, IBV_EVENT_PORT_ACTIVE}) {
    event.event_type = type;
    EXPECT_TRUE(ChangesPaths(event, 1)) << type;
    EXPECT_FALSE(ChangesPaths(event, 2)) << type;
  }
  event.event_type = IBV_EVENT_PORT_ERR;
  EXPECT_FALSE(ChangesPaths(event, 1));
}

}  // namespace
}  // namespace tokamak::verbs::ibv
