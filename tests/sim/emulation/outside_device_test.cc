// Taps and packet sockets in a network of the test's own.
#include "sim/emulation/outside_device.h"

#include <arpa/inet.h>
#include <net/if.h>
#include <netinet/udp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "lib/base/check.h"
#include "lib/os/file_descriptor.h"
#include "tests/os/own_network.h"
#include "tests/sim/emulation/frame_bytes.h"

namespace tokamak::sim {
namespace {

using Result = OutsideDevice::Result;

bool Shell(const std::string& command) { return std::system(("PATH=$PATH:/usr/sbin:/sbin; " + command).c_str()) == 0; }

absl::StatusOr<std::unique_ptr<OutsideDevice>> Open(const std::string& interface) {
  AttachPoint point;
  point.interface = interface;
  return OutsideDevice::Open(point);
}

class OutsideDeviceTest : public testing::Test {
 protected:
  // Once for the process, which stays in it.
  static void SetUpTestSuite() {
    const absl::Status network = tests::EnterOwnNetwork();
    if (!network.ok()) {
      missing_ = network.ToString();
    } else if (access("/dev/net/tun", R_OK | W_OK) != 0) {
      missing_ = "/dev/net/tun";
    } else if (!Shell("ip link add ours type veth peer name theirs")) {
      missing_ = "veth";
    }
  }
  void SetUp() override {
    if (!missing_.empty()) GTEST_SKIP() << "skipped: this kernel or user lacks " << missing_;
  }

  // The next frame of this kind that the kernel sends; it also sends some of its own accord.
  static std::vector<uint8_t> Await(OutsideDevice& device, FrameKind kind, const Result wanted = Result::kDone) {
    for (int i = 0; i < 100; ++i) {
      std::vector<uint8_t> frame;
      const Result result = device.Read(&frame);
      if (result == Result::kNothing) {
        pollfd readable = {device.descriptor(), POLLIN, 0};
        poll(&readable, 1, 1000);
      } else if (result != Result::kDone || ReadFrameHead(frame).kind == kind) {
        EXPECT_EQ(result, wanted);
        return frame;
      }
    }
    ADD_FAILURE() << "no such frame came";
    return {};
  }

  // A datagram to a host behind `interface` that does not exist, but whose hardware address is
  // known. With `segment` the kernel is to cut it up.
  static void SendDatagram(const std::string& interface, const std::string& net, size_t size, int segment = 0) {
    ASSERT_TRUE(Shell(absl::StrCat("ip neighbour replace ", net, ".2 lladdr 02:00:00:00:00:02 dev ", interface)));
    const os::FileDescriptor fd(socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
    sockaddr_in to = {};
    to.sin_family = AF_INET;
    to.sin_port = htons(4791);
    PCHECK(inet_pton(AF_INET, absl::StrCat(net, ".2").c_str(), &to.sin_addr) == 1);
    if (segment != 0) PCHECK(setsockopt(fd.get(), SOL_UDP, UDP_SEGMENT, &segment, sizeof(segment)) == 0);
    const std::vector<uint8_t> bytes(size, 0x5a);
    ASSERT_EQ(sendto(fd.get(), bytes.data(), size, 0, reinterpret_cast<const sockaddr*>(&to), sizeof(to)),
              static_cast<ssize_t>(size));
  }

  // As a receiver does: all of UDP with its pseudo header sums up to zero.
  static uint16_t UdpSum(const std::vector<uint8_t>& frame) {
    const uint8_t* const ip = &frame[kEthernetHeader];
    const uint16_t length = static_cast<uint16_t>(base::LoadBig16(ip + 2) - 20);
    std::vector<uint8_t> bytes(ip + 12, ip + 20);
    bytes.insert(bytes.end(), {0, kProtocolUdp, static_cast<uint8_t>(length >> 8), static_cast<uint8_t>(length)});
    bytes.insert(bytes.end(), ip + 20, ip + 20 + length);
    return InternetChecksum(bytes);
  }

  static inline std::string missing_;
};

TEST_F(OutsideDeviceTest, ATapIsMadeWithTheLargestMtuAndIsUp) {
  const auto device = Open("fresh");
  ASSERT_TRUE(device.ok()) << device.status();
  EXPECT_EQ((*device)->name(), "tap fresh");
  EXPECT_TRUE(Shell("ip link show dev fresh | grep -q 'mtu 4188'"));
  EXPECT_TRUE(Shell("ip link show dev fresh up | grep -q fresh"));
}

TEST_F(OutsideDeviceTest, AHostBehindATapAnswersArp) {
  const auto device = Open("asked");
  ASSERT_TRUE(device.ok()) << device.status();
  ASSERT_TRUE(Shell("ip address add 10.0.0.2/24 dev asked"));
  auto request = ArpFrame();
  request[6] = request[kEthernetHeader + 8] = 2;  // 10.0.0.1 has the address 02:00:00:00:00:00
  ASSERT_EQ((*device)->Write(request), Result::kDone);
  std::vector<uint8_t> answer;
  do {
    answer = Await(**device, FrameKind::kArp);
  } while (!answer.empty() && answer[kEthernetHeader + 7] != 2);
  ASSERT_FALSE(answer.empty());
  EXPECT_EQ(ReadFrameHead(answer).frame.destination.ToString(), "10.0.0.1");
}

TEST_F(OutsideDeviceTest, FramesOfAHostBehindATapHaveTheirCheckSums) {
  const auto device = Open("sends");
  ASSERT_TRUE(device.ok()) << device.status();
  ASSERT_TRUE(Shell("ip address add 10.1.0.1/24 dev sends"));
  SendDatagram("sends", "10.1.0", 4001);
  const auto frame = Await(**device, FrameKind::kRoce);
  ASSERT_EQ(frame.size(), kEthernetHeader + 28 + 4001u);
  EXPECT_EQ(UdpSum(frame), 0);
}

TEST_F(OutsideDeviceTest, CheckSumsThatAVethsHostLeavesOutAreCompleted) {
  ASSERT_TRUE(Shell("ip link set ours mtu 4188; ip link set theirs mtu 4188 up; ip link set ours up"));
  const auto device = Open("ours");
  ASSERT_TRUE(device.ok()) << device.status();
  EXPECT_EQ((*device)->name(), "interface ours");
  ASSERT_TRUE(Shell("ip address add 10.2.0.1/24 dev theirs"));
  SendDatagram("theirs", "10.2.0", 4001);
  const auto frame = Await(**device, FrameKind::kRoce);
  ASSERT_EQ(frame.size(), kEthernetHeader + 28 + 4001u);
  EXPECT_EQ(UdpSum(frame), 0);
  // Frames written here are not read here.
  ASSERT_EQ((*device)->Write(frame), Result::kDone);
  SendDatagram("theirs", "10.2.0", 100);
  EXPECT_EQ(Await(**device, FrameKind::kRoce).size(), kEthernetHeader + 28 + 100u);
}

TEST_F(OutsideDeviceTest, UnsegmentedFramesOfAVethAreReportedAndTheRemedyHelps) {
  ASSERT_TRUE(Shell("ip link add cut mtu 4188 type veth peer name cut-peer mtu 4188"));
  ASSERT_TRUE(Shell("ip link set cut-peer up && ip address add 10.3.0.1/24 dev cut-peer"));
  const auto device = Open("cut");
  ASSERT_TRUE(device.ok()) << device.status();
  SendDatagram("cut-peer", "10.3.0", 8000, 1000);
  Await(**device, FrameKind::kRoce, Result::kUncut);
  ASSERT_TRUE(Shell("ip link set dev cut-peer gso_max_segs 1"));
  SendDatagram("cut-peer", "10.3.0", 8000, 1000);
  for (int i = 0; i < 8; ++i) {
    const auto frame = Await(**device, FrameKind::kRoce);
    ASSERT_EQ(frame.size(), kEthernetHeader + 28 + 1000u) << i;
    EXPECT_EQ(UdpSum(frame), 0) << i;
  }
}

TEST_F(OutsideDeviceTest, AnMtuThatTheFabricDoesNotCarryIsRefusedWithARemedy) {
  ASSERT_TRUE(Shell("ip link add long mtu 9000 type veth peer name long-peer"));
  const auto device = Open("long");
  ASSERT_FALSE(device.ok());
  EXPECT_NE(device.status().message().find("ip link set dev long mtu 4188"), std::string::npos) << device.status();
}

TEST_F(OutsideDeviceTest, ARemovedTapIsReported) {
  const auto device = Open("away");
  ASSERT_TRUE(device.ok()) << device.status();
  ASSERT_TRUE(Shell("ip link delete away"));
  std::vector<uint8_t> frame;
  EXPECT_EQ((*device)->Read(&frame), Result::kGone);
}

TEST_F(OutsideDeviceTest, ANetworkIsVisitedAndLeft) {
  AttachPoint point;
  point.interface = "visitor";
  point.network = absl::StrCat("/proc/", getpid(), "/ns/net");
  ASSERT_TRUE(OutsideDevice::Open(point).ok());
  point.network = "/no/such/network";
  EXPECT_TRUE(absl::IsNotFound(OutsideDevice::Open(point).status()));
  EXPECT_NE(if_nametoindex("lo"), 0u);
}

}  // namespace
}  // namespace tokamak::sim
