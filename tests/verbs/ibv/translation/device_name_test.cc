#include "lib/verbs/ibv/translation/device_name.h"

#include "absl/status/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace tokamak::verbs::ibv {
namespace {

TEST(DeviceNameTest, ADeviceAlone) {
  const auto name = ParseDeviceName("ibv:rxe0");
  ASSERT_TRUE(name.ok()) << name.status();
  EXPECT_EQ(name->device, "rxe0");
  EXPECT_EQ(name->port, 0);
  EXPECT_FALSE(name->gid_index.has_value());
}

TEST(DeviceNameTest, APortAndAGid) {
  const auto name = ParseDeviceName("ibv:mlx5_0:2@3");
  ASSERT_TRUE(name.ok()) << name.status();
  EXPECT_EQ(name->device, "mlx5_0");
  EXPECT_EQ(name->port, 2);
  EXPECT_EQ(name->gid_index, 3u);
}

TEST(DeviceNameTest, AGidWithoutAPort) {
  const auto name = ParseDeviceName("ibv:rocep0s1.1@0");
  ASSERT_TRUE(name.ok()) << name.status();
  EXPECT_EQ(name->device, "rocep0s1.1");
  EXPECT_EQ(name->gid_index, 0u);
}

TEST(DeviceNameTest, ANameIsWrittenAsItIsRead) {
  for (const char* text : {"ibv:rxe0", "ibv:mlx5_0:1", "ibv:mlx5_0@7", "ibv:mlx5_0:255@255"}) {
    const auto name = ParseDeviceName(text);
    ASSERT_TRUE(name.ok()) << name.status();
    EXPECT_EQ(name->ToString(), text);
  }
}

TEST(DeviceNameTest, OtherTextsAreRefusedWithAnExample) {
  for (const char* text :
       {"", "rxe0", "ibv:", "ibv::1", "ibv:rxe0:", "ibv:rxe0:0", "ibv:rxe0:256", "ibv:rxe0@", "ibv:rxe0@-1",
        "ibv:rxe0@256", "ibv:rxe0:01", "ibv:rxe0:1:2", "ibv:rxe0@1@2", "ibv:../x", "ibv:rxe 0", "soft:udp@10.0.0.1"}) {
    const absl::Status status = ParseDeviceName(text).status();
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << "'" << text << "': " << status;
    EXPECT_THAT(std::string(status.message()), testing::HasSubstr("ibv:mlx5_0"));
  }
}

}  // namespace
}  // namespace tokamak::verbs::ibv
