#include "sim/emulation/attach_point.h"

#include "gtest/gtest.h"

namespace tokamak::sim {
namespace {

TEST(AttachPointTest, ReadsInterfacesNetworksAndDescriptors) {
  const auto plain = AttachPoint::Parse("host0=eth0");
  ASSERT_TRUE(plain.ok());
  EXPECT_EQ(plain->host, "host0");
  EXPECT_EQ(plain->interface, "eth0");
  EXPECT_EQ(plain->network, "");
  EXPECT_EQ(plain->descriptor, -1);
  EXPECT_EQ(AttachPoint::Parse("a=eth0@blue")->network, "/run/netns/blue");
  EXPECT_EQ(AttachPoint::Parse("a=eth0@1234")->network, "/proc/1234/ns/net");
  EXPECT_EQ(AttachPoint::Parse("a=eth0@/proc/self/ns/net")->network, "/proc/self/ns/net");
  EXPECT_EQ(AttachPoint::Parse("a=fd:7")->descriptor, 7);
}

TEST(AttachPointTest, MistakesAreReportedWithTheRightForm) {
  for (const char* text : {"", "eth0", "=eth0", "a=", "a=@blue", "a=eth0@", "a=fd:", "a=fd:-1", "a=fd:x",
                           "a=sixteen-letters-", "a=fd:99999999999"}) {
    const auto point = AttachPoint::Parse(text);
    ASSERT_FALSE(point.ok()) << text;
    EXPECT_NE(point.status().message().find("HOST=INTERFACE"), std::string::npos) << point.status();
  }
}

}  // namespace
}  // namespace tokamak::sim
