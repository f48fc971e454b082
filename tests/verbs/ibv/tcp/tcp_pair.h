// Connections by hand over TCP, on loopback sockets and with queue pairs that only walk.
#pragma once

#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "lib/os/epoll_loop.h"
#include "lib/os/file_descriptor.h"
#include "lib/verbs/ibv/tcp/tcp_cm.h"
#include "lib/verbs/ibv/translation/socket_address.h"
#include "tests/verbs/ibv/fake_queue_pair.h"

namespace tokamak::verbs::ibv {

constexpr base::Duration kPatience = base::Seconds(20);

inline LocalPort PortAt(uint8_t last) {
  LocalPort port;
  port.link = LinkKind::kRoce;
  port.gid = Address::Parse("10.0.0.1")->ip;
  port.gid[15] = last;
  port.active_mtu = 1024;
  return port;
}

// One side: a manager of its own, a queue pair, and its events.
struct TcpSide {
  TcpSide(os::EpollLoop& loop, uint8_t index, FindRoute find_route = {}) : queue_pair(loop, 100u + index) {
    TcpCmOptions options;
    options.address = *Address::Parse("127.0.0.1");
    options.address.ip[15] = index;
    options.port = [this] { return port; };
    options.max_reads = 16;
    options.find_route = std::move(find_route);
    port = PortAt(index);
    address = options.address;
    manager = *TcpConnectionManager::Make(options);
  }

  ConnectionHandler Handler() {
    return [this](const ConnectionEvent& event) {
      events.push_back(event.kind);
      status = event.status;
      private_data.assign(event.private_data.begin(), event.private_data.end());
      path_mtu = event.path_mtu;
      if (on_event) on_event();
    };
  }
  bool Saw(ConnectionEvent::Kind kind) const { return std::find(events.begin(), events.end(), kind) != events.end(); }

  LocalPort port;
  Address address;
  FakeQueuePair queue_pair;
  std::unique_ptr<TcpConnectionManager> manager;
  std::unique_ptr<Connection> connection;
  std::vector<ConnectionEvent::Kind> events;
  absl::Status status;
  std::vector<uint8_t> private_data;
  uint32_t path_mtu = 0;
  std::function<void()> on_event;
};

// Two sides, of which one listens.
class TcpPair : public testing::Test {
 protected:
  TcpPair() {
    auto made = passive_.manager->Listen(loop_, passive_.address, [this](std::unique_ptr<ConnectionRequest> request) {
      requests_.push_back(std::move(request));
    });
    EXPECT_TRUE(made.ok()) << made.status();
    listener_ = *std::move(made);
  }

  bool Drive(const std::function<bool()>& done) { return loop_.RunUntil(done, loop_.Now() + kPatience); }
  void LookOn(base::Duration time = base::Milliseconds(50)) {
    loop_.RunUntil([] { return false; }, loop_.Now() + time);
  }

  absl::Status Connect(TcpSide& side, const ConnectOptions& options = {}) {
    auto made = side.manager->Connect(side.queue_pair, listener_->address(), options, side.Handler());
    if (made.ok()) side.connection = *std::move(made);
    return made.status();
  }
  std::unique_ptr<ConnectionRequest> AwaitRequest() {
    if (!Drive([this] { return !requests_.empty(); })) return nullptr;
    auto request = std::move(requests_.front());
    requests_.erase(requests_.begin());
    return request;
  }
  absl::Status Accept(ConnectionRequest& request, const ConnectOptions& options = {}) {
    auto made = request.Accept(passive_.queue_pair, options, passive_.Handler());
    if (made.ok()) passive_.connection = *std::move(made);
    return made.status();
  }
  void Establish() {
    ASSERT_TRUE(Connect(active_).ok());
    auto request = AwaitRequest();
    ASSERT_NE(request, nullptr);
    ASSERT_TRUE(Accept(*request).ok());
    ASSERT_TRUE(Drive([this] {
      return active_.Saw(ConnectionEvent::Kind::kEstablished) && passive_.Saw(ConnectionEvent::Kind::kEstablished);
    }));
  }

  // A socket of 127.0.0.`host` that speaks to the listener by itself.
  os::FileDescriptor RawPeer(uint8_t host = 1) {
    const SocketAddress to = ToSocketAddress(listener_->address());
    Address own = *Address::Parse("127.0.0.1");
    own.ip[15] = host;
    const SocketAddress from = ToSocketAddress(own);
    os::FileDescriptor socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    EXPECT_EQ(bind(socket.get(), from.get(), from.size), 0);
    EXPECT_EQ(connect(socket.get(), to.get(), to.size), 0);
    return socket;
  }
  static bool IsClosed(int socket) {
    uint8_t byte;
    const ssize_t got = recv(socket, &byte, 1, MSG_DONTWAIT);
    return got == 0 || (got < 0 && errno != EAGAIN);
  }

  os::EpollLoop loop_;
  TcpSide active_{loop_, 1}, passive_{loop_, 2};
  std::vector<std::unique_ptr<ConnectionRequest>> requests_;
  std::unique_ptr<Listener> listener_;
};

}  // namespace tokamak::verbs::ibv
