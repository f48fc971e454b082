// Messages as bytes: what Encode writes Decode reads, and nothing else.
#include "lib/transport/messages/message.h"

#include <cstdint>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "lib/base/random.h"
#include "lib/transport/messages/rail_messages.h"

namespace tokamak::transport {
namespace {

std::vector<uint8_t> Bytes(const Header& header, const std::vector<uint8_t>& body = {}) {
  std::vector<uint8_t> bytes(MessageSize(header, body.size()));
  EXPECT_EQ(EncodeMessage(header, body, absl::MakeSpan(bytes)), bytes.size());
  return bytes;
}

// One good message of each shape.
std::vector<std::pair<Header, std::vector<uint8_t>>> Samples() {
  std::vector<std::pair<Header, std::vector<uint8_t>>> samples;
  Header h;
  h.kind = MessageKind::kTransfer;
  h.transfer = 1;
  h.deadline_ms = 30000;
  h.object = base::ObjectId::FromName("x");
  h.generation = base::Generation{0x1122334455667788};
  h.protocol = Protocol::kEager;
  samples.push_back({h, {}});  // nothing of it
  h.protocol = Protocol::kRead;
  h.flags = kProtocolGiven;
  h.size = {1000, 24};
  samples.push_back({h, {}});
  h.protocol = Protocol::kWrite;
  h.remote = {0x7f0012345678, 0xabcd1234};
  h.arrived = 1023;
  samples.push_back({h, {}});
  h.arrived = 0;
  h.size = {0, 0};
  h.remote = {};
  samples.push_back({h, {}});  // by write, nothing to write

  h = {};
  h.kind = MessageKind::kData;
  h.protocol = Protocol::kRead;
  h.transfer = 7;
  h.deadline_ms = 10;
  h.credits = 65535;
  h.size = {kMaxObjectSize, kMaxObjectSize};
  h.remote = {0x1000, 42};
  samples.push_back({h, {}});

  h = {};
  h.kind = MessageKind::kChunk;
  h.protocol = Protocol::kEager;
  h.transfer = UINT64_MAX;
  h.size = {6, 2};
  h.offset = 5;
  samples.push_back({h, {1, 2, 3}});
  h.size = {};
  h.offset = 0;
  samples.push_back({h, {}});

  h = {};
  h.kind = MessageKind::kDone;
  h.protocol = Protocol::kWrite;
  h.transfer = 3;
  samples.push_back({h, {}});
  h = {};
  h.kind = MessageKind::kCancel;
  h.transfer = 3;
  samples.push_back({h, {}});
  h = {};
  h.kind = MessageKind::kFail;
  h.transfer = 3;
  h.status = absl::StatusCode::kNotFound;
  h.arrived = 77;
  samples.push_back({h, {'n', 'o'}});
  h = {};
  h.kind = MessageKind::kCredit;
  h.credits = 32;
  samples.push_back({h, {}});
  h = {};
  h.kind = MessageKind::kCall;
  h.transfer = 9;
  h.deadline_ms = 5;
  samples.push_back({h, std::vector<uint8_t>(4000, 7)});
  h = {};
  h.kind = MessageKind::kReply;
  h.transfer = 9;
  samples.push_back({h, {}});
  h = {};
  h.kind = MessageKind::kProgress;
  h.transfer = 4;
  h.offset = 1 << 20;
  h.arrived = 1 << 19;
  samples.push_back({h, {}});

  h = {};
  h.kind = MessageKind::kRails;
  samples.push_back({h, EncodeRails({*verbs::Address::Parse("10.0.0.1:7000"), *verbs::Address::Parse("[fd00::1]:1")})});
  h = {};
  h.kind = MessageKind::kRailDown;
  h.rail = 3;
  samples.push_back({h, EncodeWanted({{5, 0}, {UINT64_MAX, 0xffff}})});
  h = samples[2].first;  // TRANSFER by write, on all rails
  h.remote.further = {3, {{{0, 5}, {2, 6}, {3, 0xffffffff}}}};
  samples.push_back({h, {}});
  h = samples[4].first;  // DATA, on two
  h.remote.further = {1, {{{1, 43}}}};
  samples.push_back({h, {}});
  h = {};
  h.kind = MessageKind::kRelease;
  h.credits = 2;
  samples.push_back({h, {}});
  h = {};
  h.flags = kMoreSlots;  // CREDIT, and any other
  samples.push_back({h, {}});
  return samples;
}

TEST(MessageTest, EncodingsAreDecodedUnchanged) {
  for (const auto& [header, body] : Samples()) {
    SCOPED_TRACE(ToString(header.kind));
    const std::vector<uint8_t> bytes = Bytes(header, body);
    auto message = DecodeMessage(bytes);
    ASSERT_TRUE(message.ok()) << message.status();
    const Header& got = message->header;
    EXPECT_EQ(got.kind, header.kind);
    EXPECT_EQ(got.protocol, header.protocol);
    EXPECT_EQ(got.flags, header.flags);
    EXPECT_EQ(got.status, header.status);
    EXPECT_EQ(got.credits, header.credits);
    EXPECT_EQ(got.deadline_ms, header.deadline_ms);
    EXPECT_EQ(got.transfer, header.transfer);
    EXPECT_EQ(got.size.data, header.size.data);
    EXPECT_EQ(got.size.metadata, header.size.metadata);
    EXPECT_EQ(got.object, header.object);
    EXPECT_EQ(got.generation, header.generation);
    EXPECT_EQ(got.arrived, header.arrived);
    EXPECT_EQ(got.offset, header.offset);
    EXPECT_EQ(got.remote.address, header.remote.address);
    EXPECT_EQ(got.remote.rkey, header.remote.rkey);
    EXPECT_EQ(got.rail, header.rail);
    ASSERT_EQ(got.remote.further.count, header.remote.further.count);
    for (uint32_t i = 0; i < header.remote.further.count; ++i) {
      EXPECT_EQ(got.remote.further.keys[i].rail, header.remote.further.keys[i].rail);
      EXPECT_EQ(got.remote.further.keys[i].rkey, header.remote.further.keys[i].rkey);
    }
    EXPECT_EQ(std::vector<uint8_t>(message->body.begin(), message->body.end()), body);
  }
}

// The drawing in docs/transport.md.
TEST(MessageTest, BytesLieWhereTheDrawingSays) {
  Header h;
  h.kind = MessageKind::kTransfer;
  h.protocol = Protocol::kWrite;
  h.flags = kProtocolGiven;
  h.credits = 0x0201;
  h.deadline_ms = 0x04030201;
  h.transfer = 0x0807060504030201;
  h.size = {0x0102, 0x03};
  h.object =
      base::ObjectId(std::array<uint8_t, 20>{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20});
  h.generation = base::Generation{0xa1a2a3a4a5a6a7a8};
  h.arrived = 0x0101;
  h.remote = {0x1122334455667788, 0x99aabbcc};
  const std::vector<uint8_t> expected = {
      1,    3,    1,    0,    0x01, 0x02, 0,    0,                                                             //
      32,   0,    0,    0,    1,    2,    3,    4,                                                             //
      1,    2,    3,    4,    5,    6,    7,    8,                                                             //
      2,    1,    0,    0,    0,    0,    0,    0,                                                             //
      3,    0,    0,    0,    0,    0,    0,    0,                                                             //
      1,    2,    3,    4,    5,    6,    7,    8,    9,    10,   11,   12,   13, 14, 15, 16, 17, 18, 19, 20,  //
      0,    0,    0,    0,                                                                                     //
      0xa8, 0xa7, 0xa6, 0xa5, 0xa4, 0xa3, 0xa2, 0xa1, 1,    1,    0,    0,    0,  0,  0,  0,                   //
      0x88, 0x77, 0x66, 0x55, 0x44, 0x33, 0x22, 0x11, 0xcc, 0xbb, 0xaa, 0x99, 0,  0,  0,  0};
  EXPECT_EQ(Bytes(h), expected);
}

TEST(MessageTest, ATooShortMessageIsRefused) {
  for (const auto& [header, body] : Samples()) {
    const std::vector<uint8_t> bytes = Bytes(header, body);
    for (size_t size = 0; size < bytes.size(); ++size) {
      EXPECT_FALSE(DecodeMessage(absl::MakeConstSpan(bytes.data(), size)).ok()) << ToString(header.kind) << " " << size;
    }
  }
}

TEST(MessageTest, ATooLongMessageIsRefused) {
  for (const auto& [header, body] : Samples()) {
    std::vector<uint8_t> bytes = Bytes(header, body);
    bytes.push_back(0);
    EXPECT_FALSE(DecodeMessage(bytes).ok()) << ToString(header.kind);
  }
}

TEST(MessageTest, UnknownKindsProtocolsAndStatusesAreRefused) {
  for (const auto& [header, body] : Samples()) {
    std::vector<uint8_t> bytes = Bytes(header, body);
    bytes[1] = 4;
    EXPECT_FALSE(DecodeMessage(bytes).ok()) << ToString(header.kind);
    bytes = Bytes(header, body);
    bytes[3] = 17;
    EXPECT_FALSE(DecodeMessage(bytes).ok()) << ToString(header.kind);
    for (uint8_t kind : {0, 14, 255}) {
      bytes = Bytes(header, body);
      bytes[0] = kind;
      EXPECT_FALSE(DecodeMessage(bytes).ok());
    }
  }
}

// A byte that a kind does not use must be zero: flipping any of them is refused.
TEST(MessageTest, FieldsThatAKindDoesNotUseMustBeZero) {
  Header cancel;
  cancel.kind = MessageKind::kCancel;
  cancel.transfer = 3;
  for (size_t at = 0; at < kHeaderSize; ++at) {
    if (at == 0 || at == 4 || at == 5 || (at >= 16 && at < 24)) continue;  // kind, credits, transfer
    std::vector<uint8_t> bytes = Bytes(cancel);
    bytes[at] ^= 1;
    EXPECT_FALSE(DecodeMessage(bytes).ok()) << at;
  }
}

struct Bad {
  const char* why;
  Header header;
  std::vector<uint8_t> body;
};

TEST(MessageTest, MalformedMessagesAreRefused) {
  const auto samples = Samples();
  std::vector<Bad> bad;
  const auto add = [&bad](const char* why, Header header, std::vector<uint8_t> body = {}) {
    bad.push_back({why, header, std::move(body)});
  };
  Header h = samples[0].first;
  h.protocol = Protocol::kAuto;
  add("a TRANSFER without a protocol", h);
  h = samples[0].first;
  h.flags = 4;
  add("unknown flags", h);
  h = {};
  h.flags = kProtocolGiven;
  add("flags of a TRANSFER with a CREDIT", h);
  h = samples[0].first;
  h.arrived = 1;
  add("bytes that arrived of nothing", h);
  h = samples[1].first;
  h.arrived = h.size.total();
  add("all has arrived", h);
  h = samples[0].first;
  h.transfer = 0;
  add("no number", h);
  h = samples[2].first;
  h.arrived = 0;
  h.remote.address = UINT64_MAX - 1022;
  add("a range that wraps around", h);
  h = samples[4].first;
  h.protocol = Protocol::kEager;
  add("DATA by eager", h);
  h = samples[4].first;
  h.size.data = kMaxObjectSize + 1;
  add("a size beyond every machine", h);
  h = samples[4].first;
  h.size = {};
  add("a key for nothing", h);
  h = samples[5].first;
  h.offset = 9;
  add("a chunk beyond the end", h, {1});
  h = samples[5].first;
  h.offset = UINT64_MAX;
  add("an offset that overflows", h, {1});
  add("a chunk across the end", samples[5].first, {1, 2, 3, 4});
  add("an empty chunk", samples[5].first);
  h = samples[7].first;
  h.protocol = Protocol::kEager;
  add("DONE by eager", h);
  h = samples[9].first;
  h.status = absl::StatusCode::kOk;
  add("a failure that is none", h);
  add("too long a text", samples[9].first, std::vector<uint8_t>(kMaxFailText + 1));
  h = samples[10].first;
  h.transfer = 1;
  add("CREDIT of a transfer", h);
  add("CREDIT with a body", samples[10].first, {1});
  add("CANCEL with a body", samples[8].first, {1});
  h = samples[15].first;
  h.rail = kMaxRails;
  add("a rail beyond all", h);
  h = samples[16].first;
  h.remote.further.keys[1].rail = 0;
  add("two keys of one rail", h);
  h.remote.further.keys[1].rail = 3;
  h.remote.further.keys[2].rail = 2;
  add("keys out of order", h);
  h = samples[17].first;
  h.remote.further.keys[0].rail = kMaxRails;
  add("a key of a rail beyond all", h);
  h.size = {};
  h.remote = {0, 0, {1, {{{1, 1}}}}};
  add("a further key for nothing", h);
  for (const Bad& b : bad) {
    const auto message = DecodeMessage(Bytes(b.header, b.body));
    EXPECT_EQ(message.status().code(), absl::StatusCode::kInvalidArgument) << b.why;
  }
}

TEST(MessageTest, KeysBeyondTheRailsAndPartialKeysAreRefused) {
  Header h = Samples()[16].first;
  std::vector<uint8_t> bytes = Bytes(h);
  for (size_t more : {1, 7, 8}) {
    std::vector<uint8_t> longer = bytes;
    longer.resize(bytes.size() + more);
    longer[8] = static_cast<uint8_t>(longer.size() - kHeaderSize);
    EXPECT_FALSE(DecodeMessage(longer).ok()) << more;
  }
}

TEST(RailMessagesTest, EncodingsAreDecodedUnchanged) {
  const std::vector<verbs::Address> rails = {*verbs::Address::Parse("10.0.0.1:7000"),
                                             *verbs::Address::Parse("[fd00::1]:65535@4792")};
  const auto got = DecodeRails(EncodeRails(rails));
  ASSERT_TRUE(got.ok()) << got.status();
  EXPECT_EQ(*got, rails);
  for (size_t count : {size_t{0}, size_t{1}, kMaxWantedWrites}) {
    std::vector<WantedWrite> wanted;
    for (size_t i = 0; i < count; ++i) wanted.push_back({i * i + 1, static_cast<uint32_t>(i)});
    const auto again = DecodeWanted(EncodeWanted(wanted));
    ASSERT_TRUE(again.ok()) << again.status();
    ASSERT_EQ(again->size(), count);
    for (size_t i = 0; i < count; ++i) {
      EXPECT_EQ((*again)[i].transfer, wanted[i].transfer);
      EXPECT_EQ((*again)[i].shares_seen, wanted[i].shares_seen);
    }
  }
}

TEST(RailMessagesTest, MalformedMessagesAreRefused) {
  const std::vector<uint8_t> rails =
      EncodeRails({*verbs::Address::Parse("10.0.0.1:7000"), *verbs::Address::Parse("10.0.1.1:7000")});
  for (size_t size : {size_t{0}, size_t{20}, size_t{39}, size_t{41}, size_t{100}}) {
    std::vector<uint8_t> bytes = rails;
    bytes.resize(size, 1);
    EXPECT_FALSE(DecodeRails(bytes).ok()) << size;
  }
  std::vector<uint8_t> bytes = rails;
  bytes[16] = bytes[17] = 0;
  EXPECT_FALSE(DecodeRails(bytes).ok()) << "no port";

  const std::vector<uint8_t> wanted = EncodeWanted({{5, 1}, {6, 2}});
  EXPECT_FALSE(DecodeWanted(absl::MakeConstSpan(wanted).subspan(1)).ok());
  EXPECT_FALSE(DecodeWanted(std::vector<uint8_t>(12 * (kMaxWantedWrites + 1), 1)).ok());
  bytes = wanted;
  bytes[12] = 5;
  EXPECT_FALSE(DecodeWanted(bytes).ok()) << "one twice";
  bytes = wanted;
  bytes[0] = 0;
  EXPECT_FALSE(DecodeWanted(bytes).ok()) << "no number";
  bytes = wanted;
  bytes[10] = 1;
  EXPECT_FALSE(DecodeWanted(bytes).ok()) << "more shares than there are";
}

TEST(NoteTest, IsPackedInThirtyTwoBits) {
  for (const Note& note : {Note{1, 0, 1}, Note{Note::kNumberMask, 15, 16}, Note{77, 3, 5}}) {
    const Note again = Note::Unpack(note.Pack());
    EXPECT_EQ(again.number, note.number);
    EXPECT_EQ(again.share, note.share);
    EXPECT_EQ(again.shares, note.shares);
    EXPECT_NE(note.Pack(), Note::kGreeting);
  }
}

// Whatever comes is either refused, or is exactly what Encode writes for what was understood.
TEST(MessageTest, ADecodedMessageEncodesToTheSameBytes) {
  base::Random random(1);
  const auto samples = Samples();
  int understood = 0;
  for (int i = 0; i < 200000; ++i) {
    const auto& [header, body] = samples[random.Below(samples.size())];
    std::vector<uint8_t> bytes = Bytes(header, body);
    for (uint64_t flips = random.Below(3) + 1; flips > 0; --flips) {
      bytes[random.Below(std::min<size_t>(bytes.size(), 80))] = static_cast<uint8_t>(random.Next());
    }
    const auto message = DecodeMessage(bytes);
    if (!message.ok()) continue;
    ++understood;
    const std::vector<uint8_t> body_again(message->body.begin(), message->body.end());
    ASSERT_EQ(Bytes(message->header, body_again), bytes);
  }
  EXPECT_GT(understood, 1000);
}

}  // namespace
}  // namespace tokamak::transport
