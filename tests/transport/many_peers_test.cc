// Connections cost no descriptors: counted with few and with many of them, on real loops.
#include <dirent.h>

#include <cstdint>
#include <memory>
#include <vector>

#include "gtest/gtest.h"
#include "lib/base/check.h"
#include "lib/base/trace.h"
#include "lib/daemon/devices/device.h"
#include "lib/os/epoll_loop.h"
#include "lib/transport/endpoint.h"
#include "tests/support/test_devices.h"
#include "tests/transport/world.h"

namespace tokamak::transport::testing {
namespace {

constexpr uint16_t kPort = 7000;
constexpr size_t kFew = 10, kMany = 200;

int Descriptors() {
  DIR* const folder = opendir("/proc/self/fd");
  CHECK(folder != nullptr);
  int count = 0;
  while (readdir(folder) != nullptr) ++count;
  closedir(folder);
  return count;
}

// An endpoint that answers every call with an empty reply.
class Peer {
 public:
  Peer(os::EpollLoop& loop, verbs::Device& device, uint16_t port)
      : domain_(*device.CreateProtectionDomain()),
        arena_(4096),
        source_(loop),
        registration_(RegisterOnDemand(device, *domain_)) {
    EndpointOptions options;
    options.receive_slots = 8;
    options.slot_size = 1024;
    endpoint = *Endpoint::Open(loop, device, *domain_, *registration_, source_, base::Random(port), trace_, options);
    endpoint->SetCallHandler(
        Handler([](absl::Span<const uint8_t>, Reply reply) { reply(absl::Span<const uint8_t>()); }));
    verbs::Address service = device.address();
    service.port = port;
    CHECK(endpoint->Listen(service).ok());
  }

 private:
  base::NoTrace trace_;
  const std::unique_ptr<verbs::ProtectionDomain> domain_;
  FakeArena arena_;
  FakeSource source_;
  const std::unique_ptr<Registration> registration_;

 public:
  std::unique_ptr<Endpoint> endpoint;
};

TEST(ManyPeersTest, ConnectionsTakeNoDescriptors) {
  const auto hub_device = *daemon::OpenDevice(testing_support::PlaceOfNode(1).device, {});
  const auto peers_device = *daemon::OpenDevice(testing_support::PlaceOfNode(2).device, {});
  os::EpollLoop loop;
  Peer hub(loop, hub_device->device(), kPort);
  std::vector<std::unique_ptr<Peer>> peers;
  while (peers.size() < kMany) {
    const auto port = static_cast<uint16_t>(kPort + 1 + peers.size());
    peers.push_back(std::make_unique<Peer>(loop, peers_device->device(), port));
  }

  size_t answered = 0;
  std::vector<base::Pending> calls;
  // One after the other: how many may be half open at once is the device's to say.
  const auto connect_until = [&](size_t count) {
    while (calls.size() < count) {
      calls.push_back(hub.endpoint->Call(peers[calls.size()]->endpoint->address(), {}, base::Seconds(20),
                                         [&](absl::StatusOr<absl::Span<const uint8_t>> reply) {
                                           EXPECT_TRUE(reply.ok()) << reply.status();
                                           ++answered;
                                         }));
      ASSERT_TRUE(loop.RunUntil([&] { return answered == calls.size(); }, loop.Now() + base::Seconds(30)));
    }
  };
  connect_until(kFew);
  const int with_few = Descriptors();
  connect_until(kMany);
  EXPECT_EQ(Descriptors(), with_few);
  EXPECT_EQ(hub.endpoint->counters().connections_opened, kMany);
  calls.clear();
  hub.endpoint.reset();
}

}  // namespace
}  // namespace tokamak::transport::testing
