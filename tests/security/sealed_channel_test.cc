#include "lib/security/sealed_channel.h"

#include <algorithm>
#include <functional>
#include <string>
#include <utility>

#include "gtest/gtest.h"
#include "lib/security/noise_handshake.h"
#include "tests/security/two_sides.h"

namespace tokamak::security {
namespace {

class SealedChannelTest : public testing::TestWithParam<CipherSuite> {
 protected:
  SealedChannelTest() : both_(GetParam()) {}

  SealedChannel& sender() { return both_.initiator->channel; }
  SealedChannel& receiver() { return both_.responder->channel; }

  absl::StatusOr<std::string> Opened(Bytes message, absl::string_view additional = "") {
    absl::StatusOr<absl::Span<uint8_t>> opened = receiver().Open(BytesOf(additional), absl::MakeSpan(message));
    if (!opened.ok()) {
      EXPECT_EQ(message, Bytes(message.size(), 0)) << "bytes that nobody vouches for";
      return opened.status();
    }
    return TextOf(*opened);
  }
  // `right`: the message that should have come.
  void ExpectBroken(const Bytes& right, absl::string_view additional) {
    EXPECT_TRUE(receiver().broken());
    Bytes message = right;
    EXPECT_EQ(receiver().Open(BytesOf(additional), absl::MakeSpan(message)).status().code(),
              absl::StatusCode::kFailedPrecondition);
    EXPECT_EQ(message, right) << "not even the right message is touched";
    EXPECT_EQ(receiver().Seal({}, absl::MakeSpan(message)).code(), absl::StatusCode::kFailedPrecondition);
  }

  TwoChannels both_;
};

TEST_P(SealedChannelTest, MessagesOfAllSizesComeOutAsTheyWentIn) {
  for (const size_t size :
       {size_t{0}, size_t{1}, size_t{15}, size_t{16}, size_t{17}, size_t{4096}, kMaxSealedMessage - kTagSize}) {
    const std::string text(size, 'x');
    const Bytes message = Sealed(sender(), text, "header");
    EXPECT_EQ(message.size(), size + kTagSize);
    EXPECT_TRUE(size < 16 || TextOf(message).substr(0, size) != text);
    EXPECT_EQ(*Opened(message, "header"), text);
  }
}

TEST_P(SealedChannelTest, TheSameTextIsSealedOtherwiseEachTime) {
  EXPECT_NE(Sealed(sender(), "again"), Sealed(sender(), "again"));
}

TEST_P(SealedChannelTest, WhateverWasDoneToAMessageBreaksTheChannel) {
  const struct {
    const char* name;
    std::function<Bytes(Bytes first, Bytes second, Bytes third)> delivered;  // in place of the second
    const char* additional = "header";
  } cases[] = {
      {"repeated", [](Bytes first, Bytes, Bytes) { return first; }},
      {"overtaken", [](Bytes, Bytes, Bytes third) { return third; }},
      {"cut by one",
       [](Bytes, Bytes second, Bytes) {
         second.pop_back();
         return second;
       }},
      {"cut to a tag",
       [](Bytes, Bytes second, Bytes) {
         second.resize(kTagSize);
         return second;
       }},
      {"cut below a tag",
       [](Bytes, Bytes second, Bytes) {
         second.resize(kTagSize - 1);
         return second;
       }},
      {"nothing", [](Bytes, Bytes, Bytes) { return Bytes(); }},
      {"longer",
       [](Bytes, Bytes second, Bytes) {
         second.push_back(0);
         return second;
       }},
      {"longer than any",
       [](Bytes, Bytes second, Bytes) {
         second.resize(kMaxSealedMessage + 1);
         return second;
       }},
      {"a bit of its text",
       [](Bytes, Bytes second, Bytes) {
         second[0] ^= 1;
         return second;
       }},
      {"a bit of its tag",
       [](Bytes, Bytes second, Bytes) {
         second.back() ^= 0x80;
         return second;
       }},
      {"another header", [](Bytes, Bytes second, Bytes) { return second; }, "Header"},
      {"no header", [](Bytes, Bytes second, Bytes) { return second; }, ""},
      {"zeros", [](Bytes, Bytes second, Bytes) { return Bytes(second.size(), 0); }},
  };
  for (const auto& bad : cases) {
    both_ = TwoChannels(GetParam());
    const Bytes first = Sealed(sender(), "the first", "header"), second = Sealed(sender(), "the second", "header");
    const Bytes third = Sealed(sender(), "the third", "header");
    ASSERT_TRUE(Opened(first, "header").ok());
    EXPECT_EQ(Opened(bad.delivered(first, second, third), bad.additional).status().code(), absl::StatusCode::kDataLoss)
        << bad.name;
    ExpectBroken(second, "header");
  }
}

TEST_P(SealedChannelTest, AMessageThatIsSentBackBreaksTheChannel) {
  const Bytes right = Sealed(sender(), "yours"), message = Sealed(receiver(), "mine");
  EXPECT_FALSE(Opened(message).ok());
  ExpectBroken(right, "");
}

TEST_P(SealedChannelTest, SizesThatCannotBeSealedChangeNothing) {
  Bytes small(kTagSize - 1), large(kMaxSealedMessage + 1);
  EXPECT_EQ(sender().Seal({}, absl::MakeSpan(small)).code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(sender().Seal({}, absl::MakeSpan(large)).code(), absl::StatusCode::kInvalidArgument);
  const Bytes additional(kMaxSealedMessage + 1);
  EXPECT_EQ(sender().Seal(additional, absl::MakeSpan(small)).code(), absl::StatusCode::kInvalidArgument);
  EXPECT_FALSE(sender().broken());
  EXPECT_EQ(*Opened(Sealed(sender(), "still")), "still");
}

TEST_P(SealedChannelTest, AnAdditionalTextThatIsTooLongBreaksTheChannelThatOpens) {
  const Bytes message = Sealed(sender(), "text"), additional(kMaxSealedMessage + 1);
  EXPECT_EQ(Opened(message, TextOf(additional)).status().code(), absl::StatusCode::kDataLoss);
  ExpectBroken(message, "");
}

// Ciphers of both sides, as after a handshake.
struct FreshCiphers {
  explicit FreshCiphers(CipherSuite suite)
      : initiator(Role::kInitiator, suite, {}, Bytes(32, 1), Bytes(32, 2)),
        responder(Role::kResponder, suite, {}, Bytes(32, 1), Bytes(32, 3)) {
    EXPECT_TRUE(responder.Read(*initiator.Write({})).ok());
    EXPECT_TRUE(initiator.Read(*responder.Write({})).ok());
  }
  NoiseHandshake initiator;
  NoiseHandshake responder;
};

constexpr uint64_t kFewMessages = 5;

TEST_P(SealedChannelTest, BothSidesGoOverToNewKeysAtTheSameMessage) {
  FreshCiphers fresh(GetParam());
  auto ours = fresh.initiator.Split();
  auto theirs = fresh.responder.Split();
  SealedChannel sending(Role::kInitiator, std::move(ours.first), std::move(ours.second), kFewMessages);
  SealedChannel receiving(Role::kResponder, std::move(theirs.first), std::move(theirs.second), kFewMessages);
  Bytes message(kTagSize);
  while (sending.sealed() < 4 * kFewMessages + 2) {
    ASSERT_TRUE(sending.Seal({}, absl::MakeSpan(message)).ok());
    ASSERT_TRUE(receiving.Open({}, absl::MakeSpan(message)).ok());
    if (sending.sealed() % 3 != 0) continue;  // the other direction counts by itself
    ASSERT_TRUE(receiving.Seal({}, absl::MakeSpan(message)).ok());
    ASSERT_TRUE(sending.Open({}, absl::MakeSpan(message)).ok());
  }
  EXPECT_EQ(receiving.opened(), sending.sealed());
}

TEST_P(SealedChannelTest, ASenderThatKeepsItsKeyForTooLongIsNoticed) {
  FreshCiphers fresh(GetParam());
  auto ours = fresh.initiator.Split();
  auto theirs = fresh.responder.Split();
  SealedChannel receiving(Role::kResponder, std::move(theirs.first), std::move(theirs.second), kFewMessages);
  Bytes message(kTagSize);
  for (uint64_t i = 0; i < kFewMessages; ++i) {
    ours.first.Seal({}, absl::MakeSpan(message));
    ASSERT_TRUE(receiving.Open({}, absl::MakeSpan(message)).ok());
  }
  ours.first.Seal({}, absl::MakeSpan(message));
  EXPECT_FALSE(receiving.Open({}, absl::MakeSpan(message)).ok());
}

TEST_P(SealedChannelTest, RandomLivesOfAChannelDeliverInOrderOrBreak) {
  base::Random random(7);
  for (int life = 0; life < 200; ++life) {
    both_ = TwoChannels(GetParam());
    std::vector<Bytes> sent;
    size_t expected = 0;
    while (!receiver().broken() && expected < 50) {
      sent.push_back(Sealed(sender(), std::to_string(sent.size())));
      const size_t which = random.Chance(0.05) ? random.Below(sent.size()) : expected;
      Bytes message = sent[which];
      const bool touched = random.Chance(0.03);
      if (touched) message[random.Below(message.size())] ^= static_cast<uint8_t>(1 + random.Below(255));
      const absl::StatusOr<std::string> opened = Opened(message);
      ASSERT_EQ(opened.ok(), which == expected && !touched);
      if (!opened.ok()) continue;
      ASSERT_EQ(*opened, std::to_string(expected));
      ++expected;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Suites, SealedChannelTest, testing::Values(CipherSuite::kAesGcm, CipherSuite::kChaChaPoly),
                         [](const testing::TestParamInfo<CipherSuite>& param) {
                           return param.param == CipherSuite::kAesGcm ? "AesGcm" : "ChaChaPoly";
                         });

}  // namespace
}  // namespace tokamak::security
