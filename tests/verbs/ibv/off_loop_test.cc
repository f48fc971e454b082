// Connecting holds no loop: which thread makes the device's calls, and what is promised while one
// is under way.
#include <cerrno>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/match.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "lib/os/epoll_loop.h"
#include "lib/verbs/ibv/device.h"
#include "tests/verbs/ibv/recording_rdma_cm.h"
#include "tests/verbs/ibv/recording_verbs.h"

namespace tokamak::verbs::ibv {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
constexpr auto kEstablished = ConnectionEvent::Kind::kEstablished;
constexpr auto kUnreachable = ConnectionEvent::Kind::kUnreachable;
constexpr char kToInit[] = "ibv_modify_qp to 1", kToReceive[] = "ibv_modify_qp to 2";

constexpr base::Duration kPatience = base::Seconds(20);

class OffLoopTest : public testing::Test {
 protected:
  // A queue pair with its connection, and the connection's events.
  struct End {
    std::unique_ptr<QueuePair> queue_pair;
    std::unique_ptr<Connection> connection;
    std::vector<ConnectionEvent::Kind> events;
    absl::Status status;
    ConnectionHandler Handler() {
      return [this](const ConnectionEvent& event) {
        events.push_back(event.kind);
        status = event.status;
      };
    }
    bool up() const { return !events.empty() && events[0] == kEstablished; }
  };

  void Open(Exchange exchange) {
    RecordingVerbs::Reset();
    DeviceOptions options;
    options.name.device = RecordingVerbs::kDevice;
    options.exchange = exchange;
    options.tcp_address = *Address::Parse("127.0.0.1");
    auto device = OpenIbvDevice(options);
    ASSERT_TRUE(device.ok()) << device.status();
    device_ = *std::move(device);
    domain_ = *device_->CreateProtectionDomain();
    queue_ = *device_->CreateCompletionQueue(loop_, 1024, [] {});
    CallLog::Get().Clear();
    RecordingRdmaCm::Get().TakeThreads();
  }

  std::unique_ptr<End> Make(uint32_t receives = 0) {
    auto end = std::make_unique<End>();
    QueuePairOptions options;
    options.send_queue = options.receive_queue = queue_.get();
    options.may_be_made_later = true;
    auto made = domain_->CreateQueuePair(options);
    EXPECT_TRUE(made.ok()) << made.status();
    end->queue_pair = *std::move(made);
    const ReceiveRequest receive;
    for (uint32_t i = 0; i < receives; ++i) {
      EXPECT_EQ(end->queue_pair->PostReceive(absl::MakeConstSpan(&receive, 1)).accepted, 1u);
    }
    return end;
  }

  // Every request is accepted with a new queue pair.
  std::unique_ptr<Listener> Serve(std::vector<std::unique_ptr<End>>* accepted, uint32_t receives = 0) {
    return *device_->connection_manager().Listen(loop_, *Address::Parse("127.0.0.1:0"),
                                                 [=](std::unique_ptr<ConnectionRequest> request) {
                                                   accepted->push_back(Make(receives));
                                                   End& end = *accepted->back();
                                                   auto made = request->Accept(*end.queue_pair, {}, end.Handler());
                                                   EXPECT_TRUE(made.ok()) << made.status();
                                                   end.connection = *std::move(made);
                                                 });
  }

  void Connect(End& end, const Address& service, const ConnectOptions& options = {}) {
    auto made = device_->connection_manager().Connect(*end.queue_pair, service, options, end.Handler());
    ASSERT_TRUE(made.ok()) << made.status();
    end.connection = *std::move(made);
  }

  // `done` may be another thread's doing, which wakes nobody here.
  bool Drive(const std::function<bool()>& done) {
    base::Timer tick;
    std::function<void()> again = [&] { tick = loop_.RunAfter(base::Milliseconds(1), again); };
    again();
    return loop_.RunUntil(done, loop_.Now() + kPatience);
  }

  // The calls that one of the loops would have been held by; and all.
  static std::vector<std::string> CallsHere() {
    std::vector<std::string> calls;
    for (const CallLog::Call& call : CallLog::Get().calls()) {
      if (call.thread == std::this_thread::get_id() && call.name != "ibv_post_recv") calls.push_back(call.name);
    }
    return calls;
  }
  static size_t CountCalls(const std::string& name) {
    size_t count = 0;
    for (const CallLog::Call& call : CallLog::Get().calls()) count += call.name == name ? 1 : 0;
    return count;
  }

  os::EpollLoop loop_;
  std::unique_ptr<Device> device_;
  std::unique_ptr<ProtectionDomain> domain_;
  std::unique_ptr<CompletionQueue> queue_;
};

TEST_F(OffLoopTest, FiftyPeersConnectWithoutACallOfTheDeviceOnTheLoop) {
  constexpr size_t kPeers = 50;
  Open(Exchange::kTcp);
  std::vector<std::unique_ptr<End>> actives, passives;
  const auto listener = Serve(&passives);
  for (size_t i = 0; i < kPeers; ++i) {
    actives.push_back(Make());
    Connect(*actives.back(), listener->address());
  }
  const auto all_up = [](const auto& ends) {
    size_t up = 0;
    for (const auto& end : ends) up += end->up() ? 1 : 0;
    return up == kPeers;
  };
  EXPECT_TRUE(Drive([&] { return all_up(actives) && all_up(passives); }));
  EXPECT_THAT(CallsHere(), IsEmpty());
  for (const char* call : {"ibv_create_qp", kToInit, kToReceive, "ibv_modify_qp to 3"}) {
    EXPECT_EQ(CountCalls(call), 2 * kPeers) << call;
  }
}

TEST_F(OffLoopTest, FiftyPeersConnectByRdmaCmWithoutACallOfTheDeviceOnTheLoop) {
  constexpr size_t kPeers = 50;
  RecordingRdmaCm::Get().SetAnswer(RDMA_CM_EVENT_CONNECT_RESPONSE);
  RecordingRdmaCm::Get().RefusePaths(0);
  Open(Exchange::kRdmaCm);
  Address service = device_->address();
  service.port = 7000;
  std::vector<std::unique_ptr<End>> ends;
  for (size_t i = 0; i < kPeers; ++i) {
    ends.push_back(Make());
    Connect(*ends.back(), service);
  }
  EXPECT_TRUE(Drive([&] {
    for (const auto& end : ends) {
      if (end->events.empty()) return false;
    }
    return true;
  }));
  for (const auto& end : ends) EXPECT_THAT(end->events, ElementsAre(kEstablished)) << end->status;
  EXPECT_THAT(CallsHere(), IsEmpty());
  const std::map<std::thread::id, size_t> threads = RecordingRdmaCm::Get().TakeThreads();
  EXPECT_EQ(threads.count(std::this_thread::get_id()), 0u);
  size_t calls = 0;
  for (const auto& [thread, count] : threads) calls += count;
  EXPECT_GE(calls, 6 * kPeers);
}

TEST_F(OffLoopTest, TheLoopGoesOnWhileACallIsUnderWay) {
  Open(Exchange::kTcp);
  std::vector<std::unique_ptr<End>> passives;
  const auto listener = Serve(&passives);
  for (const char* held : {"ibv_create_qp", kToInit, kToReceive}) {
    SCOPED_TRACE(held);
    CallLog::Get().Clear();
    CallLog::Get().Hold(held, std::this_thread::get_id());
    const auto active = Make();
    Connect(*active, listener->address());
    EXPECT_TRUE(Drive([] { return CallLog::Get().holds(); }));
    int turns = 0;
    base::Timer turn;
    std::function<void()> next = [&] { turn = loop_.Post([&] { ++turns < 1000 ? next() : void(); }); };
    next();
    EXPECT_TRUE(Drive([&] { return turns == 1000; }));
    EXPECT_THAT(active->events, IsEmpty());
    CallLog::Get().Release();
    EXPECT_TRUE(Drive([&] { return active->up(); }));
    EXPECT_THAT(CallsHere(), IsEmpty());
  }
}

TEST_F(OffLoopTest, AnAttemptEndsByItsDeadlineHoweverBusyTheDeviceIs) {
  Open(Exchange::kTcp);
  std::vector<std::unique_ptr<End>> passives;
  const auto listener = Serve(&passives);
  CallLog::Get().Hold("ibv_create_qp", std::this_thread::get_id());
  const auto active = Make();
  ConnectOptions options;
  options.deadline = base::Milliseconds(20);
  Connect(*active, listener->address(), options);
  EXPECT_TRUE(Drive([&] { return !active->events.empty(); }));
  EXPECT_THAT(active->events, ElementsAre(kUnreachable));
  EXPECT_TRUE(absl::IsDeadlineExceeded(active->status)) << active->status;
  CallLog::Get().Release();
  // Nobody was asked: the next attempt is the first that the listener hears of.
  const auto next = Make();
  Connect(*next, listener->address());
  EXPECT_TRUE(Drive([&] { return next->up() && !passives.empty() && passives[0]->up(); }));
  EXPECT_EQ(passives.size(), 1u);
  EXPECT_THAT(active->events, ElementsAre(kUnreachable));
}

// The promise of verbs.h: no byte moves when the destructor has returned.
TEST_F(OffLoopTest, DroppingWaitsForTheCallUnderWayAndNoneFollows) {
  Open(Exchange::kTcp);
  std::vector<std::unique_ptr<End>> passives;
  const auto listener = Serve(&passives);
  for (const char* held : {"ibv_create_qp", kToInit, kToReceive, "ibv_modify_qp to 3"}) {
    SCOPED_TRACE(held);
    CallLog::Get().Clear();
    CallLog::Get().Hold(held, std::this_thread::get_id());
    auto active = Make();
    Connect(*active, listener->address());
    // Whichever side's queue pair it is that the call is made for.
    EXPECT_TRUE(Drive([] { return CallLog::Get().holds(); }));
    std::thread releases([] {
      for (int i = 0; i < 10'000; ++i) std::this_thread::yield();  // time enough to do it wrong
      CallLog::Get().Release();
    });
    active->connection.reset();
    active.reset();
    passives.clear();
    EXPECT_EQ(CountCalls("ibv_destroy_qp"), CountCalls("ibv_create_qp"));
    EXPECT_EQ(CallLog::Get().destroyed_in_use(), 0);
    releases.join();
    // The thread has gone past all of it when it is asked again.
    auto last = Make();
    Connect(*last, listener->address());
    EXPECT_TRUE(Drive([&] { return last->up(); }));
    passives.clear();
  }
}

TEST_F(OffLoopTest, ReceivesAreThereBeforeThePeerHearsOfTheQueuePair) {
  Open(Exchange::kTcp);
  std::vector<std::unique_ptr<End>> passives;
  const auto listener = Serve(&passives, 3);
  const auto active = Make(3);
  EXPECT_EQ(RecordingVerbs::Get().receives.size(), 0u);
  Connect(*active, listener->address());
  EXPECT_TRUE(Drive([&] { return active->up() && !passives.empty() && passives[0]->up(); }));
  EXPECT_EQ(RecordingVerbs::Get().receives.size(), 6u);
  size_t posts = 0, walks = 0;
  for (const CallLog::Call& call : CallLog::Get().calls()) {
    posts += call.name == "ibv_post_recv" ? 1 : 0;
    if (call.name != kToReceive) continue;
    EXPECT_EQ(posts, 2u) << "a batch for each";
    ++walks;
  }
  EXPECT_EQ(walks, 2u);
}

TEST_F(OffLoopTest, AQueuePairThatCannotBeMadeIsReportedByItsConnection) {
  Open(Exchange::kTcp);
  RecordingVerbs::Get().create_error = ENOMEM;
  const auto end = Make(1);
  Connect(*end, *Address::Parse("127.0.0.1:7000"));
  EXPECT_TRUE(Drive([&] { return !end->events.empty(); }));
  EXPECT_THAT(end->events, ElementsAre(kUnreachable));
  EXPECT_TRUE(absl::StrContains(end->status.message(), "ibv_create_qp")) << end->status;
  EXPECT_EQ(end->queue_pair->state(), QueuePairState::kError);
  const ReceiveRequest receive;
  EXPECT_EQ(end->queue_pair->PostReceive(absl::MakeConstSpan(&receive, 1)).accepted, 0u);
}

TEST_F(OffLoopTest, AskingForTheNumberMakesTheQueuePairHere) {
  Open(Exchange::kTcp);
  const auto end = Make(1);
  EXPECT_NE(end->queue_pair->number(), 0u);
  EXPECT_EQ(CountCalls("ibv_create_qp"), 1u);
  EXPECT_TRUE(Drive([&] { return end->queue_pair->made(); }));
  EXPECT_EQ(RecordingVerbs::Get().receives.size(), 1u);
  EXPECT_EQ(CountCalls("ibv_create_qp"), 1u);
}

}  // namespace
}  // namespace tokamak::verbs::ibv
