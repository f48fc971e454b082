// Software NICs at UDP ports other than RoCE's: whole devices, on real sockets of this machine's
// loopback.
#include <memory>
#include <string>
#include <utility>

#include "gtest/gtest.h"
#include "lib/base/trace.h"
#include "lib/os/epoll_loop.h"
#include "lib/verbs/soft/device.h"
#include "lib/verbs/soft/udp/udp_fabric.h"

namespace tokamak::verbs::soft {
namespace {

constexpr uint16_t kPortsService = 7000;

// A device of soft:udp with one queue pair.
class Host final {
 public:
  Host(os::EpollLoop& loop, const std::string& name) : loop_(loop), fabric_(loop) {
    DeviceOptions options;
    options.name = name;
    options.address = ParseUdpDevice(name)->address;
    device_ = *OpenSoftDevice(loop, fabric_, trace_, options);
    domain_ = *device_->CreateProtectionDomain();
    completions_ = *device_->CreateCompletionQueue(loop, 16, [] {});
    region_ = *domain_->RegisterMemory({&memory_, 1}, kLocalWrite | kRemoteWrite);
    QueuePairOptions with;
    with.send_queue = with.receive_queue = completions_.get();
    with.remote_access = kRemoteWrite;
    queue_pair_ = *domain_->CreateQueuePair(with);
  }

  Device& device() { return *device_; }
  const uint8_t& memory() const { return memory_; }

  // Accepts the one who asks.
  void Serve() {
    Address service = device_->address();
    service.port = kPortsService;
    listener_ =
        *device_->connection_manager().Listen(loop_, service, [this](std::unique_ptr<ConnectionRequest> request) {
          asker_ = request->peer();
          connection_ = *request->Accept(*queue_pair_, {}, [this](const ConnectionEvent& event) { Take(event); });
        });
  }
  const Address& service() const { return listener_->address(); }
  const Address& asker() const { return asker_; }

  absl::Status Connect(const Address& service) {
    auto made = device_->connection_manager().Connect(*queue_pair_, service, {},
                                                      [this](const ConnectionEvent& event) { Take(event); });
    if (made.ok()) connection_ = *std::move(made);
    return made.status();
  }
  bool up() const { return up_; }

  void Write(uint8_t byte, const Host& to) {
    memory_ = byte;
    const Sge sge{&memory_, 1, region_->lkey()};
    SendRequest write;
    write.opcode = Opcode::kWrite;
    write.flags = kSignaled;
    write.sges = {&sge, 1};
    write.remote_address = reinterpret_cast<uint64_t>(&to.memory_);
    write.rkey = to.region_->rkey();
    ASSERT_TRUE(queue_pair_->PostSend({&write, 1}).ok());
  }
  bool Completed() {
    Completion completion;
    if (completions_->Poll({&completion, 1}) == 0) return false;
    EXPECT_EQ(completion.status, CompletionStatus::kSuccess);
    return true;
  }

 private:
  void Take(const ConnectionEvent& event) {
    up_ = event.kind == ConnectionEvent::Kind::kEstablished;
    if (!up_) ADD_FAILURE() << event.status;
  }

  os::EpollLoop& loop_;
  base::NoTrace trace_;
  UdpFabric fabric_;
  uint8_t memory_ = 0;
  bool up_ = false;
  Address asker_;
  std::unique_ptr<SoftDevice> device_;
  std::unique_ptr<ProtectionDomain> domain_;
  std::unique_ptr<CompletionQueue> completions_;
  std::unique_ptr<MemoryRegion> region_;
  std::unique_ptr<QueuePair> queue_pair_;
  std::unique_ptr<Listener> listener_;
  std::unique_ptr<Connection> connection_;
};

class UdpPortsTest : public testing::Test {
 protected:
  // Connects `a` to `b` at `service` and writes in both directions.
  void Meet(Host& a, Host& b, const Address& service) {
    ASSERT_TRUE(a.Connect(service).ok());
    ASSERT_TRUE(WaitFor([&] { return a.up() && b.up(); })) << "no connection to " << service.ToString();
    a.Write(1, b);
    ASSERT_TRUE(WaitFor([&] { return a.Completed(); }));
    EXPECT_EQ(b.memory(), 1);
    b.Write(2, a);
    ASSERT_TRUE(WaitFor([&] { return b.Completed(); }));
    EXPECT_EQ(a.memory(), 2);
  }

  bool WaitFor(const std::function<bool()>& done) { return loop_.RunUntil(done, loop_.Now() + base::Seconds(10)); }

  static Address Parse(const std::string& text) { return *Address::Parse(text); }

  os::EpollLoop loop_;
};

// The devices that `tok up --udp-port 4830` starts.
TEST_F(UdpPortsTest, DevicesAtTheSameOtherPortMeetWithoutNamingIt) {
  Host a(loop_, "soft:udp@127.0.0.2:4830");
  Host b(loop_, "soft:udp@127.0.0.3:4830");
  b.Serve();
  Meet(a, b, Parse("127.0.0.3:7000"));
}

TEST_F(UdpPortsTest, DevicesOnOneAddressMeetThroughTheAddressesThatTheyGive) {
  Host a(loop_, "soft:udp@127.0.0.2:4830");
  Host b(loop_, "soft:udp@127.0.0.2:4831");
  b.Serve();
  EXPECT_EQ(b.service(), Parse("127.0.0.2:7000@4831"));
  Meet(a, b, b.service());
  EXPECT_EQ(b.asker().udp_port, 4830);
}

TEST_F(UdpPortsTest, ADeviceAtRocesPortAndOneAtAnotherMeetEitherWay) {
  for (const bool other_asks : {false, true}) {
    Host usual(loop_, "soft:udp@127.0.0.2");
    Host other(loop_, "soft:udp@127.0.0.2:4830");
    Host& asks = other_asks ? other : usual;
    Host& serves = other_asks ? usual : other;
    serves.Serve();
    Meet(asks, serves, Parse(other_asks ? "127.0.0.2:7000@4791" : "127.0.0.2:7000@4830"));
  }
}

TEST_F(UdpPortsTest, OnlyAPortThatIsNotRocesIsPartOfADevicesAddress) {
  Host usual(loop_, "soft:udp@127.0.0.2:4791");
  Host other(loop_, "soft:udp@127.0.0.2:4830");
  EXPECT_EQ(usual.device().address(), Parse("127.0.0.2"));
  EXPECT_EQ(other.device().address(), Parse("127.0.0.2@4830"));
}

TEST_F(UdpPortsTest, AListenerHasTheUdpPortOfItsDevice) {
  Host host(loop_, "soft:udp@127.0.0.2:4830");
  const auto listen = [&](const std::string& address) {
    return host.device().connection_manager().Listen(loop_, Parse(address), [](auto) {}).status().code();
  };
  EXPECT_EQ(listen("127.0.0.2:7000@4831"), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(listen("127.0.0.2:7000@4830"), absl::StatusCode::kOk);
  EXPECT_EQ(listen("127.0.0.2:7000"), absl::StatusCode::kOk);
}

}  // namespace
}  // namespace tokamak::verbs::soft
