// The first messages of both sides, and the errors when they do not fit.
#include "lib/transport/messages/hello.h"

#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "lib/transport/limits.h"

namespace tokamak::transport {
namespace {

Hello Sample() {
  Hello hello;
  hello.bulk_queue_pairs = 4;
  hello.reads_served = 16;
  hello.immediate = true;
  hello.rails = 2;
  hello.primary = 1;
  hello.slot_size = 16384;
  hello.first_slots = 4;
  hello.receive_slots = 128;
  hello.max_transfers = 1024;
  hello.max_calls = 256;
  hello.token = 0x0123456789abcdef;
  hello.secret = security::SecretId({1, 2, 3, 4, 5, 6, 7, 8});
  hello.seals = true;
  return hello;
}

Hello BulkSample() {
  Hello hello = Sample();
  hello.queue = 3;
  hello.attempt = 0x89abcdef;
  hello.proof = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16};
  return hello;
}

std::vector<uint8_t> HelloBytes(const Hello& hello) {
  std::vector<uint8_t> bytes(kHelloSize);
  EncodeHello(hello, absl::MakeSpan(bytes));
  return bytes;
}

TEST(HelloTest, EncodingsAreDecodedUnchanged) {
  auto hello = DecodeHello(HelloBytes(Sample()));
  ASSERT_TRUE(hello.ok()) << hello.status();
  EXPECT_EQ(hello->version, kProtocolVersion);
  EXPECT_EQ(hello->queue, 0);
  EXPECT_EQ(hello->bulk_queue_pairs, 4);
  EXPECT_EQ(hello->reads_served, 16);
  EXPECT_TRUE(hello->immediate);
  EXPECT_EQ(hello->rails, 2);
  EXPECT_EQ(hello->primary, 1);
  EXPECT_EQ(hello->slot_size, 16384u);
  EXPECT_EQ(hello->first_slots, 4u);
  EXPECT_EQ(hello->receive_slots, 128u);
  EXPECT_EQ(hello->max_transfers, 1024u);
  EXPECT_EQ(hello->max_calls, 256u);
  EXPECT_EQ(hello->token, 0x0123456789abcdefu);
  EXPECT_EQ(hello->secret, Sample().secret);
  EXPECT_TRUE(hello->seals);
  EXPECT_FALSE(hello->aes);
}

TEST(HelloTest, ABulkQueuePairHasAProofAndNoSlots) {
  auto hello = DecodeHello(HelloBytes(BulkSample()));
  ASSERT_TRUE(hello.ok()) << hello.status();
  EXPECT_EQ(hello->queue, 3);
  EXPECT_EQ(hello->rails, 2);
  EXPECT_EQ(hello->token, 0x0123456789abcdefu);
  EXPECT_EQ(hello->attempt, 0x89abcdefu);
  EXPECT_EQ(hello->proof, BulkSample().proof);
  EXPECT_EQ(hello->slot_size, 0u);
  EXPECT_EQ(hello->secret, security::SecretId());
}

TEST(HelloTest, UnusedBytesAndOffersWithoutASecretAreRefused) {
  std::vector<uint8_t> bytes = HelloBytes(Sample());
  bytes[kHelloSize - 1] = 1;
  EXPECT_EQ(DecodeHello(bytes).status().code(), absl::StatusCode::kInvalidArgument);
  bytes = HelloBytes(BulkSample());
  bytes[40] = 1;
  EXPECT_EQ(DecodeHello(bytes).status().code(), absl::StatusCode::kInvalidArgument);
  Hello open = Sample();
  open.secret = {};
  EXPECT_EQ(DecodeHello(HelloBytes(open)).status().code(), absl::StatusCode::kInvalidArgument);
  open.seals = false;
  EXPECT_TRUE(DecodeHello(HelloBytes(open)).ok());
}

TEST(HelloTest, TheQueuePairsOfARailFollowThoseOfThePreviousRail) {
  Hello hello = Sample();
  for (uint8_t queue = 1; queue <= 8; ++queue) {
    hello.queue = queue;
    EXPECT_EQ(RailOf(hello), queue <= 4 ? 0u : 1u);
    EXPECT_TRUE(DecodeHello(HelloBytes(hello)).ok());
  }
}

TEST(HelloTest, PaddingIsIgnored) {
  std::vector<uint8_t> bytes = HelloBytes(Sample());
  bytes.resize(196);
  EXPECT_TRUE(DecodeHello(bytes).ok());
}

TEST(HelloTest, AnotherVersionIsNamedOnBothSides) {
  Hello newer = Sample();
  newer.version = kProtocolVersion + 1;
  const auto hello = DecodeHello(HelloBytes(newer));
  EXPECT_EQ(hello.status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_NE(hello.status().message().find(absl::StrCat("version ", newer.version)), absl::string_view::npos)
      << hello.status();
  EXPECT_NE(hello.status().message().find(absl::StrCat("version ", kProtocolVersion)), absl::string_view::npos)
      << hello.status();
}

TEST(HelloTest, AnotherProtocolIsReportedAsSuch) {
  std::vector<uint8_t> bytes = HelloBytes(Sample());
  bytes[0] ^= 1;
  EXPECT_EQ(DecodeHello(bytes).status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(DecodeHello({}).status().code(), absl::StatusCode::kFailedPrecondition);
}

TEST(HelloTest, ATooShortMessageIsRefused) {
  const std::vector<uint8_t> bytes = HelloBytes(Sample());
  for (size_t size = 0; size < kHelloSize; ++size) {
    EXPECT_FALSE(DecodeHello(absl::MakeConstSpan(bytes.data(), size)).ok()) << size;
  }
}

TEST(HelloTest, ValuesOutOfBoundsAreRefused) {
  const auto refused = [](auto change) {
    Hello hello = Sample();
    change(hello);
    return DecodeHello(HelloBytes(hello)).status().code() == absl::StatusCode::kInvalidArgument;
  };
  EXPECT_TRUE(refused([](Hello& h) { h.bulk_queue_pairs = 0; }));
  EXPECT_TRUE(refused([](Hello& h) { h.bulk_queue_pairs = kMaxBulkQueuePairs + 1; }));
  EXPECT_TRUE(refused([](Hello& h) { h.queue = 9; }));  // 8 on two rails
  EXPECT_TRUE(refused([](Hello& h) { h.rails = 0; }));
  EXPECT_TRUE(refused([](Hello& h) { h.rails = kMaxRails + 1, h.bulk_queue_pairs = 1; }));
  EXPECT_TRUE(refused([](Hello& h) { h.bulk_queue_pairs = kMaxBulkQueuePairs / 2 + 1; }));
  EXPECT_TRUE(refused([](Hello& h) { h.primary = 2; }));
  EXPECT_TRUE(refused([](Hello& h) { h.slot_size = 511; }));
  EXPECT_TRUE(refused([](Hello& h) { h.slot_size = kMaxSlotSize + 1; }));
  EXPECT_TRUE(refused([](Hello& h) { h.receive_slots = kMinReceiveSlots - 1; }));
  EXPECT_TRUE(refused([](Hello& h) { h.receive_slots = kMaxReceiveSlots + 1; }));
  EXPECT_TRUE(refused([](Hello& h) { h.first_slots = kMinFirstSlots - 1; }));
  EXPECT_TRUE(refused([](Hello& h) { h.first_slots = h.receive_slots + 1; }));
  EXPECT_TRUE(refused([](Hello& h) { h.reads_served = 0; }));
  EXPECT_TRUE(refused([](Hello& h) { h.max_transfers = 0; }));
  EXPECT_TRUE(refused([](Hello& h) { h.max_calls = 0; }));
}

}  // namespace
}  // namespace tokamak::transport
