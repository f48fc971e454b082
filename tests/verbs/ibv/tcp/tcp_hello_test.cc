// The messages of --cm tcp: what is written is read, and nothing that is not one is taken for one.
#include "lib/verbs/ibv/tcp/tcp_hello.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "lib/base/random.h"

namespace tokamak::verbs::ibv {
namespace {

TcpHello Sample() {
  TcpHello hello;
  hello.kind = TcpHello::Kind::kAccept;
  hello.link = LinkKind::kInfiniBand;
  hello.queue_pair_number = 0x123456;
  hello.psn = 0xabcdef;
  hello.port.lid = 0x1234;
  for (size_t i = 0; i < hello.port.gid.size(); ++i) hello.port.gid[i] = static_cast<uint8_t>(i + 1);
  hello.path_mtu = 2048;
  hello.reads_served = 16;
  hello.reads_outstanding = 3;
  const std::vector<uint8_t> bytes(40, 0x5a);
  hello.SetPrivateData(bytes);
  return hello;
}

void ExpectSame(const TcpHello& a, const TcpHello& b) {
  EXPECT_EQ(a.kind, b.kind);
  EXPECT_EQ(a.link, b.link);
  EXPECT_EQ(a.queue_pair_number, b.queue_pair_number);
  EXPECT_EQ(a.psn, b.psn);
  EXPECT_EQ(a.port.lid, b.port.lid);
  EXPECT_EQ(a.port.gid, b.port.gid);
  EXPECT_EQ(a.path_mtu, b.path_mtu);
  EXPECT_EQ(a.reads_served, b.reads_served);
  EXPECT_EQ(a.reads_outstanding, b.reads_outstanding);
  EXPECT_EQ(a.private_data, b.private_data);
  EXPECT_EQ(a.private_data_size, b.private_data_size);
}

TEST(TcpHelloTest, WrittenMessagesAreReadBack) {
  const auto read = DecodeTcpHello(EncodeTcpHello(Sample()));
  ASSERT_TRUE(read.ok()) << read.status();
  ExpectSame(*read, Sample());
}

// As docs/tcp_cm.md draws it.
TEST(TcpHelloTest, TheBytesMatchTheDrawing) {
  const TcpHelloBytes bytes = EncodeTcpHello(Sample());
  const std::vector<uint8_t> head(bytes.begin(), bytes.begin() + 42);
  EXPECT_THAT(head, testing::ElementsAre('T', 'K', 'C', 'M', 1, 2, 0, 40,           //
                                         0x56, 0x34, 0x12, 0, 0xef, 0xcd, 0xab, 0,  //
                                         0x34, 0x12, 0x00, 0x08, 16, 3, 0, 0,       //
                                         1, 2, 3, 4, 5, 6, 7, 8,                    //
                                         9, 10, 11, 12, 13, 14, 15, 16,             //
                                         0x5a, 0x5a));
}

TEST(TcpHelloTest, EveryFieldIsChecked) {
  const TcpHelloBytes good = EncodeTcpHello(Sample());
  const std::pair<size_t, uint8_t> kWrong[] = {
      {0, 0},                   // mark
      {4, 0},         {4, 2},   // version
      {5, 0},         {5, 5},   // kind
      {6, 2},         {6, 9},   // link: iWARP is not connected by hand
      {7, 57},                  // private data
      {11, 1},                  // number beyond 24 bits
      {15, 1},                  // PSN beyond 24 bits
      {19, 0x10 + 8},           // path MTU
      {22, 1},        {23, 1},  // reserved
      {95, 1},                  // behind the private data
  };
  for (const auto& [at, value] : kWrong) {
    TcpHelloBytes bytes = good;
    bytes[at] = value;
    EXPECT_TRUE(absl::IsInvalidArgument(DecodeTcpHello(bytes).status())) << "byte " << at << " = " << int{value};
  }
}

TEST(TcpHelloTest, RandomBytesAreRefusedOrEncodeToThemselves) {
  base::Random random(7);
  size_t read = 0;
  for (int round = 0; round < 20000; ++round) {
    TcpHelloBytes bytes = EncodeTcpHello(Sample());
    const uint64_t changes = random.Below(4);
    for (uint64_t i = 0; i < changes; ++i) bytes[random.Below(bytes.size())] = static_cast<uint8_t>(random.Next());
    if (round % 4 == 0) {
      for (uint8_t& byte : bytes) byte = static_cast<uint8_t>(random.Next());
    }
    const auto hello = DecodeTcpHello(bytes);
    if (!hello.ok()) continue;
    ++read;
    EXPECT_EQ(EncodeTcpHello(*hello), bytes);
  }
  EXPECT_GT(read, 1000u);
}

}  // namespace
}  // namespace tokamak::verbs::ibv
