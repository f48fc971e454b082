#include "lib/verbs/open/open_device.h"

#include <memory>
#include <string>
#include <utility>

#include "gtest/gtest.h"
#include "lib/base/time.h"
#include "lib/os/epoll_loop.h"
#include "lib/verbs/verbs.h"

namespace tokamak::verbs {
namespace {

OpenOptions On(os::EpollLoop& loop) {
  OpenOptions options;
  options.loop = &loop;
  return options;
}

// One side of a connection, on a loop of the test's.
struct Side {
  Side(os::EpollLoop& loop, Device& device) {
    completions = *device.CreateCompletionQueue(loop, 8, [] {});
    domain = *device.CreateProtectionDomain();
    QueuePairOptions options;
    options.send_queue = options.receive_queue = completions.get();
    options.max_send_requests = options.max_receive_requests = 4;
    queue_pair = *domain->CreateQueuePair(options);
  }

  std::unique_ptr<CompletionQueue> completions;
  std::unique_ptr<ProtectionDomain> domain;
  std::unique_ptr<QueuePair> queue_pair;
  std::unique_ptr<Connection> connection;
};

// Connects the two, and returns whether both heard of it.
bool Connect(os::EpollLoop& loop, Device& asking, Device& answering) {
  Side asker(loop, asking), answerer(loop, answering);
  int established = 0;
  const auto count = [&](const ConnectionEvent& event) {
    if (event.kind == ConnectionEvent::Kind::kEstablished) ++established;
  };
  const auto listener =
      answering.connection_manager().Listen(loop, answering.address(), [&](std::unique_ptr<ConnectionRequest> request) {
        auto accepted = request->Accept(*answerer.queue_pair, {}, count);
        if (accepted.ok()) answerer.connection = *std::move(accepted);
      });
  if (!listener.ok()) return false;
  auto asked = asking.connection_manager().Connect(*asker.queue_pair, (*listener)->address(), ConnectOptions(), count);
  if (!asked.ok()) return false;
  asker.connection = *std::move(asked);
  return loop.RunUntil([&] { return established == 2; }, loop.Now() + base::Seconds(20));
}

TEST(OpenDeviceTest, SoftwareNicsOnTheLoopOfTheProgramConnect) {
  os::EpollLoop loop;
  const auto first = OpenDevice("soft:udp@127.0.0.1", On(loop));
  const auto second = OpenDevice("soft:udp@127.0.0.1:4792", On(loop));
  ASSERT_TRUE(first.ok()) << first.status();
  ASSERT_TRUE(second.ok()) << second.status();
  EXPECT_EQ((*second)->device().name(), "soft:udp@127.0.0.1:4792");
  EXPECT_TRUE(Connect(loop, (*first)->device(), (*second)->device()));
}

TEST(OpenDeviceTest, SoftwareNicsOnThreadsOfTheirOwnConnect) {
  os::EpollLoop loop;
  const auto first = OpenDevice("soft:udp@127.0.0.1");
  const auto second = OpenDevice("soft:udp@127.0.0.1:4792");
  ASSERT_TRUE(first.ok()) << first.status();
  ASSERT_TRUE(second.ok()) << second.status();
  EXPECT_TRUE(Connect(loop, (*first)->device(), (*second)->device()));
}

TEST(OpenDeviceTest, APortThatIsTakenIsRefused) {
  os::EpollLoop loop;
  const auto first = OpenDevice("soft:udp@127.0.0.1", On(loop));
  ASSERT_TRUE(first.ok()) << first.status();
  EXPECT_FALSE(OpenDevice("soft:udp@127.0.0.1", On(loop)).ok());
  EXPECT_FALSE(OpenDevice("soft:udp@127.0.0.1").ok());
}

TEST(OpenDeviceTest, AnRdmaDeviceThatIsNotThereIsNotReplacedByAnother) {
  const auto opened = OpenDevice("ibv:no_such_device");
  ASSERT_FALSE(opened.ok());
  EXPECT_NE(opened.status().message().find("no_such_device"), std::string::npos) << opened.status();
}

TEST(OpenDeviceTest, ANameOfNoKindIsRefusedWithWhatANameLooksLike) {
  const auto opened = OpenDevice("mlx5_0");
  EXPECT_EQ(opened.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_NE(opened.status().message().find("ibv:mlx5_0"), std::string::npos) << opened.status();
  EXPECT_FALSE(OpenDevice("soft:udp@nowhere").ok());
}

}  // namespace
}  // namespace tokamak::verbs
