// The C interface's view of a cluster: what C++ sees, from memory of its own.

#include "gtest/gtest.h"
#include "tests/client/fake_daemon.h"
#include "tokamak/tokamak.h"

namespace tokamak::client {
namespace {

TEST(CClusterTest, AllNodesAreSeenWithTheirStatesAndNumbers) {
  FakeDaemon daemon;
  tokamak_client* client = nullptr;
  ASSERT_EQ(tokamak_connect(daemon.path().c_str(), nullptr, &client), TOKAMAK_OK) << tokamak_error();
  tokamak_cluster* cluster = nullptr;
  ASSERT_EQ(tokamak_get_cluster(client, &cluster), TOKAMAK_OK) << tokamak_error();
  tokamak_disconnect(client);

  EXPECT_EQ(tokamak_cluster_located(cluster), 1);
  ASSERT_EQ(tokamak_cluster_count(cluster), 2u);
  const tokamak_viewed_node* const here = tokamak_cluster_at(cluster, 0);
  EXPECT_STREQ(here->info.name, "fake");
  EXPECT_EQ(here->info.is_this, 1);
  EXPECT_EQ(here->info.capacity, FakeDaemon::kCapacity);
  EXPECT_EQ(here->state, TOKAMAK_NODE_ALIVE);
  EXPECT_STREQ(here->page, "fake:9464");
  ASSERT_EQ(here->numbers_count, 1u);
  EXPECT_STREQ(here->numbers[0].name, "store_sealed_objects");

  const tokamak_viewed_node* const other = tokamak_cluster_at(cluster, 1);
  EXPECT_STREQ(other->info.name, "other");
  EXPECT_EQ(other->info.is_this, 0);
  EXPECT_EQ(other->state, TOKAMAK_NODE_SUSPECTED);
  EXPECT_EQ(other->unheard_microseconds, 7'000'000u);
  EXPECT_STREQ(other->page, "");
  EXPECT_EQ(other->numbers_count, 0u);
  EXPECT_EQ(other->numbers, nullptr);
  EXPECT_EQ(tokamak_cluster_at(cluster, 2), nullptr);
  tokamak_cluster_free(cluster);
}

}  // namespace
}  // namespace tokamak::client
