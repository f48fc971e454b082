#include "lib/node/calls/call_router.h"

#include <string>
#include <vector>

#include "gtest/gtest.h"

namespace tokamak::node {
namespace {

std::vector<uint8_t> Bytes(absl::Span<const uint8_t> span) { return {span.begin(), span.end()}; }

class CallRouterTest : public testing::Test {
 protected:
  // Returns the answers of the services, with an x for each time that they answer.
  std::string Ask(const std::vector<uint8_t>& request) {
    std::string answer;
    const base::Pending work = router_.Handle(
        request, [&](absl::Span<const uint8_t> reply) { answer += "x" + std::string(reply.begin(), reply.end()); });
    return answer;
  }
  void Echo(Service service, const std::string& name) {
    router_.Register(service, [name](absl::Span<const uint8_t> request, const CallRouter::Reply& reply) {
      const std::string text = name + std::string(request.begin(), request.end());
      reply({reinterpret_cast<const uint8_t*>(text.data()), text.size()});
      return nullptr;
    });
  }

  CallRouter router_;
};

TEST_F(CallRouterTest, TheFirstByteChoosesTheService) {
  Echo(Service::kDirectory, "directory:");
  Echo(Service::kObjects, "objects:");
  EXPECT_EQ(Ask({1, 'a', 'b'}), "xdirectory:ab");
  EXPECT_EQ(Ask({2}), "xobjects:");
}

TEST_F(CallRouterTest, WhatNobodyServesGetsAnEmptyReply) {
  Echo(Service::kObjects, "objects:");
  EXPECT_EQ(Ask({}), "x");
  EXPECT_EQ(Ask({0, 1, 2}), "x");
  EXPECT_EQ(Ask({1, 2, 3}), "x");
  EXPECT_EQ(Ask({3}), "x");
  EXPECT_EQ(Ask({255, 255}), "x");
}

class NotingCaller final : public transport::Caller {
 public:
  base::Pending Call(const verbs::Address& peer, absl::Span<const uint8_t> request, base::Duration,
                     CallCallback) override {
    peers.push_back(peer);
    requests.push_back(Bytes(request));
    return std::make_unique<Dropped>(*this);
  }
  uint32_t max_call_size() const override { return size; }

  struct Dropped final : base::Handle {
    explicit Dropped(NotingCaller& c) : caller(c) {}
    ~Dropped() override { ++caller.dropped; }
    NotingCaller& caller;
  };

  uint32_t size = 100;
  int dropped = 0;
  std::vector<verbs::Address> peers;
  std::vector<std::vector<uint8_t>> requests;
};

TEST(ServiceCallerTest, TheServiceIsNamedBeforeTheRequest) {
  NotingCaller below;
  ServiceCaller caller(below, Service::kObjects);
  const auto peer = *verbs::Address::Parse("10.0.0.2:7000");
  base::Pending call = caller.Call(peer, std::vector<uint8_t>{7, 8}, base::Seconds(1), [](const auto&) {});
  EXPECT_EQ(below.dropped, 0);
  call.reset();
  EXPECT_EQ(below.dropped, 1) << "it is cancelled below";
  EXPECT_EQ(below.peers[0], peer);
  EXPECT_EQ(below.requests[0], (std::vector<uint8_t>{2, 7, 8}));
}

TEST(ServiceCallerTest, ARequestLeavesRoomForTheServicesName) {
  NotingCaller below;
  EXPECT_EQ(ServiceCaller(below, Service::kObjects).max_call_size(), 99u);
  below.size = 0;
  EXPECT_EQ(ServiceCaller(below, Service::kObjects).max_call_size(), 0u);
}

}  // namespace
}  // namespace tokamak::node
