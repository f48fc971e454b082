#include <set>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "lib/base/random.h"
#include "lib/client/protocol/frame.h"
#include "lib/client/protocol/messages.h"
#include "tests/client/samples.h"

namespace tokamak::client {
namespace {

using Encoded = std::vector<uint8_t>;

Encoded Hex(const std::string& digits) {
  Encoded bytes;
  for (size_t i = 0; i + 1 < digits.size(); i += 2) {
    bytes.push_back(static_cast<uint8_t>(std::stoi(digits.substr(i, 2), nullptr, 16)));
  }
  return bytes;
}

// Puts a body behind a correct header.
template <typename M>
Encoded FrameOf(const Encoded& body) {
  Header header;
  header.kind = M::kKind;
  return Frame(header, body);
}

template <typename M>
bool Decodes(const Encoded& body) {
  return DecodeBody<M>(FrameOf<M>(body)).ok();
}

TEST(ProtocolTest, EveryMessageComesBackAsItWasSent) {
  int messages = 0;
  ForEachSample([&](const auto& message) {
    using Message = std::decay_t<decltype(message)>;
    const Encoded frame = Encode(42, message);
    const absl::StatusOr<Header> header = DecodeHeader(frame);
    ASSERT_TRUE(header.ok()) << header.status();
    EXPECT_EQ(header->kind, Message::kKind);
    EXPECT_EQ(header->request_id, 42u);
    const absl::StatusOr<Message> decoded = DecodeBody<Message>(frame);
    ASSERT_TRUE(decoded.ok()) << "kind " << header->kind;
    EXPECT_EQ(Encode(42, *decoded), frame) << "kind " << header->kind;
    ++messages;
  });
  EXPECT_EQ(messages, 2 * 24 + 1) << "a request and a reply for each, and the notification";
}

TEST(ProtocolTest, NoTwoMessagesShareAKind) {
  std::set<uint16_t> kinds;
  ForEachSample([&](const auto& message) { EXPECT_TRUE(kinds.insert(std::decay_t<decltype(message)>::kKind).second); });
}

TEST(ProtocolTest, FieldsKeepTheirValues) {
  GetRequest get;
  get.timeout_microseconds = 1234;
  get.protocol = Protocol::kRead;
  get.ids = {SampleId(1), SampleId(2)};
  const GetRequest decoded = *DecodeBody<GetRequest>(Encode(1, get));
  EXPECT_EQ(decoded.timeout_microseconds, 1234u);
  EXPECT_EQ(decoded.protocol, Protocol::kRead);
  EXPECT_EQ(decoded.ids, get.ids);
}

// The drawing in docs/client-protocol.md, byte for byte.
TEST(ProtocolTest, TheBytesMatchTheDrawing) {
  CreateRequest create;
  create.id = base::ObjectId();
  create.data_size = 0x1122;
  create.metadata_size = 3;
  create.timeout_microseconds = 0x4455;
  create.confirmed = true;
  create.name = "x";
  EXPECT_EQ(Encode(0x0102030405060708, create), Hex("544d414b"          // magic
                                                    "0500"              // version
                                                    "0200"              // kind: Create
                                                    "0807060504030201"  // request id
                                                    "32000000"          // length
                                                    "00000000"          // status
                                                    "0000000000000000000000000000000000000000"
                                                    "2211000000000000"
                                                    "0300000000000000"
                                                    "5544000000000000"
                                                    "01"
                                                    "0100000078"));
}

TEST(ProtocolTest, AnErrorBelongsToItsRequestAndKeepsItsText) {
  const Encoded request = Encode(7, AboutObject<DeleteRequest>());
  const Encoded frame = EncodeError(*DecodeHeader(request), absl::NotFoundError("no such object"));
  const Header header = *DecodeHeader(frame);
  EXPECT_EQ(header.kind, DeleteRequest::Reply::kKind);
  EXPECT_EQ(header.request_id, 7u);
  EXPECT_EQ(StatusOf(header, frame), absl::NotFoundError("no such object"));
}

TEST(ProtocolTest, ALongErrorTextIsCut) {
  const Encoded frame = EncodeError(Header(), absl::InternalError(std::string(10'000, 'x')));
  EXPECT_EQ(frame.size(), kHeaderSize + kMaxErrorText);
  EXPECT_EQ(Outcome::Of(absl::InternalError(std::string(10'000, 'x'))).message.size(), kMaxErrorText);
}

TEST(ProtocolTest, AForeignHeaderIsRefused) {
  const Encoded good = Encode(1, NodesRequest());
  EXPECT_FALSE(DecodeHeader({}).ok());
  EXPECT_FALSE(DecodeHeader(absl::MakeSpan(good).first(kHeaderSize - 1)).ok());
  Encoded bad = good;
  bad[0] ^= 1;
  EXPECT_FALSE(DecodeHeader(bad).ok()) << "magic";
  bad = good;
  bad[16] = 1;
  EXPECT_FALSE(DecodeHeader(bad).ok()) << "length";
  bad = good;
  bad[20] = 17;
  EXPECT_FALSE(DecodeHeader(bad).ok()) << "status";
}

TEST(ProtocolTest, AnotherVersionIsReadableEnoughToBeAnswered) {
  Encoded frame = Encode(5, HelloRequest());
  frame[4] = 99;
  const absl::StatusOr<Header> header = DecodeHeader(frame);
  ASSERT_TRUE(header.ok());
  EXPECT_EQ(header->version, 99);
  EXPECT_EQ(header->request_id, 5u);
}

TEST(ProtocolTest, ABodyThatIsTooShortOrTooLongIsMalformed) {
  ForEachSample([](const auto& message) {
    using Message = std::decay_t<decltype(message)>;
    const Encoded frame = Encode(0, message);
    Encoded body(frame.begin() + kHeaderSize, frame.end());
    body.push_back(0);
    EXPECT_FALSE(Decodes<Message>(body)) << Message::kKind;
    body.pop_back();
    while (!body.empty()) {
      body.pop_back();
      EXPECT_FALSE(Decodes<Message>(body)) << Message::kKind;
    }
  });
}

TEST(ProtocolTest, ValuesOutsideTheirBoundsAreMalformed) {
  Encoded get(8 + 1 + 4);
  EXPECT_TRUE(Decodes<GetRequest>(get));
  get[8] = 4;
  EXPECT_FALSE(Decodes<GetRequest>(get)) << "no such protocol";
  get = Encoded(8 + 1 + 4);
  get[7] = 1;
  EXPECT_FALSE(Decodes<GetRequest>(get)) << "a time-out of years";
  EXPECT_FALSE(Decodes<ContainsReply>({2})) << "neither true nor false";
  Encoded create(base::ObjectId::kSize + 3 * 8 + 1);
  const auto with_name = [&](size_t size) {
    Encoded named = create;
    named.insert(named.end(), {static_cast<uint8_t>(size), static_cast<uint8_t>(size >> 8), 0, 0});
    named.insert(named.end(), size, 'x');
    return named;
  };
  EXPECT_TRUE(Decodes<CreateRequest>(with_name(kMaxObjectName)));
  EXPECT_FALSE(Decodes<CreateRequest>(with_name(kMaxObjectName + 1))) << "a name that is too long";
  EXPECT_FALSE(Decodes<WaitReply>({1, 0, 0, 0, 7})) << "neither true nor false";
}

TEST(ProtocolTest, AListWithTooLargeACountIsMalformed) {
  EXPECT_FALSE(Decodes<ReleaseRequest>({255, 255, 255, 255}));
  EXPECT_FALSE(Decodes<ListReply>({1, 4, 0, 0, 0}));
  Encoded too_many((kMaxIds + 1) * base::ObjectId::kSize + 4);
  base::StoreLittle(too_many.data(), static_cast<uint32_t>(kMaxIds + 1));
  EXPECT_FALSE(Decodes<ReleaseRequest>(too_many));
}

// Decodes `frame` as M. Accepted bytes must be exactly an encoder's.
template <typename M>
void ExpectCanonical(const Encoded& frame) {
  const absl::StatusOr<M> message = DecodeBody<M>(frame);
  if (message.ok()) {
    EXPECT_EQ(Encode(0, *message), FrameOf<M>(Encoded(frame.begin() + kHeaderSize, frame.end())));
  }
}

TEST(ProtocolTest, RandomBytesNeverHarmADecoder) {
  base::Random random(20);
  for (int round = 0; round < 3000; ++round) {
    Encoded body(random.Below(200));
    for (uint8_t& byte : body) byte = static_cast<uint8_t>(random.Chance(0.7) ? random.Below(3) : random.Next());
    ForEachSample([&](const auto& message) {
      using Message = std::decay_t<decltype(message)>;
      ExpectCanonical<Message>(FrameOf<Message>(body));
    });
  }
}

TEST(ProtocolTest, DamagedFramesNeverHarmADecoder) {
  base::Random random(21);
  for (int round = 0; round < 2000; ++round) {
    ForEachSample([&](const auto& message) {
      Encoded frame = Encode(round, message);
      for (uint64_t hits = 1 + random.Below(4); hits != 0; --hits) {
        frame[random.Below(frame.size())] = static_cast<uint8_t>(random.Next());
      }
      if (random.Chance(0.2)) frame.resize(random.Below(frame.size() + 1));
      const absl::StatusOr<Header> header = DecodeHeader(frame);
      if (header.ok()) ExpectCanonical<std::decay_t<decltype(message)>>(frame);
    });
  }
}

}  // namespace
}  // namespace tokamak::client
