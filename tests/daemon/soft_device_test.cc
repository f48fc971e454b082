// The software NIC as tokd's flags open it: what its packets look like to any other host.
#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/time.h>

#include <cstring>
#include <memory>
#include <optional>
#include <set>

#include "lib/daemon/devices/device.h"
#include "lib/os/epoll_loop.h"
#include "lib/os/file_descriptor.h"
#include "lib/verbs/verbs.h"

namespace tokamak::daemon {
namespace {

// A host at 127.0.0.2 that answers nothing and looks at the type of service of what it gets.
class Onlooker final {
 public:
  Onlooker() : socket_(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in at{};
    at.sin_family = AF_INET;
    at.sin_port = htons(4791);
    EXPECT_EQ(inet_pton(AF_INET, "127.0.0.2", &at.sin_addr), 1);
    const int on = 1;
    const timeval patience = {20, 0};
    EXPECT_EQ(setsockopt(socket_.get(), IPPROTO_IP, IP_RECVTOS, &on, sizeof(on)), 0);
    EXPECT_EQ(setsockopt(socket_.get(), SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience)), 0);
    EXPECT_EQ(bind(socket_.get(), reinterpret_cast<const sockaddr*>(&at), sizeof(at)), 0) << std::strerror(errno);
  }

  // Type of service of the next datagram; -1: none came.
  int NextTypeOfService() {
    char bytes[4096];
    iovec piece = {bytes, sizeof(bytes)};
    alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))];
    msghdr message{};
    message.msg_iov = &piece;
    message.msg_iovlen = 1;
    message.msg_control = control;
    message.msg_controllen = sizeof(control);
    if (recvmsg(socket_.get(), &message, 0) <= 0) return -1;
    const cmsghdr* const told = CMSG_FIRSTHDR(&message);
    if (told == nullptr || told->cmsg_type != IP_TOS) return -1;
    return *CMSG_DATA(told);
  }

 private:
  const os::FileDescriptor socket_;
};

DeviceSettings WithClass(std::optional<uint8_t> traffic_class) {
  DeviceSettings settings;
  settings.fabric.traffic_class = traffic_class;
  return settings;
}

// Type of service of a SEND by a queue pair that was walked by hand to one at 127.0.0.2.
int TypeOfServiceSent(const DeviceSettings& settings) {
  Onlooker onlooker;
  os::EpollLoop loop;
  const auto opened = OpenDevice("soft:udp@127.0.0.1", settings);
  EXPECT_TRUE(opened.ok()) << opened.status();
  if (!opened.ok()) return -1;
  verbs::Device& device = (*opened)->device();
  const auto domain = *device.CreateProtectionDomain();
  const auto queue = *device.CreateCompletionQueue(loop, 16, [] {});
  verbs::QueuePairOptions options;
  options.send_queue = options.receive_queue = queue.get();
  const auto queue_pair = *domain->CreateQueuePair(options);
  verbs::QueuePairAttributes attributes;
  attributes.peer = *verbs::Address::Parse("127.0.0.2");
  attributes.peer_number = 77;
  EXPECT_TRUE(queue_pair->Modify(verbs::QueuePairState::kReadyToReceive, attributes).ok());
  EXPECT_TRUE(queue_pair->Modify(verbs::QueuePairState::kReadyToSend, attributes).ok());
  const verbs::SendRequest request;
  EXPECT_TRUE(queue_pair->PostSend(absl::MakeConstSpan(&request, 1)).ok());
  return onlooker.NextTypeOfService();
}

TEST(SoftDeviceTest, TheTrafficClassMarksItsPackets) {
  EXPECT_EQ(TypeOfServiceSent(WithClass(104)), 104);
  EXPECT_EQ(TypeOfServiceSent(WithClass(std::nullopt)), 0);
}

TEST(SoftDeviceTest, TheEcnBitsOfTheTrafficClassAreRefused) {
  const auto opened = OpenDevice("soft:udp@127.0.0.1", WithClass(105));
  EXPECT_TRUE(absl::IsInvalidArgument(opened.status())) << opened.status();
  EXPECT_NE(opened.status().message().find("give 104"), std::string::npos) << opened.status();
}

// A device that is opened without a seed gets numbers that nobody has seen.
TEST(SoftDeviceTest, NoTwoDevicesHaveTheSameNumbers) {
  std::set<uint32_t> numbers;
  for (int i = 0; i < 3; ++i) {
    os::EpollLoop loop;
    const auto opened = OpenDevice("soft:udp@127.0.0.1", DeviceSettings());
    ASSERT_TRUE(opened.ok()) << opened.status();
    const auto domain = *(*opened)->device().CreateProtectionDomain();
    const auto queue = *(*opened)->device().CreateCompletionQueue(loop, 16, [] {});
    verbs::QueuePairOptions options;
    options.send_queue = options.receive_queue = queue.get();
    numbers.insert((*domain->CreateQueuePair(options))->number());
  }
  EXPECT_EQ(numbers.size(), 3u);
}

TEST(SoftDeviceTest, AServiceLevelIsRefused) {
  DeviceSettings settings;
  settings.fabric.service_level = 0;
  const auto opened = OpenDevice("soft:udp@127.0.0.1", settings);
  EXPECT_TRUE(absl::IsInvalidArgument(opened.status())) << opened.status();
  EXPECT_NE(opened.status().message().find("--traffic-class"), std::string::npos) << opened.status();
}

}  // namespace
}  // namespace tokamak::daemon
