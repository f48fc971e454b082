// Queue pairs that ring are answered once each, in the order in which they rang.
#include "lib/verbs/soft/state/doorbells.h"

#include <atomic>
#include <functional>
#include <memory>
#include <thread>
#include <vector>

#include "gmock/gmock.h"
#include "tests/verbs/soft/one_core.h"

namespace tokamak::verbs::soft {
namespace {

using testing::ElementsAre;

// A queue pair that only answers its doorbell.
class RingingCore final : public QueuePairCore {
 public:
  RingingCore(NicState& nic_state, QueuePairParts parts, std::function<void()> answered)
      : QueuePairCore(nic_state, std::move(parts)), answered_(std::move(answered)) {}

  void Answer() override { answered_(); }
  void Fail(CompletionStatus, CompletionStatus, uint32_t) override {}
  void ForgetCompletions() override {}
  void Receive(const Packet&) override {}
  bool Emit() override { return false; }

 private:
  const std::function<void()> answered_;
};

class DoorbellsTest : public OneCore {
 protected:
  std::unique_ptr<RingingCore> Make(std::function<void()> answered) {
    QueuePairParts parts;
    parts.send_ring = parts.receive_ring = ring_;
    parts.max_receive_requests = parts.max_sges = 1;
    return std::make_unique<RingingCore>(nic_state_, std::move(parts), std::move(answered));
  }
  std::unique_ptr<RingingCore> Make(int name) {
    return Make([this, name] { answered_.push_back(name); });
  }

  Doorbells doorbells_;
  std::vector<int> answered_;
};

TEST_F(DoorbellsTest, TheyAreAnsweredAsTheyRang) {
  const auto one = Make(1), two = Make(2), three = Make(3);
  for (RingingCore* core : {two.get(), three.get(), one.get()}) EXPECT_TRUE(doorbells_.Ring(*core));
  doorbells_.Answer();
  EXPECT_THAT(answered_, ElementsAre(2, 3, 1));
}

TEST_F(DoorbellsTest, RingingAgainBeforeTheAnswerChangesNothing) {
  const auto one = Make(1), two = Make(2);
  EXPECT_TRUE(doorbells_.Ring(*one));
  EXPECT_TRUE(doorbells_.Ring(*two));
  EXPECT_FALSE(doorbells_.Ring(*one));
  doorbells_.Answer();
  doorbells_.Answer();
  EXPECT_THAT(answered_, ElementsAre(1, 2));
}

TEST_F(DoorbellsTest, OneThatRingsWhileItAnswersIsAnsweredNextTime) {
  std::unique_ptr<RingingCore> one;
  one = Make([&] {
    answered_.push_back(1);
    if (answered_.size() > 1) return;
    EXPECT_TRUE(doorbells_.Ring(*one));
  });
  doorbells_.Ring(*one);
  doorbells_.Answer();
  EXPECT_THAT(answered_, ElementsAre(1));
  doorbells_.Answer();
  EXPECT_THAT(answered_, ElementsAre(1, 1));
}

TEST_F(DoorbellsTest, NoRingOfManyThreadsIsLost) {
  constexpr int kThreads = 4, kRounds = 2000;
  std::vector<std::unique_ptr<RingingCore>> cores;
  std::vector<int> seen(kThreads);
  std::vector<std::atomic<int>> posted(kThreads);
  for (int i = 0; i < kThreads; ++i) cores.push_back(Make([&, i] { seen[i] = posted[i].load(); }));
  std::vector<std::thread> owners;
  for (int i = 0; i < kThreads; ++i) {
    owners.emplace_back([&, i] {
      for (int round = 1; round <= kRounds; ++round) {
        posted[i] = round;
        doorbells_.Ring(*cores[i]);
      }
    });
  }
  for (int i = 0; i < kRounds; ++i) doorbells_.Answer();
  for (std::thread& owner : owners) owner.join();
  doorbells_.Answer();
  EXPECT_THAT(seen, testing::Each(kRounds));
}

}  // namespace
}  // namespace tokamak::verbs::soft
