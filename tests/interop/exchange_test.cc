#include "tests/interop/exchange.h"

#include <algorithm>
#include <vector>

#include "tests/interop/two_peers.h"

namespace tokamak::interop {
namespace {

constexpr uint32_t kLargest = 100'000;

// Either end, whole.
Part Exchanging(bool leads, ExchangeReport* report) {
  return [=](Link& link, const Join& join) -> absl::Status {
    ExchangeOptions options;
    options.largest = kLargest;
    auto exchange = Exchange::Prepare(link, options);
    if (!exchange.ok()) return exchange.status();
    if (auto s = join(); !s.ok()) return s;
    auto led = leads ? (*exchange)->Lead() : (*exchange)->Follow();
    if (led.ok()) *report = *led;
    if (!led.ok() || leads) return led.status();
    return link.AwaitDisconnection();
  };
}

// Greets, and from then on says that all is well without doing anything.
Part IdleFollower() {
  return [](Link& link, const Join& join) -> absl::Status {
    constexpr uint32_t kReceives = 2 * kMaxInFlight;
    std::vector<uint8_t> window((1 << 20) + kGuard);
    std::vector<uint8_t> heard(kReceives * kLargest);
    MessageBytes said{};
    auto window_region = link.Register(absl::MakeSpan(window));
    auto heard_region = link.Register(absl::MakeSpan(heard));
    auto said_region = link.Register(absl::MakeSpan(said));
    if (!window_region.ok() || !heard_region.ok() || !said_region.ok()) return absl::InternalError("no memory");
    const auto place = [&](uint32_t index) { return heard.data() + index % kReceives * kLargest; };
    for (uint32_t i = 0; i < kReceives; ++i) {
      if (auto s = link.PostReceive({place(i), kLargest, (*heard_region)->lkey()}); !s.ok()) return s;
    }
    if (auto s = join(); !s.ok()) return s;
    Message answer;
    answer.kind = MessageKind::kHello;
    answer.address = reinterpret_cast<uintptr_t>(window.data());
    answer.rkey = (*window_region)->rkey();
    answer.window = window.size();
    for (uint32_t i = 0;; ++i) {
      const auto received = link.AwaitReceive();
      if (!received.ok()) return received.status();
      const bool asks = Decode(absl::MakeConstSpan(place(i), received->byte_count)).ok();
      if (auto s = link.PostReceive({place(i), kLargest, (*heard_region)->lkey()}); !s.ok()) return s;
      if (!asks) continue;  // the data of a SEND
      said = Encode(answer);
      if (auto s = link.PostSend({}, {said.data(), kMessageBytes, (*said_region)->lkey()}); !s.ok()) return s;
      if (auto s = link.AwaitSends(); !s.ok()) return s;
      answer = Message();
    }
  };
}

using ExchangeTest = TwoPeers;

TEST_F(ExchangeTest, BothEndsLeadThroughAllOperations) {
  ExchangeReport followed;
  ExchangeReport led;
  const auto [server, client] = Meet(0, Exchanging(false, &followed), 1, Exchanging(true, &led));
  ASSERT_TRUE(server.ok()) << server;
  ASSERT_TRUE(client.ok()) << client;
  for (const ExchangeReport& report : {followed, led}) {
    EXPECT_EQ(report.path_mtu, 4096);
    EXPECT_EQ(report.led.size(), 7) << ToString(report);
    for (const auto& [opcode, tally] : report.led) EXPECT_GT(tally.requests, kMaxInFlight) << NameOf(opcode);
  }
}

TEST_F(ExchangeTest, MissingBytesAreNoticed) {
  ExchangeReport led;
  const auto [server, client] = Meet(0, IdleFollower(), 1, Exchanging(true, &led));
  EXPECT_EQ(client.code(), absl::StatusCode::kDataLoss) << client;
  EXPECT_NE(client.message().find("1 x READ of 1 bytes"), std::string::npos) << client;
}

TEST(ExchangePlanTest, SizesLieAroundThePathMtuAndItsMultiples) {
  const std::vector<Step> plan = Plan(1024, 50'000, true, true);
  for (const verbs::Opcode opcode : {verbs::Opcode::kSend, verbs::Opcode::kWrite, verbs::Opcode::kRead}) {
    for (const uint32_t length : {0, 1, 1023, 1024, 1025, 2047, 2048, 2049, 16385, 49'999, 50'000}) {
      EXPECT_EQ(std::count_if(plan.begin(), plan.end(),
                              [&](const Step& step) {
                                return step.opcode == opcode && step.length == length && step.count == 1;
                              }),
                1)
          << NameOf(opcode) << " of " << length;
    }
  }
  for (const Step& step : plan) EXPECT_LE(step.length, 50'000);
}

TEST(ExchangePlanTest, OperationsThatADeviceLacksAreSkipped) {
  for (const Step& step : Plan(1024, 50'000, false, false)) {
    EXPECT_TRUE(step.opcode == verbs::Opcode::kSend || step.opcode == verbs::Opcode::kWrite ||
                step.opcode == verbs::Opcode::kRead)
        << NameOf(step.opcode);
  }
}

TEST(PiecesTest, EveryByteAndTheGuardBehindAreCompared) {
  const Pieces pieces = {3, 13, 7};
  std::vector<uint8_t> memory(pieces.bytes_with_guard());
  for (size_t at = 0; at < memory.size(); ++at) {
    Fill(absl::MakeSpan(memory), pieces);
    ASSERT_EQ(FindWrong(memory, pieces), std::nullopt);
    memory[at] ^= 1;
    EXPECT_EQ(FindWrong(memory, pieces), at);
  }
}

TEST(PiecesTest, ClearedMemoryAndOtherSeedsAreWrong) {
  std::vector<uint8_t> memory(1000);
  Clear(absl::MakeSpan(memory), {1, 8, 0});
  EXPECT_NE(FindWrong(memory, {1, 8, 7}), std::nullopt);
  Fill(absl::MakeSpan(memory), {1, 8, 8});
  EXPECT_NE(FindWrong(memory, {1, 8, 7}), std::nullopt);
}

TEST(ExchangeMessageTest, MessagesComeBackUnchanged) {
  Message message;
  message.kind = MessageKind::kExpect;
  message.flags = kWithImmediate | kByWrite;
  message.length = 0x01020304;
  message.count = 0x05060708;
  message.seed = 0x1112131415161718;
  message.address = 0x2122232425262728;
  message.rkey = 0x31323334;
  message.result = MessageResult::kRefused;
  message.value = 0x4142434445464748;
  message.window = 0x5152535455565758;
  const auto again = Decode(Encode(message));
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ(Encode(*again), Encode(message));
  EXPECT_EQ(again->value, message.value);
  EXPECT_EQ(again->window, message.window);
}

TEST(ExchangeMessageTest, InvalidMessagesAreRefused) {
  const MessageBytes good = Encode(Message());
  EXPECT_TRUE(Decode(good).ok());
  EXPECT_FALSE(Decode(absl::MakeConstSpan(good).first(63)).ok());
  for (const size_t at : {0, 4, 5, 6, 39, 63}) {  // magic, kind, flags, zero, result, zero
    MessageBytes bad = good;
    bad[at] = 0xff;
    EXPECT_FALSE(Decode(bad).ok()) << at;
  }
}

}  // namespace
}  // namespace tokamak::interop
