#include "tests/interop/pingpong_peer.h"

#include <string>
#include <thread>

#include "tests/interop/two_peers.h"

namespace tokamak::interop {
namespace {

class PingpongPeerTest : public TwoPeers {
 protected:
  // A whole conversation from device 1 to device 0.
  void Converse(const PingpongOptions& server_options, const PingpongOptions& client_options) {
    auto door = Door::Open(*verbs::Address::Parse("127.0.0.1"), patience);
    ASSERT_TRUE(door.ok()) << door.status();
    std::thread other([&] {
      served = Run(0, server_options, [&](PingpongPeer& peer) -> absl::Status {
        auto tcp = door->Admit();
        return tcp.ok() ? peer.Serve(*tcp) : tcp.status();
      });
    });
    verbs::Address address = *verbs::Address::Parse("127.0.0.1");
    address.port = door->port();
    asked = Run(1, client_options, [&](PingpongPeer& peer) -> absl::Status {
      auto tcp = Knock(address, patience);
      return tcp.ok() ? peer.Ask(*tcp) : tcp.status();
    });
    other.join();
  }

  base::Duration patience = base::Seconds(30);
  absl::Status served;
  absl::Status asked;

 private:
  template <typename Part>
  absl::Status Run(int index, const PingpongOptions& options, const Part& part) {
    os::EpollLoop loop;
    LinkOptions link_options;
    link_options.patience = patience;
    auto link = Link::Open(loop, device(index), link_options);
    if (!link.ok()) return link.status();
    auto peer = PingpongPeer::Prepare(**link, device(index).address(), options);
    return peer.ok() ? part(**peer) : peer.status();
  }
};

TEST_F(PingpongPeerTest, MessagesOfEitherEndAreEchoed) {
  for (const uint32_t size : {1, 1024, 1025, 4096, 70'000}) {
    PingpongOptions options;
    options.count = 40;
    options.size = size;
    PingpongOptions echoing = options;
    echoing.echo = true;
    for (const bool server_echoes : {false, true}) {
      Converse(server_echoes ? echoing : options, server_echoes ? options : echoing);
      EXPECT_TRUE(served.ok()) << size << ": " << served;
      EXPECT_TRUE(asked.ok()) << size << ": " << asked;
    }
  }
}

TEST_F(PingpongPeerTest, WrongBytesAreNoticed) {
  PingpongOptions options;
  options.count = 2;
  patience = base::Seconds(2);  // nobody tells the client that the server is gone
  Converse(options, options);   // neither is an echo
  EXPECT_EQ(served.code(), absl::StatusCode::kDataLoss) << served;
}

TEST(IntroductionTest, AnIntroductionIsWrittenAsByIbvRcPingpong) {
  Introduction introduction;
  introduction.number = 0x11;
  introduction.psn = 0xabcdef;
  introduction.address = *verbs::Address::Parse("10.77.0.1");
  EXPECT_EQ(ToText(introduction), "0000:000011:abcdef:00000000000000000000ffff0a4d0001");
  const auto again = ParseIntroduction(ToText(introduction) + std::string(1, '\0'));
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ(again->number, 0x11);
  EXPECT_EQ(again->psn, 0xabcdef);
  EXPECT_EQ(again->address, introduction.address);
}

TEST(IntroductionTest, OtherTextIsRefused) {
  for (const char* text :
       {"", "0000:000011:abcdef", "0000:000011:abcdef:00", "0000:1000000:abcdef:00000000000000000000ffff0a4d0001",
        "0000:000011:1abcdef:00000000000000000000ffff0a4d0001", "0000:00zz11:abcdef:00000000000000000000ffff0a4d0001",
        "0000:000011:abcdef:0000000000000000000gffff0a4d0001"}) {
    EXPECT_FALSE(ParseIntroduction(text).ok()) << text;
  }
}

}  // namespace
}  // namespace tokamak::interop
