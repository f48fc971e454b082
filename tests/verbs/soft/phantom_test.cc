// Phantom regions: requests end as with any other memory, but no byte of it is touched. Theirs is
// mapped without any right, so that a touch would end the test.
#include <sys/mman.h>

#include <cstring>
#include <memory>
#include <string>

#include "gmock/gmock.h"
#include "sim/network/byte_fabric.h"
#include "sim/network/sim_fabric.h"
#include "tests/verbs/soft/two_nics.h"

namespace tokamak::verbs::soft {
namespace {

using testing::ElementsAre;

constexpr Access kRemote = kLocalWrite | kRemoteWrite | kRemoteRead;

// Address space without memory.
class Nowhere final {
 public:
  explicit Nowhere(size_t size)
      : size_(size), address_(mmap(nullptr, size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0)) {
    EXPECT_NE(address_, MAP_FAILED);
  }
  ~Nowhere() { munmap(address_, size_); }
  Nowhere(const Nowhere&) = delete;
  Nowhere& operator=(const Nowhere&) = delete;

  absl::Span<uint8_t> bytes() const { return {static_cast<uint8_t*>(address_), size_}; }

 private:
  const size_t size_;
  void* const address_;
};

class PhantomTest : public TwoNics {
 protected:
  static constexpr size_t kSize = size_t{1} << 30;

  PhantomTest() : wire_(scheduler_), fabric_(wire_, 1, {}, network_trace_) {}
  ~PhantomTest() override {
    for (Host* host : {&a_, &b_}) {
      host->region.reset();
      host->queue_pair.reset();
      host->completions.reset();
    }
    here_.reset();
    there_.reset();
    for (Host* host : {&a_, &b_}) {
      host->domain.reset();
      host->device.reset();
    }
  }

  void Start(Fabric& fabric) {
    Open(fabric);
    Connect();
    here_ = *a_.domain->RegisterMemory(memory_.bytes(), kRemote | kPhantom | kWindowBind);
    there_ = *b_.domain->RegisterMemory(memory_.bytes(), kRemote | kPhantom | kWindowBind);
  }
  Sge Here(uint32_t length) const { return {here_->address(), length, here_->lkey()}; }
  void Do(Opcode opcode, const Sge& sge, uint64_t remote, uint32_t rkey) {
    SendRequest request = Request(opcode, sge, 1);
    request.remote_address = remote;
    request.rkey = rkey;
    Post(a_, request);
    Run();
    const std::vector<Completion> done = a_.Poll();
    ASSERT_EQ(done.size(), 1u);
    EXPECT_EQ(done[0].status, CompletionStatus::kSuccess);
  }
  uint64_t There() const { return reinterpret_cast<uint64_t>(there_->address()); }

  sim::SimLoop wire_;
  base::NoTrace network_trace_;
  sim::SimFabric fabric_;
  const Nowhere memory_{kSize};
  std::unique_ptr<MemoryRegion> here_;
  std::unique_ptr<MemoryRegion> there_;
};

TEST_F(PhantomTest, WritesAndReadsEndWithoutTouchingAByte) {
  Start(fabric_);
  for (const Opcode opcode : {Opcode::kWrite, Opcode::kRead}) Do(opcode, Here(1 << 20), There(), there_->rkey());
  EXPECT_EQ(b_.device->counters().queue_pairs.bytes_received, 1u << 20);
  EXPECT_EQ(a_.device->counters().queue_pairs.bytes_received, 1u << 20);
}

TEST_F(PhantomTest, PhantomBytesPassOverAFabricThatCarriesBytes) {
  sim::ByteFabric bytes(fabric_, 1);
  Start(bytes);
  for (const Opcode opcode : {Opcode::kWrite, Opcode::kRead}) Do(opcode, Here(1 << 20), There(), there_->rkey());
  for (Host* host : {&a_, &b_}) host->queue_pair.reset();
  here_.reset();
  there_.reset();
  for (Host* host : {&a_, &b_}) {
    host->region.reset();
    host->completions.reset();
    host->domain.reset();
    host->device.reset();
  }
}

TEST_F(PhantomTest, PhantomBytesLeaveMemoryUnchanged) {
  Start(fabric_);
  const std::vector<uint8_t> before = b_.memory;
  Do(Opcode::kWrite, Here(10000), b_.Remote(0), b_.region->rkey());
  EXPECT_EQ(b_.memory, before);
  const std::vector<uint8_t> own = a_.memory;
  Do(Opcode::kRead, a_.Piece(0, 10000), There(), there_->rkey());
  EXPECT_EQ(a_.memory, own);
  // And bytes vanish in it.
  Do(Opcode::kWrite, a_.Piece(0, 10000), There(), there_->rkey());
  Do(Opcode::kRead, Here(10000), b_.Remote(0), b_.region->rkey());
}

TEST_F(PhantomTest, AMessageMayHaveBytesInItsHeaderAndNoneBehind) {
  Start(fabric_);
  const Sge into[] = {b_.Piece(0, 64), {there_->address(), 9000, there_->lkey()}};
  ReceiveRequest receive;
  receive.id = 7;
  receive.sges = into;
  ASSERT_TRUE(b_.queue_pair->PostReceive(absl::MakeConstSpan(&receive, 1)).ok());
  const Sge from[] = {a_.Piece(100, 64), Here(9000)};
  SendRequest send;
  send.id = 1;
  send.opcode = Opcode::kSend;
  send.flags = kSignaled;
  send.sges = from;
  Post(a_, send);
  Run();
  const std::vector<Completion> got = b_.Poll();
  ASSERT_EQ(got.size(), 1u);
  EXPECT_EQ(got[0].byte_count, 9064u);
  EXPECT_EQ(std::memcmp(b_.memory.data(), a_.memory.data() + 100, 64), 0);
}

TEST_F(PhantomTest, AWindowOfAPhantomRegionIsPhantom) {
  Start(fabric_);
  const std::unique_ptr<MemoryWindow> window = *b_.domain->CreateMemoryWindow();
  SendRequest bind = Request(Opcode::kBindWindow, {}, 3);
  bind.sges = {};
  bind.bind = {window.get(), there_.get(), there_->address(), 1 << 16, kRemoteWrite | kRemoteRead};
  Post(b_, bind);
  Run();
  ASSERT_EQ(b_.Poll().size(), 1u);
  Do(Opcode::kWrite, a_.Piece(0, 1 << 16), There(), window->rkey());
  Do(Opcode::kRead, a_.Piece(0, 1 << 16), There(), window->rkey());
}

TEST_F(PhantomTest, AtomicsNeedBytes) {
  Start(fabric_);
  EXPECT_EQ(a_.domain->RegisterMemory(memory_.bytes(), kRemote | kRemoteAtomic | kPhantom).status().code(),
            absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(a_.domain->RegisterMemory(memory_.bytes(), kRemote | kPhantom).status(), absl::OkStatus());
}

}  // namespace
}  // namespace tokamak::verbs::soft
