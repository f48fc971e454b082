// Ports of the UDP fabric on real sockets of this machine's loopback (in a sandbox, its own), all
// on one loop.
#pragma once

#include <netinet/in.h>
#include <sys/socket.h>

#include <algorithm>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "lib/base/random.h"
#include "lib/os/epoll_loop.h"
#include "lib/verbs/soft/packets/datagram.h"
#include "lib/verbs/soft/udp/udp_fabric.h"

namespace tokamak::verbs::soft {

using Bytes = std::vector<uint8_t>;

inline Address Parse(const std::string& text) { return Address::Parse(text).value(); }

// The parts of a packet that tests look at after its callback is over.
struct Received {
  Packet packet;
  Bytes payload;
};

class TestNic final {
 public:
  TestNic(os::EpollLoop& loop, const std::string& address, const UdpFabricOptions& options = {})
      : fabric_(loop, options) {
    port_ = fabric_
                .Open(loop, Parse(address),
                      {[this](absl::Span<const Packet> packets) {
                         ++batches_;
                         for (const Packet& packet : packets) Take(packet);
                       },
                       [] {}})
                .value();
  }

  Port& port() { return *port_; }
  const Address& address() const { return port_->address(); }
  const UdpCounters& counters() const { return fabric_.counters(); }
  const std::vector<Received>& received() const { return received_; }
  int batches() const { return batches_; }
  void Unplug() { port_.reset(); }

 private:
  void Take(const Packet& packet) {
    received_.push_back({packet, {}});
    for (uint32_t i = 0; i < packet.slices; ++i) {
      const PayloadSlice& slice = packet.payload[i];
      received_.back().payload.insert(received_.back().payload.end(), slice.data, slice.data + slice.length);
    }
  }

  UdpFabric fabric_;
  std::vector<Received> received_;
  int batches_ = 0;
  std::unique_ptr<Port> port_;
};

// A plain socket, for what no fabric of ours would send.
class PlainSocket final {
 public:
  explicit PlainSocket(const std::string& address) : local_(Parse(address)) {
    fd_ = socket(local_.is_ipv4() ? AF_INET : AF_INET6, SOCK_DGRAM, 0);
    sockaddr_storage name;
    const socklen_t length = ToSocketAddress(local_, 0, &name);
    EXPECT_EQ(bind(fd_, reinterpret_cast<sockaddr*>(&name), length), 0);
  }
  ~PlainSocket() { close(fd_); }

  void Send(const Address& to, const Bytes& datagram) {
    sockaddr_storage name;
    const socklen_t length = ToSocketAddress(to, 0, &name);
    EXPECT_EQ(sendto(fd_, datagram.data(), datagram.size(), 0, reinterpret_cast<sockaddr*>(&name), length),
              static_cast<ssize_t>(datagram.size()));
  }
  const Address& local() const { return local_; }
  int fd() const { return fd_; }

 private:
  const Address local_;
  int fd_;
};

class UdpFabricTest : public testing::Test {
 protected:
  // A packet to `to` with this payload, in two slices.
  static Packet Make(PacketOpcode opcode, uint32_t psn, const Address& to, absl::Span<const uint8_t> payload) {
    Packet packet;
    packet.opcode = opcode;
    packet.psn = psn;
    packet.peer = to;
    const size_t cut = payload.size() / 2;
    for (absl::Span<const uint8_t> part : {payload.first(cut), payload.subspan(cut)}) {
      if (!part.empty()) packet.payload[packet.slices++] = {part.data(), static_cast<uint32_t>(part.size())};
    }
    return packet;
  }

  Bytes RandomBytes(size_t length) {
    Bytes bytes(length);
    for (uint8_t& byte : bytes) byte = static_cast<uint8_t>(random.Next());
    return bytes;
  }

  bool WaitFor(const std::function<bool()>& done) { return loop.RunUntil(done, loop.Now() + base::Seconds(20)); }

  // For what must not happen: whatever is on its way has arrived.
  void Settle() {
    loop.RunUntil([] { return false; }, loop.Now() + base::Milliseconds(20));
  }

  // Random batches to `to`; all must arrive whole and in order.
  void ExchangeRandomBatches(TestNic& from, TestNic& to) {
    static constexpr PacketOpcode kOpcodes[] = {PacketOpcode::kWriteFirst, PacketOpcode::kWriteMiddle,
                                                PacketOpcode::kWriteLast, PacketOpcode::kAcknowledge};
    std::vector<Bytes> payloads;
    std::vector<Packet> packets;
    PacketOpcode opcode = PacketOpcode::kWriteMiddle;
    size_t length = 1024;
    for (uint32_t i = 0; i < 3000; ++i) {
      if (random.Chance(0.1)) opcode = kOpcodes[random.Below(4)];
      if (random.Chance(0.1)) length = random.Chance(0.5) ? 4096 : random.Below(4097);
      payloads.push_back(RandomBytes(opcode == PacketOpcode::kAcknowledge ? 0 : length));
      packets.push_back(Make(opcode, i, to.address(), payloads.back()));
    }
    for (size_t sent = 0; sent < packets.size();) {
      const size_t batch = std::min<size_t>(1 + random.Below(300), packets.size() - sent);
      ASSERT_EQ(from.port().Send(absl::MakeConstSpan(packets).subspan(sent, batch)), batch);
      sent += batch;
      ASSERT_TRUE(WaitFor([&] { return to.received().size() >= sent; }));
    }
    ASSERT_EQ(to.received().size(), packets.size());
    for (size_t i = 0; i < packets.size(); ++i) {
      const Received& received = to.received()[i];
      ASSERT_EQ(received.packet.psn, i);
      ASSERT_EQ(received.packet.opcode, packets[i].opcode);
      ASSERT_EQ(received.packet.peer, from.address());
      ASSERT_EQ(received.payload, payloads[i]) << i;
    }
    for (uint32_t i = 0; i < kUdpDrops; ++i) EXPECT_EQ(to.counters().dropped[i].value(), 0u) << i;
    EXPECT_EQ(to.counters().packets_received.value(), packets.size());
    EXPECT_EQ(from.counters().packets_sent.value(), packets.size());
    EXPECT_EQ(from.counters().bytes_sent.value(), to.counters().bytes_received.value());
    EXPECT_EQ(to.counters().identifications_unexpected.value(), 0u)
        << "the kernel numbers segments otherwise than we think";
  }

  os::EpollLoop loop;
  base::Random random{1};
};

}  // namespace tokamak::verbs::soft
