// Addresses as text.
#include "lib/verbs/types.h"

#include "gtest/gtest.h"

namespace tokamak::verbs {
namespace {

std::string RoundTrip(absl::string_view text) {
  const absl::StatusOr<Address> address = Address::Parse(text);
  return address.ok() ? address->ToString() : "refused";
}

TEST(AddressTest, WhatIsParsedIsWrittenTheSame) {
  for (const char* text : {"10.0.0.1", "10.0.0.1:7000", "0.0.0.0", "255.255.255.255:65535", "fd00::1", "[fd00::1]:7000",
                           "::", "::1", "[::]:1", "1::", "1:2:3:4:5:6:7:8", "fe80::abcd:0:0:1", "10.0.0.1:7000@4792",
                           "10.0.0.1@4792", "[fd00::1]:7000@4792", "fd00::1@4792"}) {
    EXPECT_EQ(RoundTrip(text), text);
  }
}

TEST(AddressTest, Ipv6IsWrittenInItsShortestForm) {
  EXPECT_EQ(RoundTrip("FD00:0:0:0:0:0:0:1"), "fd00::1");
  EXPECT_EQ(RoundTrip("1:0:0:2:0:0:0:3"), "1:0:0:2::3");
  EXPECT_EQ(RoundTrip("1:0:0:2:3:0:0:4"), "1::2:3:0:0:4");
  EXPECT_EQ(RoundTrip("1:0:2:3:4:5:6:7"), "1:0:2:3:4:5:6:7");
  EXPECT_EQ(RoundTrip("[0:0::1]"), "::1");
}

TEST(AddressTest, Ipv4IsKeptMapped) {
  const absl::StatusOr<Address> address = Address::Parse("1.2.3.4:5");
  ASSERT_TRUE(address.ok());
  EXPECT_TRUE(address->is_ipv4());
  EXPECT_EQ(address->port, 5);
  EXPECT_EQ(address->ip, (std::array<uint8_t, 16>{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 1, 2, 3, 4}));
  EXPECT_EQ(*Address::Parse("[::ffff:1.2.3.4]:5"), *address);
  EXPECT_EQ(*Address::Parse("::ffff:102:304"), *Address::Parse("1.2.3.4"));
  EXPECT_FALSE(Address::Parse("::1.2.3.4")->is_ipv4());
}

TEST(AddressTest, TheUdpPortTellsServicesApart) {
  EXPECT_EQ(Address::Parse("1.2.3.4:5@6")->port, 5);
  EXPECT_EQ(Address::Parse("1.2.3.4:5@6")->udp_port, 6);
  EXPECT_NE(*Address::Parse("1.2.3.4:5@6"), *Address::Parse("1.2.3.4:5@7"));
  EXPECT_LT(*Address::Parse("1.2.3.4:5"), *Address::Parse("1.2.3.4:5@7"));
}

TEST(AddressTest, SomeLeadNowhereByThemselves) {
  for (const char* text : {"0.0.0.0", "0.0.0.0:7000", "::", "[::]:7000"}) {
    EXPECT_TRUE(Address::Parse(text)->is_unspecified()) << text;
  }
  for (const char* text : {"0.0.0.1", "1.0.0.0", "::1", "127.0.0.1"}) {
    EXPECT_FALSE(Address::Parse(text)->is_unspecified()) << text;
  }
  for (const char* text : {"127.0.0.1", "127.200.0.9", "::1"}) EXPECT_TRUE(Address::Parse(text)->is_loopback()) << text;
  for (const char* text : {"0.0.0.0", "128.0.0.1", "10.0.0.1", "::", "::2", "1::1"}) {
    EXPECT_FALSE(Address::Parse(text)->is_loopback()) << text;
  }
  for (const char* text : {"fe80::1", "febf::1"}) EXPECT_TRUE(Address::Parse(text)->is_link_local()) << text;
  for (const char* text : {"fec0::1", "fd00::1", "169.254.0.1"}) {
    EXPECT_FALSE(Address::Parse(text)->is_link_local()) << text;
  }
}

TEST(AddressTest, WhatIsNoAddressIsRefused) {
  for (const char* text : {"",
                           ":",
                           "1.2.3",
                           "1.2.3.4.5",
                           "1.2.3.256",
                           "01.2.3.4",
                           "1.2.3.-4",
                           "1.2.3.4:",
                           "1.2.3.4:65536",
                           "1.2.3.4:7x",
                           "1.2.3.4:007",
                           "host",
                           "host:7",
                           "[",
                           "[]",
                           "[::1",
                           "[::1]7",
                           "[::1]:",
                           "[1.2.3.4]",
                           ":::",
                           "1::2::3",
                           "1:2:3",
                           "1:2:3:4:5:6:7:8:9",
                           "1:2:3:4:5:6:7::8",
                           "12345::",
                           "g::",
                           "+1::",
                           "0x1::",
                           "1.2.3.4::",
                           "::1.2.3.4:5",
                           " ::1",
                           "::1 ",
                           "1.2.3.4 ",
                           "1.2.3.4@",
                           "1.2.3.4:7@65536",
                           "1.2.3.4@7@8",
                           "@7"}) {
    EXPECT_EQ(RoundTrip(text), "refused") << "\"" << text << "\"";
  }
}

}  // namespace
}  // namespace tokamak::verbs
