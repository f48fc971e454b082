#include "lib/cli/doctor/peer_desk.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <sys/socket.h>

#include "lib/base/random.h"
#include "lib/os/loop_thread.h"

namespace tokamak::cli::doctor {
namespace {

constexpr base::Duration kDeskPatience = base::Seconds(20);

PeerHello Hello() {
  PeerHello hello;
  hello.device = "ibv:rxe1";
  hello.service = *verbs::Address::Parse("10.0.0.2:4711");
  hello.active_mtu = 4096;
  hello.netdev_mtu = 9000;
  return hello;
}

// A TCP server that says `words` to whoever connects, or nothing at all when they are empty.
class Stranger final {
 public:
  explicit Stranger(std::string words) : thread_({"stranger"}, os::Detection::Event()), words_(std::move(words)) {
    socket_ = os::FileDescriptor(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_in name = {};
    name.sin_family = AF_INET;
    name.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    EXPECT_EQ(bind(socket_.get(), reinterpret_cast<sockaddr*>(&name), sizeof(name)), 0);
    EXPECT_EQ(listen(socket_.get(), 4), 0);
    socklen_t size = sizeof(name);
    EXPECT_EQ(getsockname(socket_.get(), reinterpret_cast<sockaddr*>(&name), &size), 0);
    port_ = ntohs(name.sin_port);
    thread_.CallOn([this] { watch_ = thread_.loop().Watch(socket_.get(), EPOLLIN, [this](uint32_t) { Serve(); }); });
  }
  ~Stranger() {
    thread_.CallOn([this] { watch_.Reset(); });
  }

  uint16_t port() const { return port_; }

 private:
  void Serve() {
    os::FileDescriptor caller(accept4(socket_.get(), nullptr, nullptr, SOCK_CLOEXEC));
    if (words_.empty()) {
      silent_ = std::move(caller);
      return;
    }
    EXPECT_EQ(send(caller.get(), words_.data(), words_.size(), MSG_NOSIGNAL), static_cast<ssize_t>(words_.size()));
  }

  os::LoopThread thread_;
  const std::string words_;
  os::FileDescriptor socket_;
  os::FileDescriptor silent_;
  uint16_t port_ = 0;
  os::FdWatch watch_;
};

TEST(PeerDeskTest, WhoAsksHearsWhereTheDeviceIs) {
  os::LoopThread thread({"desk"}, os::Detection::Event());
  std::unique_ptr<PeerDesk> desk;
  thread.CallOn([&] { desk = *PeerDesk::Open(thread.loop(), 0, Hello()); });
  for (const char* host : {"127.0.0.1", "localhost"}) {
    const auto hello = AskPeer(host, desk->port(), kDeskPatience);
    ASSERT_TRUE(hello.ok()) << host << ": " << hello.status();
    EXPECT_EQ(hello->device, "ibv:rxe1");
    EXPECT_EQ(hello->service.ToString(), "10.0.0.2:4711");
    EXPECT_EQ(hello->active_mtu, 4096u);
    EXPECT_EQ(hello->netdev_mtu, 9000u);
  }
  thread.CallOn([&] { desk.reset(); });
}

TEST(PeerDeskTest, APortThatIsTakenIsSaid) {
  os::EpollLoop loop;
  const auto desk = PeerDesk::Open(loop, 0, Hello());
  ASSERT_TRUE(desk.ok()) << desk.status();
  EXPECT_EQ(PeerDesk::Open(loop, (*desk)->port(), Hello()).status().code(), absl::StatusCode::kAlreadyExists);
}

TEST(PeerDeskTest, NobodyThereIsUnavailable) {
  uint16_t port = 0;
  { port = Stranger("x").port(); }
  EXPECT_EQ(AskPeer("127.0.0.1", port, kDeskPatience).status().code(), absl::StatusCode::kUnavailable);
}

TEST(PeerDeskTest, AHostWithoutANameIsNotFound) {
  EXPECT_EQ(AskPeer("no host", 1, kDeskPatience).status().code(), absl::StatusCode::kNotFound);
}

TEST(PeerDeskTest, ASilentPeerEndsAtTheDeadline) {
  const Stranger silent("");
  EXPECT_EQ(AskPeer("127.0.0.1", silent.port(), base::Milliseconds(200)).status().code(),
            absl::StatusCode::kDeadlineExceeded);
}

TEST(PeerDeskTest, AStrangersWordsAreRefused) {
  for (const std::string& words : {std::string("SSH-2.0-OpenSSH_9.2\r\n"), std::string(2 * kMaxHello, 'x')}) {
    const Stranger stranger(words);
    const auto hello = AskPeer("127.0.0.1", stranger.port(), kDeskPatience);
    EXPECT_EQ(hello.status().code(), absl::StatusCode::kFailedPrecondition) << hello.status();
  }
}

TEST(PeerHelloTest, SaysHowConnectionsAreMade) {
  PeerHello hello = Hello();
  EXPECT_FALSE(PeerHello::Decode(hello.Encode())->by_tcp);
  hello.by_tcp = true;
  EXPECT_TRUE(PeerHello::Decode(hello.Encode())->by_tcp);
}

TEST(PeerHelloTest, OnlyAHelloWithAServiceIsAccepted) {
  EXPECT_TRUE(PeerHello::Decode(Hello().Encode()).ok());
  for (const char* text :
       {"", "7", "[]", "{}", R"({"tokamak_doctor":2,"service":"10.0.0.2:1"})", R"({"tokamak_doctor":1})",
        R"({"tokamak_doctor":1,"service":"10.0.0.2"})", R"({"tokamak_doctor":1,"service":7})",
        R"({"tokamak_doctor":"1","service":"10.0.0.2:1"})", R"({"tokamak_doctor":1,"service":"host:1"})"}) {
    EXPECT_FALSE(PeerHello::Decode(text).ok()) << text;
  }
}

TEST(PeerHelloTest, ADeviceWhoseNameWouldLeadATerminalAstrayIsNone) {
  PeerHello hello = Hello();
  for (const std::string& name : {std::string("ibv:\x1b[2J"), std::string("two words"), std::string(200, 'x')}) {
    hello.device = name;
    EXPECT_FALSE(PeerHello::Decode(hello.Encode()).ok()) << testing::PrintToString(name);
  }
}

TEST(PeerHelloTest, NumbersThatAreNoneCountAsUnknown) {
  const auto hello = PeerHello::Decode(
      R"({"tokamak_doctor":1,"service":"10.0.0.2:1","active_mtu":-4096,"netdev_mtu":99999999999,"device":7})");
  ASSERT_TRUE(hello.ok());
  EXPECT_EQ(hello->active_mtu, 0u);
  EXPECT_EQ(hello->netdev_mtu, UINT32_MAX);
  EXPECT_EQ(hello->device, "");
}

TEST(PeerHelloTest, DamagedWordsAreRefusedOrReadButNeverBreakAnything) {
  base::Random random(1);
  const std::string whole = Hello().Encode();
  for (int round = 0; round < 5000; ++round) {
    std::string text = whole.substr(0, random.Below(whole.size() + 1));
    for (uint64_t i = random.Below(4); i > 0 && !text.empty(); --i) {
      text[random.Below(text.size())] = static_cast<char>(random.Below(256));
    }
    const auto hello = PeerHello::Decode(text);
    if (hello.ok()) {
      EXPECT_NE(hello->service.port, 0);
    }
  }
}

}  // namespace
}  // namespace tokamak::cli::doctor
