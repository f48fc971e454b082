#include "lib/verbs/soft/cm/mad.h"

#include <string>

#include "absl/strings/escaping.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "lib/base/bytes.h"
#include "lib/base/random.h"
#include "lib/verbs/datagrams.h"

namespace tokamak::verbs::soft {
namespace {

using base::LoadBig16;
using base::LoadBig24;
using base::LoadBig32;
using base::LoadBig64;
using ::testing::HasSubstr;

constexpr size_t kBody = 24;  // where a message's own fields begin

Address Ipv4(uint8_t last, uint16_t port = 0) {
  Address address;
  address.ip = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 10, 77, 0, last};
  address.port = port;
  return address;
}

Address Ipv6(uint8_t last, uint16_t port = 0) {
  Address address;
  address.ip = {0xfd, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, last};
  address.port = port;
  return address;
}

UserData User(absl::string_view text) {
  UserData data{};
  std::copy(text.begin(), text.end(), data.begin());
  return data;
}

ReqMad SomeReq() {
  ReqMad req;
  req.local_id = 0x01020304;
  req.service_id = ServiceId(PortSpace::kTcp, 7471);
  req.ca_guid = 0x1122334455667788;
  req.queue_pair = 0xabcdef;
  req.responder_resources = 16;
  req.initiator_depth = 7;
  req.remote_cm_timeout = 20;
  req.starting_psn = 0x654321;
  req.local_cm_timeout = 15;
  req.retry_count = 6;
  req.mtu_code = 5;
  req.rnr_retry_count = 6;
  req.max_cm_retries = 15;
  req.local_gid = Ipv4(1).ip;
  req.remote_gid = Ipv4(2).ip;
  req.local_ack_timeout = 19;
  req.private_data = JoinPrivateData({Ipv4(1, 40000), Ipv4(2)}, User("hello"));
  return req;
}

TEST(MadTest, EveryMessageHasTheClassHeader) {
  Mad mad;
  mad.transaction = 0x0102030405060708;
  mad.body = DrepMad{};
  const MadBytes bytes = EncodeMad(mad);
  EXPECT_EQ(absl::BytesToHexString(absl::string_view(reinterpret_cast<const char*>(bytes.data()), kBody)),
            "010702030000000001020304050607080016000000000000");
}

// Offsets and values as the kernel's rdma_cm exchanged them.
TEST(MadTest, ReqLiesOnTheWireAsTheKernelReadsIt) {
  const MadBytes bytes = EncodeMad({1, SomeReq()});
  const uint8_t* p = &bytes[kBody];
  EXPECT_EQ(LoadBig16(&bytes[16]), 0x10);
  EXPECT_EQ(LoadBig32(p + 0), 0x01020304u);
  EXPECT_EQ(LoadBig64(p + 8), 0x0000000001061d2fu);
  EXPECT_EQ(LoadBig64(p + 16), 0x1122334455667788u);
  EXPECT_EQ(LoadBig24(p + 32), 0xabcdefu);
  EXPECT_EQ(p[35], 16);
  EXPECT_EQ(LoadBig24(p + 36), 0u);
  EXPECT_EQ(p[39], 7);
  EXPECT_EQ(p[43], 0xa0);
  EXPECT_EQ(LoadBig24(p + 44), 0x654321u);
  EXPECT_EQ(p[47], 15 << 3 | 6);
  EXPECT_EQ(LoadBig16(p + 48), 0xffff);
  EXPECT_EQ(p[50], 0x56);
  EXPECT_EQ(p[51], 0xf0);
  EXPECT_EQ(LoadBig32(p + 52), 0xffffffffu);
  EXPECT_EQ(LoadBig32(p + 56 + 12), 0x0a4d0001u);
  EXPECT_EQ(LoadBig32(p + 72 + 12), 0x0a4d0002u);
  EXPECT_EQ(p[93], 64);
  EXPECT_EQ(p[95], 0x98);
  EXPECT_EQ(p[140], 0x00);
  EXPECT_EQ(p[141], 0x40);
  EXPECT_EQ(LoadBig16(p + 142), 40000);
  EXPECT_EQ(LoadBig64(p + 144), 0u);
  EXPECT_EQ(LoadBig32(p + 152), 0u);
  EXPECT_EQ(LoadBig32(p + 156), 0x0a4d0001u);
  EXPECT_EQ(LoadBig32(p + 172), 0x0a4d0002u);
  EXPECT_EQ(p[176], 'h');
}

TEST(MadTest, RepLiesOnTheWireAsTheKernelReadsIt) {
  RepMad rep;
  rep.local_id = 1;
  rep.remote_id = 2;
  rep.queue_pair = 0x11;
  rep.starting_psn = 0x123456;
  rep.responder_resources = 3;
  rep.initiator_depth = 4;
  rep.target_ack_delay = 15;
  rep.rnr_retry_count = 7;
  rep.ca_guid = 9;
  rep.private_data[0] = 'x';
  const MadBytes bytes = EncodeMad({1, rep});
  const uint8_t* p = &bytes[kBody];
  EXPECT_EQ(LoadBig16(&bytes[16]), 0x13);
  EXPECT_EQ(LoadBig32(p), 1u);
  EXPECT_EQ(LoadBig32(p + 4), 2u);
  EXPECT_EQ(LoadBig24(p + 12), 0x11u);
  EXPECT_EQ(LoadBig24(p + 20), 0x123456u);
  EXPECT_EQ(p[24], 3);
  EXPECT_EQ(p[25], 4);
  EXPECT_EQ(p[26], 0x78);
  EXPECT_EQ(p[27], 0xe0);
  EXPECT_EQ(LoadBig64(p + 28), 9u);
  EXPECT_EQ(p[36], 'x');
}

TEST(MadTest, RejLiesOnTheWireAsTheKernelReadsIt) {
  RejMad rej;
  rej.local_id = 1;
  rej.remote_id = 2;
  rej.rejects = MadKind::kRep;
  rej.reason = RejectReason::kConsumer;
  rej.information_length = 16;
  rej.information[0] = 0xaa;
  rej.private_data[0] = 'r';
  const MadBytes bytes = EncodeMad({1, rej});
  const uint8_t* p = &bytes[kBody];
  EXPECT_EQ(LoadBig16(&bytes[16]), 0x12);
  EXPECT_EQ(p[8], 1 << 6);
  EXPECT_EQ(p[9], 16 << 1);
  EXPECT_EQ(LoadBig16(p + 10), 28);
  EXPECT_EQ(p[12], 0xaa);
  EXPECT_EQ(p[84], 'r');
}

TEST(MadTest, DreqNamesTheReceiversQueuePair) {
  const MadBytes bytes = EncodeMad({1, DreqMad{1, 2, 0x123456}});
  EXPECT_EQ(LoadBig16(&bytes[16]), 0x15);
  EXPECT_EQ(LoadBig24(&bytes[kBody + 8]), 0x123456u);
}

TEST(MadTest, SidrReqLiesOnTheWireAsTheKernelReadsIt) {
  SidrReqMad req;
  req.request_id = 0x01020304;
  req.service_id = ServiceId(PortSpace::kUdp, 7174);
  ServiceData user{};
  user.front() = 'h';
  user.back() = 'o';
  req.private_data = JoinPrivateData({Ipv4(1, 40000), Ipv4(2)}, user);
  const MadBytes bytes = EncodeMad({1, req});
  const uint8_t* p = &bytes[kBody];
  EXPECT_EQ(LoadBig16(&bytes[16]), 0x17);
  EXPECT_EQ(LoadBig32(p), 0x01020304u);
  EXPECT_EQ(LoadBig16(p + 4), 0xffff);
  EXPECT_EQ(LoadBig16(p + 6), 0);
  EXPECT_EQ(LoadBig64(p + 8), 0x0000000001111c06u);
  EXPECT_EQ(LoadBig16(p + 16), 0x0040);
  EXPECT_EQ(LoadBig16(p + 18), 40000);
  EXPECT_EQ(LoadBig32(p + 32), 0x0a4d0001u);
  EXPECT_EQ(LoadBig32(p + 48), 0x0a4d0002u);
  EXPECT_EQ(p[52], 'h');
  EXPECT_EQ(p[231], 'o');
}

TEST(MadTest, SidrRepLiesOnTheWireAsTheKernelReadsIt) {
  SidrRepMad rep;
  rep.request_id = 0x01020304;
  rep.status = SidrStatus::kNoQueuePair;
  rep.information_length = 3;
  rep.queue_pair = 0xabcdef;
  rep.service_id = ServiceId(PortSpace::kUdp, 7174);
  rep.qkey = kServiceQkey;
  rep.information[0] = 0xaa;
  rep.private_data.front() = 'h';
  rep.private_data.back() = 'o';
  const MadBytes bytes = EncodeMad({1, rep});
  const uint8_t* p = &bytes[kBody];
  EXPECT_EQ(LoadBig16(&bytes[16]), 0x18);
  EXPECT_EQ(LoadBig32(p), 0x01020304u);
  EXPECT_EQ(p[4], 3);
  EXPECT_EQ(p[5], 3);
  EXPECT_EQ(LoadBig16(p + 6), 0);
  EXPECT_EQ(LoadBig24(p + 8), 0xabcdefu);
  EXPECT_EQ(p[11], 0);
  EXPECT_EQ(LoadBig64(p + 12), 0x0000000001111c06u);
  EXPECT_EQ(LoadBig32(p + 20), 0x01234567u);
  EXPECT_EQ(p[24], 0xaa);
  EXPECT_EQ(p[96], 'h');
  EXPECT_EQ(p[231], 'o');
}

TEST(MadTest, OnlyMessagesAboutConnectionsNameOne) {
  EXPECT_EQ(IdsOf({1, SomeReq()})->local, SomeReq().local_id);
  EXPECT_EQ(IdsOf({1, SomeReq()})->remote, 0u);
  EXPECT_EQ(IdsOf({1, DrepMad{1, 2}})->remote, 2u);
  EXPECT_FALSE(IdsOf({1, SidrReqMad()}));
  EXPECT_FALSE(IdsOf({1, SidrRepMad()}));
}

TEST(MadTest, DecodingReturnsWhatWasEncoded) {
  const absl::StatusOr<Mad> mad = DecodeMad(EncodeMad({77, SomeReq()}));
  ASSERT_TRUE(mad.ok()) << mad.status();
  EXPECT_EQ(mad->transaction, 77u);
  const ReqMad& req = std::get<ReqMad>(mad->body);
  const ReqMad sent = SomeReq();
  EXPECT_EQ(req.local_id, sent.local_id);
  EXPECT_EQ(req.service_id, sent.service_id);
  EXPECT_EQ(req.queue_pair, sent.queue_pair);
  EXPECT_EQ(req.starting_psn, sent.starting_psn);
  EXPECT_EQ(req.local_ack_timeout, sent.local_ack_timeout);
  EXPECT_EQ(req.private_data, sent.private_data);
}

// Random bodies: whatever fields the wire has come back, and encoding them again gives the same
// bytes.
TEST(MadTest, EveryKindSurvivesARoundTrip) {
  base::Random random(1);
  for (int round = 0; round < 2000; ++round) {
    for (uint8_t attribute = 0x10; attribute <= 0x18; ++attribute) {
      MadBytes bytes = EncodeMad({random.Next(), RtuMad{}});
      for (size_t i = kBody; i < bytes.size(); ++i) bytes[i] = static_cast<uint8_t>(random.Next());
      bytes[17] = attribute;
      if (attribute == 0x12) bytes[kBody + 9] = static_cast<uint8_t>(random.Below(kRejInformation + 1) << 1);
      if (attribute == 0x18) bytes[kBody + 5] = static_cast<uint8_t>(random.Below(kSidrRepInformation + 1));
      const absl::StatusOr<Mad> first = DecodeMad(bytes);
      ASSERT_TRUE(first.ok()) << first.status();
      EXPECT_EQ(first->body.index(), attribute - 0x10u);
      const MadBytes again = EncodeMad(*first);
      const absl::StatusOr<Mad> second = DecodeMad(again);
      ASSERT_TRUE(second.ok()) << second.status();
      EXPECT_EQ(EncodeMad(*second), again);
      EXPECT_EQ(LoadBig64(&again[8]), LoadBig64(&bytes[8]));
      EXPECT_EQ(LoadBig32(&again[kBody]), LoadBig32(&bytes[kBody]));
    }
  }
}

TEST(MadTest, AnotherLengthClassVersionOrMethodIsRefused) {
  const MadBytes good = EncodeMad({1, SomeReq()});
  ASSERT_TRUE(DecodeMad(good).ok());
  const std::vector<uint8_t> longer(257, 1);
  EXPECT_THAT(DecodeMad(longer).status().ToString(), HasSubstr("length 257"));
  EXPECT_THAT(DecodeMad(absl::MakeConstSpan(good).first(255)).status().ToString(), HasSubstr("length 255"));
  EXPECT_FALSE(DecodeMad({}).ok());

  const std::pair<size_t, const char*> fields[] = {
      {0, "base version"}, {1, "class"}, {2, "class version"}, {3, "method"}, {16, "attribute"}};
  for (const auto& [offset, name] : fields) {
    MadBytes bad = good;
    bad[offset] ^= 0x80;
    EXPECT_THAT(DecodeMad(bad).status().ToString(), HasSubstr(name));
  }
  for (const uint8_t attribute : {0x0f, 0x19, 0x1a, 0x01}) {
    MadBytes bad = good;
    bad[17] = attribute;
    EXPECT_THAT(DecodeMad(bad).status().ToString(), HasSubstr("attribute"));
  }
}

TEST(MadTest, RejWithMoreInformationThanFitsIsRefused) {
  MadBytes bytes = EncodeMad({1, RejMad{}});
  bytes[kBody + 9] = (kRejInformation + 1) << 1;
  EXPECT_FALSE(DecodeMad(bytes).ok());
}

TEST(MadTest, SidrRepWithMoreInformationThanFitsIsRefused) {
  MadBytes bytes = EncodeMad({1, SidrRepMad{}});
  bytes[kBody + 5] = kSidrRepInformation + 1;
  EXPECT_FALSE(DecodeMad(bytes).ok());
}

TEST(MadTest, RandomBytesDoNoHarm) {
  base::Random random(2);
  for (int round = 0; round < 20000; ++round) {
    std::vector<uint8_t> bytes(random.Chance(0.9) ? kMadLength : random.Below(400));
    for (uint8_t& byte : bytes) byte = static_cast<uint8_t>(random.Next());
    if (bytes.size() >= 18 && random.Chance(0.9)) {
      bytes[0] = 1, bytes[1] = 7, bytes[2] = 2, bytes[3] = 3, bytes[16] = 0;
      bytes[17] = static_cast<uint8_t>(0x0f + random.Below(10));
    }
    const absl::StatusOr<Mad> mad = DecodeMad(bytes);
    if (!mad.ok()) continue;
    EXPECT_TRUE(DecodeMad(EncodeMad(*mad)).ok());
    if (const auto* req = std::get_if<SidrReqMad>(&mad->body)) {
      ServiceData user;
      SplitPrivateData(req->private_data, &user).IgnoreError();
      ServicePort(PortSpace::kUdp, req->service_id).IgnoreError();
    }
    if (const auto* req = std::get_if<ReqMad>(&mad->body)) {
      UserData user;
      SplitPrivateData(req->private_data, &user).IgnoreError();
      ServicePort(PortSpace::kTcp, req->service_id).IgnoreError();
    }
  }
}

TEST(MadTest, EachPortSpaceHasServicesOfItsOwn) {
  EXPECT_EQ(ServiceId(PortSpace::kTcp, 7000), 0x0000000001060000u | 7000u);
  EXPECT_EQ(ServiceId(PortSpace::kUdp, 7000), 0x0000000001110000u | 7000u);
  for (const PortSpace space : {PortSpace::kTcp, PortSpace::kUdp}) {
    EXPECT_EQ(ServicePort(space, ServiceId(space, 7000)).value(), 7000);
    EXPECT_FALSE(ServicePort(space, 0x1000000000000000 | ServiceId(space, 7000)).ok());
  }
  EXPECT_FALSE(ServicePort(PortSpace::kTcp, ServiceId(PortSpace::kUdp, 7000)).ok());
  EXPECT_FALSE(ServicePort(PortSpace::kUdp, ServiceId(PortSpace::kTcp, 7000)).ok());
}

TEST(MadTest, PrivateDataCarriesAddressesOfBothFamilies) {
  for (const auto& [source, destination] : {std::make_pair(Ipv4(1, 5), Ipv4(2)), std::make_pair(Ipv6(1, 6), Ipv6(2))}) {
    UserData user;
    const auto data = JoinPrivateData({source, destination}, User("data"));
    EXPECT_EQ(data[1], source.is_ipv4() ? 0x40 : 0x60);
    const absl::StatusOr<IpHeader> header = SplitPrivateData(data, &user);
    ASSERT_TRUE(header.ok()) << header.status();
    EXPECT_EQ(header->source, source);
    EXPECT_EQ(header->destination, destination);
    EXPECT_EQ(user, User("data"));

    ServiceData service_user;
    const auto service_data = JoinPrivateData({source, destination}, ServiceData{1, 2, 3});
    const absl::StatusOr<IpHeader> service_header = SplitPrivateData(service_data, &service_user);
    ASSERT_TRUE(service_header.ok()) << service_header.status();
    EXPECT_EQ(service_header->source, source);
    EXPECT_EQ(service_header->destination, destination);
    EXPECT_EQ(service_user, (ServiceData{1, 2, 3}));
  }
}

TEST(MadTest, PrivateDataOfAnotherVersionIsRefused) {
  UserData user;
  auto data = JoinPrivateData({Ipv4(1), Ipv4(2)}, UserData{});
  data[0] = 0x10;
  EXPECT_FALSE(SplitPrivateData(data, &user).ok());
  data[0] = 0;
  data[1] = 0x50;
  EXPECT_FALSE(SplitPrivateData(data, &user).ok());
}

TEST(MadTest, MtuCodesAreTheSpecifications) {
  EXPECT_EQ(MtuCode(256), 1);
  EXPECT_EQ(MtuCode(4096), 5);
  EXPECT_EQ(MtuOf(3), 1024u);
  EXPECT_EQ(MtuOf(0), 0u);
  EXPECT_EQ(MtuOf(6), 0u);
}

}  // namespace
}  // namespace tokamak::verbs::soft
