// Refusals of a UDP socket for RoCEv2, and their reasons.
#include "lib/verbs/soft/udp/udp_socket.h"

#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace tokamak::verbs::soft {
namespace {

using testing::HasSubstr;

absl::StatusOr<UdpSocket> Open(const std::string& address) {
  return OpenUdpSocket(Address::Parse(address).value(), {});
}

TEST(UdpSocketTest, BindsRocesPortUnlessAnotherIsGiven) {
  EXPECT_EQ(Open("127.0.0.1")->local, Address::Parse("127.0.0.1:4791").value());
  EXPECT_EQ(Open("127.0.0.1:4800")->local, Address::Parse("127.0.0.1:4800").value());
}

TEST(UdpSocketTest, ATakenPortIsReportedWithItsLikelyOwner) {
  const absl::StatusOr<UdpSocket> first = Open("127.0.0.1");
  ASSERT_TRUE(first.ok()) << first.status();
  const absl::Status status = Open("127.0.0.1").status();
  EXPECT_EQ(status.code(), absl::StatusCode::kAlreadyExists);
  EXPECT_THAT(std::string(status.message()), HasSubstr("UDP port 4791 of 127.0.0.1 is taken"));
  EXPECT_THAT(std::string(status.message()), HasSubstr("Soft-RoCE"));
}

TEST(UdpSocketTest, AnAddressOfAnotherMachineIsRefusedWithTheAddressesOfThisOne) {
  for (const char* address : {"203.0.113.1", "[2001:db8::1]"}) {
    const absl::Status status = Open(address).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kNotFound) << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr("it has 127.0.0.1"));
  }
}

TEST(UdpSocketTest, AddressesThatNoPacketCanHaveAreRefused) {
  for (const char* address : {"0.0.0.0", "[::]", "127.0.0.1:49152"}) {
    EXPECT_EQ(Open(address).status().code(), absl::StatusCode::kInvalidArgument) << address;
  }
}

TEST(UdpSocketTest, TheLargestPathMtuFitsTheLink) {
  EXPECT_EQ(Open("127.0.0.1")->link_mtu, 65536u);
  EXPECT_EQ(PathMtuFor(65536, true), 4096u);
  EXPECT_EQ(PathMtuFor(9000, false), 4096u);
  EXPECT_EQ(PathMtuFor(4200, true), 4096u);
  EXPECT_EQ(PathMtuFor(4096, true), 2048u);
  EXPECT_EQ(PathMtuFor(1500, true), 1024u);
  EXPECT_EQ(PathMtuFor(1500, false), 1024u);
  EXPECT_EQ(PathMtuFor(576, true), 512u);
  EXPECT_EQ(PathMtuFor(575, true), 256u);
  EXPECT_EQ(PathMtuFor(300, true), 0u);
}

TEST(UdpSocketTest, AddressesSurviveTheKernelsForm) {
  for (const char* text : {"10.1.2.3:4791", "[fd00::1:2]:4800"}) {
    const Address address = Address::Parse(text).value();
    sockaddr_storage name;
    ToSocketAddress(address, 0, &name);
    EXPECT_EQ(FromSocketAddress(name), address);
  }
}

}  // namespace
}  // namespace tokamak::verbs::soft
