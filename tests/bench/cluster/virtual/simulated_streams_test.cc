// Two hosts with streams in virtual time, and a network that loses nothing.
#include "tests/bench/cluster/virtual/simulated_streams.h"

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "lib/base/trace.h"
#include "sim/network/sim_network.h"

namespace tokamak::bench {
namespace {

using Bytes = std::vector<uint8_t>;

constexpr base::Duration kLatency = base::Microseconds(2);

Bytes Numbered(size_t size) {
  Bytes bytes(size);
  for (size_t i = 0; i < size; ++i) bytes[i] = static_cast<uint8_t>(i * 7 + i / 251);
  return bytes;
}

// A program at one end: sends what it is given, keeps what comes.
class Program final {
 public:
  Program(base::EventLoop& loop, std::unique_ptr<ByteStream> stream) : loop_(loop), stream_(std::move(stream)) {
    stream_->Start([this](ByteStream::Readiness ready) { OnReady(ready); });
    Want();
  }

  void Send(Bytes bytes) {
    begin_ = loop_.Post([this, bytes = std::move(bytes)] {
      unsent.insert(unsent.end(), bytes.begin(), bytes.end());
      Want();
    });
  }
  void Close() { stream_.reset(); }

  Bytes unsent;
  Bytes received;
  absl::Status status;
  bool reads = true;

 private:
  void OnReady(ByteStream::Readiness ready) {
    if (ready.send && !unsent.empty()) {
      const absl::Span<const uint8_t> part = unsent;
      const auto put = stream_->Send({&part, 1});
      if (!put.ok()) return Fail(put.status());
      unsent.erase(unsent.begin(), unsent.begin() + static_cast<ptrdiff_t>(*put));
    }
    if (ready.receive) {
      Bytes room(100'000);
      const auto got = stream_->Receive(absl::MakeSpan(room));
      if (!got.ok()) return Fail(got.status());
      received.insert(received.end(), room.begin(), room.begin() + static_cast<ptrdiff_t>(*got));
    }
    Want();
  }
  void Want() {
    if (stream_ != nullptr) stream_->Want({reads, !unsent.empty()});
  }
  void Fail(const absl::Status& why) {
    status = why;
    stream_.reset();
  }

  base::EventLoop& loop_;
  std::unique_ptr<ByteStream> stream_;
  base::Timer begin_;
};

class SimulatedStreamsTest : public ::testing::Test {
 protected:
  struct Host {
    Host(sim::Network& network, const char* ip, const StreamCosts& costs)
        : loop(network.time().MakeLoop()),
          own(network.time().MakeLoop()),
          stack(*loop, *own, network.fabric(), *verbs::Address::Parse(ip), costs),
          streams(stack) {}

    std::unique_ptr<base::EventLoop> loop, own;
    StreamStack stack;
    SimulatedStreams streams;
  };

  static sim::NetworkOptions Options() {
    sim::NetworkOptions options;
    options.link.latency = kLatency;
    options.link.picoseconds_per_byte = 80;
    return options;
  }

  void Connect(const StreamOptions& options = {}) {
    listener = *server.streams.Listen(options, [this](std::unique_ptr<ByteStream> stream) {
      accepted = std::make_unique<Program>(*server.loop, std::move(stream));
    });
    connected = std::make_unique<Program>(*client.loop, *client.streams.Connect(listener->address(), options));
    ASSERT_TRUE(RunUntil([this] { return accepted != nullptr; }));
    network.time().RunFor(base::Microseconds(20));
  }

  bool RunUntil(const std::function<bool()>& done) {
    return network.time().RunUntil(done, network.time().Now() + base::Seconds(10));
  }

  base::NoTrace trace;
  sim::SimNetwork network{Options(), trace};
  Host client{network, "10.0.0.1", StreamCosts()};
  Host server{network, "10.0.0.2", StreamCosts()};
  std::unique_ptr<StreamListener> listener;
  std::unique_ptr<Program> accepted, connected;
};

TEST_F(SimulatedStreamsTest, BytesArriveWholeAndInOrderBothWays) {
  Connect();
  const Bytes there = Numbered(5'000'001), back = Numbered(70'000);
  connected->Send(there);
  accepted->Send(back);
  ASSERT_TRUE(RunUntil([&] { return accepted->received.size() == there.size() && connected->received == back; }));
  EXPECT_TRUE(accepted->received == there);
}

TEST_F(SimulatedStreamsTest, AProgramThatDoesNotReadHoldsUpItsPeerAndLosesNothing) {
  StreamOptions options;
  options.buffer = 64 << 10;
  Connect(options);
  accepted->reads = false;
  accepted->Send({1});  // so that it says what it wants
  const Bytes all = Numbered(1'000'000);
  connected->Send(all);
  network.time().RunFor(base::Seconds(1));
  EXPECT_TRUE(accepted->received.empty());
  EXPECT_GE(connected->unsent.size(), all.size() - 2 * options.buffer);
  accepted->reads = true;
  accepted->Send({2});
  ASSERT_TRUE(RunUntil([&] { return accepted->received.size() == all.size(); }));
  EXPECT_TRUE(accepted->received == all);
}

TEST_F(SimulatedStreamsTest, AStreamWithoutAListenerBreaks) {
  verbs::Address nobody = *verbs::Address::Parse("10.0.0.2");
  nobody.port = 9;
  connected = std::make_unique<Program>(*client.loop, *client.streams.Connect(nobody, {}));
  ASSERT_TRUE(RunUntil([this] { return !connected->status.ok(); }));
  EXPECT_EQ(connected->status.code(), absl::StatusCode::kUnavailable) << connected->status;
}

TEST_F(SimulatedStreamsTest, APeerThatClosesBreaksTheStreamAfterItsBytes) {
  Connect();
  accepted->Send(Numbered(100));
  ASSERT_TRUE(RunUntil([this] { return connected->received.size() == 100; }));
  accepted->Close();
  ASSERT_TRUE(RunUntil([this] { return !connected->status.ok(); }));
  EXPECT_EQ(connected->status.code(), absl::StatusCode::kUnavailable) << connected->status;
}

// A small piece waits for the acknowledgement of the one before, which the peer delays.
TEST_F(SimulatedStreamsTest, TwoSmallPiecesWaitForADelayedAcknowledgementUnlessNoDelayIsSet) {
  for (const bool no_delay : {false, true}) {
    StreamOptions options;
    options.no_delay = no_delay;
    Connect(options);
    const base::Time began = network.time().Now();
    connected->Send(Numbered(10));
    network.time().RunFor(base::Microseconds(1));
    connected->Send(Numbered(10));
    ASSERT_TRUE(RunUntil([this] { return accepted->received.size() == 20; }));
    const base::Duration took = network.time().Now() - began;
    EXPECT_EQ(took >= StreamCosts().delayed_acknowledgement, !no_delay);
    EXPECT_LT(took, StreamCosts().delayed_acknowledgement + base::Microseconds(30));
    accepted.reset();
    connected.reset();
    network.time().RunFor(base::Microseconds(20));
  }
}

// As fast as one processor copies and handles packets: 42 Gb/s are the source of its costs.
TEST_F(SimulatedStreamsTest, AStreamIsAsFastAsOneProcessor) {
  StreamOptions options;
  options.no_delay = true;
  options.buffer = 4 << 20;
  Connect(options);
  const size_t size = 20'000'000;
  const base::Time began = network.time().Now();
  connected->Send(Bytes(size));
  ASSERT_TRUE(RunUntil([&] { return accepted->received.size() == size; }));
  // A copy of a loop without costs of its own is 100 ns for each KiB.
  const double least = static_cast<double>(size) * (100e-9 / 1024 + 222e-9 / 4096);
  const double took = (network.time().Now() - began).seconds();
  EXPECT_GT(took, least);
  EXPECT_LT(took, least * 1.2);
}

}  // namespace
}  // namespace tokamak::bench
