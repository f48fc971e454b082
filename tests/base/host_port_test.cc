#include "lib/base/text/host_port.h"

#include <string>

#include "gtest/gtest.h"

namespace tokamak::base {
namespace {

TEST(HostPortTest, NamesAndAddressesAreRead) {
  for (const std::string text : {"db1.example.com:6379", "10.0.0.1:7000", "[::1]:7000", "under_score:1", "a:65535"}) {
    const auto parsed = HostPort::Parse(text);
    ASSERT_TRUE(parsed.ok()) << parsed.status();
    EXPECT_EQ(parsed->ToString(), text);
  }
  EXPECT_EQ(HostPort::Parse("db1", 7)->ToString(), "db1:7");
  EXPECT_EQ(HostPort::Parse("[::1]", 7)->host, "::1");
}

TEST(HostPortTest, MalformedTextIsRefused) {
  for (const std::string text : {"", ":1", "db1", "db1:", "db1:0", "db1:65536", "db1:x", "1.2.3:4", "1.2.3.4.5:6",
                                 "256.0.0.1:1", "[::1]", "[::1", "[]:1", "[db1]:1", "[::1]1", "::1:7", "two words:1"}) {
    EXPECT_TRUE(absl::IsInvalidArgument(HostPort::Parse(text).status())) << text;
  }
  EXPECT_FALSE(HostPort::Parse(std::string(254, 'a') + ":1").ok());
}

}  // namespace
}  // namespace tokamak::base
