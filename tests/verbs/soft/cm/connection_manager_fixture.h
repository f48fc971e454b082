// A connection manager on each of several fake NICs, on one network in virtual time: what the tests
// of connections stand on.
#pragma once

#include <deque>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "lib/verbs/soft/cm/connection_manager.h"
#include "tests/verbs/soft/cm/fake_nic.h"

namespace tokamak::verbs::soft {

using base::Duration;
using base::Microseconds;
using base::Milliseconds;
using base::Seconds;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using Kind = ConnectionEvent::Kind;

constexpr uint16_t kPort = 7000;

// One side of a connection and the events that it gets.
struct End {
  explicit End(FakeNic& on) : nic(on), queue_pair(on.MakeQueuePair()) {}

  ConnectionHandler Handler() {
    return [this](const ConnectionEvent& event) {
      EXPECT_FALSE(in_call);
      events.push_back(event.kind);
      status = event.status;
      text.assign(event.private_data.begin(), event.private_data.end());
      text.resize(std::min(text.size(), text.find_last_not_of('\0') + 1));
      path_mtu = event.path_mtu;
      if (on_event) on_event();
    };
  }

  absl::Status Connect(const Address& address, const ConnectOptions& options = {}) {
    in_call = true;
    auto made = nic.manager->Connect(*queue_pair, address, options, Handler());
    in_call = false;
    if (made.ok()) connection = *std::move(made);
    return made.status();
  }
  absl::Status Accept(ConnectionRequest& request, const ConnectOptions& options = {}) {
    in_call = true;
    auto made = request.Accept(*queue_pair, options, Handler());
    in_call = false;
    if (made.ok()) connection = *std::move(made);
    return made.status();
  }

  FakeNic& nic;
  std::unique_ptr<FakeQueuePair> queue_pair;
  std::unique_ptr<Connection> connection;
  std::vector<Kind> events;
  absl::Status status;
  std::string text;
  uint32_t path_mtu = 0;
  std::function<void()> on_event;
  bool in_call = false;
};

inline absl::Span<const uint8_t> Bytes(absl::string_view text) {
  return {reinterpret_cast<const uint8_t*>(text.data()), text.size()};
}

class ConnectionManagerTest : public ::testing::Test {
 protected:
  ConnectionManagerTest() {
    a_ = std::make_shared<FakeNic>(scheduler_, wire_, 1);
    b_ = std::make_shared<FakeNic>(scheduler_, wire_, 2);
  }

  // Listens on `nic`; requests wait in requests_ until a test answers them.
  std::unique_ptr<Listener> Listen(FakeNic& nic) {
    auto listener = nic.manager->Listen(nic.owner, At(nic), [this](std::unique_ptr<ConnectionRequest> request) {
      requests_.push_back(std::move(request));
    });
    EXPECT_TRUE(listener.ok()) << listener.status();
    return *std::move(listener);
  }

  static Address At(const FakeNic& nic, uint16_t port = kPort) {
    Address address = nic.address();
    address.port = port;
    return address;
  }

  void Run(Duration duration) { scheduler_.RunFor(duration); }

  // Connects `active` to `passive`, and lets both know.
  void Establish(End& active, End& passive) {
    auto listener = Listen(passive.nic);
    ASSERT_TRUE(active.Connect(listener->address()).ok());
    Run(Milliseconds(1));
    ASSERT_EQ(requests_.size(), 1u);
    ASSERT_TRUE(passive.Accept(*requests_.front()).ok());
    requests_.clear();
    Run(Milliseconds(1));
    ASSERT_THAT(active.events, ElementsAre(Kind::kEstablished));
    ASSERT_THAT(passive.events, ElementsAre(Kind::kEstablished));
    wire_.sent.clear();
  }

  // A request as a stranger at host 9, or another, would send it.
  static Mad StrangersReq(uint32_t id, uint32_t queue_pair, FakeNic& to, uint16_t port = kPort, uint8_t host = 9) {
    ConnectionOffer offer;
    offer.queue_pair = queue_pair;
    return {id, MakeReq(offer, FakeAddress(host, 40000), At(to, port), 99, id)};
  }

  RejectReason ReasonOfLast() { return std::get<RejMad>(wire_.sent.back().body).reason; }

  sim::Scheduler scheduler_;
  FakeWire wire_{scheduler_};
  std::shared_ptr<FakeNic> a_;
  std::shared_ptr<FakeNic> b_;
  std::deque<std::unique_ptr<ConnectionRequest>> requests_;
};

}  // namespace tokamak::verbs::soft
