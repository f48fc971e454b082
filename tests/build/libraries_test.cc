// Every library that the build offers compiles with our flags, links and runs, alone and beside the
// others.
#include <gperftools/profiler.h>
#include <hiredis/hiredis.h>
#include <infiniband/verbs.h>
#include <isa-l/crc.h>
#include <rdma/rdma_cma.h>
#include <xxhash.h>

#include <CLI/CLI.hpp>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/types/span.h"
#include "glog/logging.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace {

absl::StatusOr<int> Half(int value) {
  if (value % 2 != 0) return absl::InvalidArgumentError(absl::StrCat(value, " is odd"));
  return value / 2;
}

TEST(LibrariesTest, StatusOrCarriesAValueOrAnError) {
  EXPECT_EQ(Half(4).value(), 2);
  EXPECT_EQ(Half(3).status().message(), "3 is odd");
}

TEST(LibrariesTest, AbseilFormatsAndHashes) {
  absl::flat_hash_map<std::string, int> ports = {{"roce", 4791}};
  EXPECT_EQ(absl::StrFormat("%d", ports["roce"]), "4791");
  EXPECT_THAT(absl::MakeConstSpan({1, 2, 3}), testing::ElementsAre(1, 2, 3));
}

TEST(LibrariesTest, GlogLogsAndChecks) {
  LOG(INFO) << "linked";
  CHECK(true);
  const auto die = [] { CHECK(false) << "on purpose"; };  // glog's CHECK holds commas that a macro argument cannot.
  EXPECT_DEATH(die(), "on purpose");
}

TEST(LibrariesTest, JsonParses) { EXPECT_EQ(nlohmann::json::parse(R"({"mtu": 4096})")["mtu"], 4096); }

TEST(LibrariesTest, Cli11ParsesAFlag) {
  CLI::App app;
  bool verbose = false;
  app.add_flag("--verbose", verbose);
  app.parse("--verbose");
  EXPECT_TRUE(verbose);
}

TEST(LibrariesTest, IsalComputesTheEthernetCrc) {
  const std::string check = "123456789";
  EXPECT_EQ(crc32_gzip_refl(0, reinterpret_cast<const uint8_t*>(check.data()), check.size()), 0xCBF43926u);
}

TEST(LibrariesTest, XxhashHashesNothing) { EXPECT_EQ(XXH64(nullptr, 0, 0), 0xef46db3751d8e999u); }

TEST(LibrariesTest, HiredisReportsARefusedConnection) {
  redisContext* context = redisConnectUnix("/nonexistent/redis.sock");
  ASSERT_NE(context, nullptr);
  EXPECT_NE(context->err, 0);
  redisFree(context);
}

TEST(LibrariesTest, VerbsAndConnectionManagerLink) {
  EXPECT_STREQ(ibv_node_type_str(IBV_NODE_CA), "InfiniBand channel adapter");
  EXPECT_STREQ(rdma_event_str(RDMA_CM_EVENT_ESTABLISHED), "RDMA_CM_EVENT_ESTABLISHED");
}

TEST(LibrariesTest, ProfilerIsThereAndOff) {
  ProfilerState state;
  ProfilerGetCurrentState(&state);
  EXPECT_FALSE(state.enabled);
}

}  // namespace
