// Two software NICs over a fabric that loses nothing: every kind of request, end to end.
#include "lib/verbs/soft/device.h"

#include <cstring>

#include "gtest/gtest.h"
#include "sim/network/loopback_fabric.h"
#include "tests/verbs/soft/two_nics.h"

namespace tokamak::verbs::soft {
namespace {

class DeviceTest : public TwoNics {
 protected:
  DeviceTest() { Open(fabric_); }

  sim::LoopbackFabric fabric_;
};

TEST_F(DeviceTest, TheQueuesOfAQueuePairBelongToOneLoop) {
  sim::SimLoop other(scheduler_);
  const auto elsewhere = *a_.device->CreateCompletionQueue(other, 16, [] {});
  QueuePairOptions options;
  options.send_queue = a_.completions.get();
  options.receive_queue = elsewhere.get();
  const auto refused = a_.domain->CreateQueuePair(options);
  EXPECT_TRUE(absl::IsInvalidArgument(refused.status())) << refused.status();
}

TEST_F(DeviceTest, SendArrivesInThePostedReceive) {
  Connect();
  PostReceive(b_, b_.Piece(0, 100), 7);
  Post(a_, Request(Opcode::kSend, a_.Piece(1000, 50), 9));
  Run();
  const auto sent = a_.Poll();
  ASSERT_EQ(sent.size(), 1u);
  EXPECT_EQ(sent[0].status, CompletionStatus::kSuccess);
  EXPECT_EQ(sent[0].id, 9u);
  EXPECT_EQ(sent[0].opcode, CompletionOpcode::kSend);
  const auto received = b_.Poll();
  ASSERT_EQ(received.size(), 1u);
  EXPECT_EQ(received[0].id, 7u);
  EXPECT_EQ(received[0].opcode, CompletionOpcode::kReceive);
  EXPECT_EQ(received[0].byte_count, 50u);
  EXPECT_FALSE(received[0].has_immediate);
  EXPECT_EQ(std::memcmp(b_.memory.data(), a_.memory.data() + 1000, 50), 0);
}

TEST_F(DeviceTest, WriteOfManyPacketsArrivesAcrossThePsnWrap) {
  Connect(1024);
  SendRequest write = Request(Opcode::kWrite, a_.Piece(3, 4'000'001), 1);
  write.remote_address = b_.Remote(5);
  write.rkey = b_.region->rkey();
  Post(a_, write);
  Run();
  const auto done = a_.Poll();
  ASSERT_EQ(done.size(), 1u);
  EXPECT_EQ(done[0].status, CompletionStatus::kSuccess);
  EXPECT_EQ(std::memcmp(b_.memory.data() + 5, a_.memory.data() + 3, 4'000'001), 0);
  EXPECT_TRUE(b_.Poll().empty());
}

TEST_F(DeviceTest, ReadOfManyPacketsFetchesTheBytes) {
  Connect(4096);
  SendRequest read = Request(Opcode::kRead, a_.Piece(3, 4'000'001), 1);
  read.remote_address = b_.Remote(5);
  read.rkey = b_.region->rkey();
  Post(a_, read);
  Run();
  const auto done = a_.Poll();
  ASSERT_EQ(done.size(), 1u);
  EXPECT_EQ(done[0].status, CompletionStatus::kSuccess);
  EXPECT_EQ(done[0].opcode, CompletionOpcode::kRead);
  EXPECT_EQ(done[0].byte_count, 4'000'001u);
  EXPECT_EQ(std::memcmp(a_.memory.data() + 3, b_.memory.data() + 5, 4'000'001), 0);
}

TEST_F(DeviceTest, WriteWithImmediateConsumesAReceive) {
  Connect();
  PostReceive(b_, {}, 3);
  SendRequest write = Request(Opcode::kWriteWithImm, a_.Piece(0, 9000), 1);
  write.remote_address = b_.Remote(100);
  write.rkey = b_.region->rkey();
  write.immediate = 0xdeadbeef;
  Post(a_, write);
  Run();
  ASSERT_EQ(a_.Poll().size(), 1u);
  const auto received = b_.Poll();
  ASSERT_EQ(received.size(), 1u);
  EXPECT_EQ(received[0].opcode, CompletionOpcode::kReceiveWriteWithImm);
  EXPECT_TRUE(received[0].has_immediate);
  EXPECT_EQ(received[0].immediate, 0xdeadbeefu);
  EXPECT_EQ(received[0].byte_count, 9000u);
}

TEST_F(DeviceTest, AtomicsReturnTheOldValue) {
  Connect();
  uint64_t value = 40;
  std::memcpy(b_.memory.data() + 64, &value, sizeof(value));
  SendRequest add = Request(Opcode::kFetchAdd, a_.Piece(0, 8), 1);
  add.remote_address = b_.Remote(64);
  add.rkey = b_.region->rkey();
  add.swap_or_add = 2;
  Post(a_, add);
  SendRequest swap = Request(Opcode::kCompareSwap, a_.Piece(8, 8), 2);
  swap.remote_address = b_.Remote(64);
  swap.rkey = b_.region->rkey();
  swap.compare = 42;
  swap.swap_or_add = 100;
  Post(a_, swap);
  swap.id = 3;
  const Sge third = a_.Piece(16, 8);
  swap.sges = absl::MakeConstSpan(&third, 1);
  Post(a_, swap);
  Run();
  ASSERT_EQ(a_.Poll().size(), 3u);
  uint64_t results[3];
  std::memcpy(results, a_.memory.data(), sizeof(results));
  EXPECT_EQ(results[0], 40u);
  EXPECT_EQ(results[1], 42u);
  EXPECT_EQ(results[2], 100u);
  std::memcpy(&value, b_.memory.data() + 64, sizeof(value));
  EXPECT_EQ(value, 100u);
}

// Numbers come again after 256 of the same index.
TEST_F(DeviceTest, NoQueuePairHasTheNumberOfAManagementOne) {
  QueuePairOptions options;
  options.send_queue = options.receive_queue = a_.completions.get();
  for (int i = 0; i < 600; ++i) {
    const auto queue_pair = *a_.domain->CreateQueuePair(options);
    EXPECT_GT(queue_pair->number(), kManagementQueuePair);
  }
}

TEST_F(DeviceTest, AnAddressThatIsTakenIsRefused) {
  DeviceOptions options;
  options.address = a_.device->address();
  bool on_nic_loop = false;
  options.run_on_nic_loop = [&](const std::function<void()>& call) {
    on_nic_loop = true;
    call();
  };
  EXPECT_TRUE(absl::IsAlreadyExists(OpenSoftDevice(a_.nic_loop, fabric_, a_.trace, options).status()));
  EXPECT_TRUE(on_nic_loop) << "what was made of it is dropped there";
}

}  // namespace
}  // namespace tokamak::verbs::soft
