// Keys and rights: a request that leaves what it was given changes nothing, and ends its own queue
// pair only.
#include <algorithm>

#include "absl/status/status.h"
#include "tests/verbs/conformance/fixture.h"

namespace tokamak::verbs::conformance {
namespace {

using testing::ElementsAre;

constexpr size_t kDeniedSize = 20000;  // many packets at any MTU: the denial must come before the first byte
constexpr Access kWithAtomics = kLocalWrite | kRemoteWrite | kRemoteRead | kRemoteAtomic;

// A pair with memory on both sides, and a remote request that is to fail.
class RemoteProtectionTest : public ConformanceTest {
 protected:
  void Prepare(Access access = kEverything, Access remote_access = kRemoteWrite | kRemoteRead | kRemoteAtomic) {
    PairOptions options;
    if (!limits().atomics) remote_access = static_cast<Access>(remote_access & ~static_cast<uint32_t>(kRemoteAtomic));
    options.passive.remote_access = remote_access;
    writes_allowed_ = (remote_access & kRemoteWrite) != 0;
    pair_ = Connect(options);
    here_ = std::make_unique<Memory>(*pair_->active.domain, kDeniedSize, 1);
    there_ = std::make_unique<Memory>(*pair_->passive.domain, kDeniedSize, 2, access);
  }

  Memory& here() { return *here_; }
  Memory& there() { return *there_; }
  Pair& pair() { return *pair_; }

  // A request that is right.
  Work Allowed(uint64_t id) { return writes_allowed_ ? Write(id, {}, 0, 0) : Read(id, {}, 0, 0); }

  // Posts `bad` between requests that are right, and looks at what follows: `bad` fails, what came
  // before it is done, what comes after it is flushed, nobody's memory has changed, and another
  // pair of the same devices goes on.
  void ExpectDenied(Fault fault, Work bad) {
    PairOptions plain;
    auto bystander = Connect(plain);
    bad.request.id = 2;
    if (!limits().acknowledgements) {
      // The device reports only that the connection ended, not what failed.
      pair().active.MustPost({bad});
      EXPECT_TRUE(Drive([&] { return pair().active.state() == QueuePairState::kError; }));
    } else if (writes_allowed_) {
      pair().active.MustPost({Allowed(1), bad, Allowed(3), Allowed(4).Unsignaled()});
      EXPECT_THAT(pair().active.AwaitSends(1), ElementsAre(Done(1, CompletionOpcode::kWrite)));
    } else {
      // A READ's answer that is lost cannot be had again once the peer is in Error, so this one
      // comes first.
      pair().active.MustPost({Allowed(1)});
      EXPECT_THAT(pair().active.AwaitSends(1), ElementsAre(Done(1, CompletionOpcode::kRead)));
      pair().active.MustPost({bad, Allowed(3), Allowed(4).Unsignaled()});
    }
    if (limits().acknowledgements) ExpectFault(pair().active, fault, 2, {3, 4});
    LookOn();
    EXPECT_TRUE(here().Untouched());
    // Else the pieces before the one that leaves the region are placed.
    if (limits().acknowledgements || fault != Fault::kRemoteBounds) {
      EXPECT_TRUE(there().Untouched());
    }
    if (limits().acknowledgements) {
      EXPECT_TRUE(PollNow(*pair().active.sends).empty());
    }
    ExpectWorks(bystander->active, bystander->passive);
  }

 private:
  bool writes_allowed_ = true;
  std::unique_ptr<Pair> pair_;
  std::unique_ptr<Memory> here_, there_;
};
TOKAMAK_CONFORMANCE(RemoteProtectionTest);

TEST_P(RemoteProtectionTest, AWriteWithAnUnknownKeyIsDenied) {
  Prepare();
  ExpectDenied(Fault::kRemoteKey, Write(0, {here().whole()}, there().remote(), there().rkey() ^ 0x5a5a5a));
}

TEST_P(RemoteProtectionTest, AReadWithAnUnknownKeyIsDenied) {
  Prepare();
  ExpectDenied(Fault::kRemoteKey, Read(0, {here().whole()}, there().remote(), there().rkey() ^ 0x5a5a5a));
}

TEST_P(RemoteProtectionTest, AnAtomicWithAnUnknownKeyIsDenied) {
  TOKAMAK_NEEDS(atomics);
  Prepare(kWithAtomics);
  ExpectDenied(Fault::kRemoteKey, FetchAdd(0, here().piece(0, 8), there().remote(), there().rkey() ^ 0x5a5a5a, 1));
}

TEST_P(RemoteProtectionTest, AWriteOneByteTooLongIsDenied) {
  Prepare();
  ExpectDenied(Fault::kRemoteBounds, Write(0, {here().whole()}, there().remote(1), there().rkey()));
}

TEST_P(RemoteProtectionTest, AWriteThatBeginsBeforeTheRegionIsDenied) {
  Prepare();
  ExpectDenied(Fault::kRemoteBounds, Write(0, {here().piece(0, 100)}, there().remote() - 1, there().rkey()));
}

TEST_P(RemoteProtectionTest, AWriteBehindTheRegionIsDenied) {
  Prepare();
  ExpectDenied(Fault::kRemoteBounds, Write(0, {here().piece(0, 1)}, there().remote(kDeniedSize), there().rkey()));
}

TEST_P(RemoteProtectionTest, AWriteWhoseAddressOverflowsIsDenied) {
  Prepare();
  ExpectDenied(Fault::kRemoteBounds, Write(0, {here().piece(0, 100)}, UINT64_MAX - 49, there().rkey()));
}

TEST_P(RemoteProtectionTest, AReadOneByteTooLongIsDenied) {
  Prepare();
  ExpectDenied(Fault::kRemoteBounds, Read(0, {here().whole()}, there().remote(1), there().rkey()));
}

TEST_P(RemoteProtectionTest, AReadThatBeginsBeforeTheRegionIsDenied) {
  Prepare();
  ExpectDenied(Fault::kRemoteBounds, Read(0, {here().piece(0, 100)}, there().remote() - 1, there().rkey()));
}

TEST_P(RemoteProtectionTest, AReadWhoseAddressOverflowsIsDenied) {
  Prepare();
  ExpectDenied(Fault::kRemoteBounds, Read(0, {here().piece(0, 100)}, UINT64_MAX - 49, there().rkey()));
}

TEST_P(RemoteProtectionTest, AnAtomicBehindTheRegionIsDenied) {
  TOKAMAK_NEEDS(atomics);
  Prepare(kWithAtomics);
  ExpectDenied(Fault::kRemoteBounds, FetchAdd(0, here().piece(0, 8), there().remote(kDeniedSize), there().rkey(), 1));
}

// A device may see it before the peer does.
TEST_P(RemoteProtectionTest, AMisalignedAtomicIsRefusedOrDenied) {
  TOKAMAK_NEEDS(atomics);
  Prepare(kWithAtomics);
  const PostResult result = pair().active.Post({FetchAdd(1, here().piece(0, 8), there().remote(4), there().rkey(), 1)});
  if (result.ok()) {
    ExpectFault(pair().active, Fault::kRemoteAlignment, 1);
  } else {
    EXPECT_TRUE(absl::IsInvalidArgument(result.status)) << result.status;
  }
  LookOn();
  EXPECT_TRUE(there().Untouched());
}

TEST_P(RemoteProtectionTest, AWriteToARegionWithoutTheRightIsDenied) {
  Prepare(kLocalWrite | kRemoteRead);
  ExpectDenied(Fault::kRemoteRight, Write(0, {here().whole()}, there().remote(), there().rkey()));
}

TEST_P(RemoteProtectionTest, AReadFromARegionWithoutTheRightIsDenied) {
  TOKAMAK_NEEDS(region_read_rights);
  Prepare(kLocalWrite | kRemoteWrite);
  ExpectDenied(Fault::kRemoteRight, Read(0, {here().whole()}, there().remote(), there().rkey()));
}

TEST_P(RemoteProtectionTest, AnAtomicOnARegionWithoutTheRightIsDenied) {
  TOKAMAK_NEEDS(atomics);
  Prepare(kEverything);
  ExpectDenied(Fault::kRemoteRight, FetchAdd(0, here().piece(0, 8), there().remote(), there().rkey(), 1));
}

TEST_P(RemoteProtectionTest, AWriteThroughAQueuePairWithoutTheRightIsDenied) {
  TOKAMAK_NEEDS(queue_pair_rights);
  Prepare(kEverything, kRemoteRead);
  ExpectDenied(Fault::kQueuePairRight, Write(0, {here().whole()}, there().remote(), there().rkey()));
}

TEST_P(RemoteProtectionTest, AReadThroughAQueuePairWithoutTheRightIsDenied) {
  TOKAMAK_NEEDS(queue_pair_rights);
  Prepare(kEverything, kRemoteWrite);
  ExpectDenied(Fault::kQueuePairRight, Read(0, {here().whole()}, there().remote(), there().rkey()));
}

TEST_P(RemoteProtectionTest, AnAtomicThroughAQueuePairWithoutTheRightIsDenied) {
  TOKAMAK_NEEDS(queue_pair_rights);
  TOKAMAK_NEEDS(atomics);
  Prepare(kWithAtomics, kRemoteRead | kRemoteWrite);
  ExpectDenied(Fault::kQueuePairRight, FetchAdd(0, here().piece(0, 8), there().remote(), there().rkey(), 1));
}

TEST_P(RemoteProtectionTest, AWriteToARegionThatIsGoneIsDenied) {
  Prepare();
  const uint32_t rkey = there().rkey();
  there().Deregister();
  ExpectDenied(Fault::kRemoteKey, Write(0, {here().whole()}, there().remote(), rkey));
}

TEST_P(RemoteProtectionTest, AReadFromARegionThatIsGoneIsDenied) {
  Prepare();
  const uint32_t rkey = there().rkey();
  there().Deregister();
  ExpectDenied(Fault::kRemoteKey, Read(0, {here().whole()}, there().remote(), rkey));
}

TEST_P(RemoteProtectionTest, TheKeyOfADeadRegionDoesNotOpenItsSuccessors) {
  Prepare();
  const uint32_t rkey = there().rkey();
  there().Deregister();
  // A device uses its entries again, sooner or later.
  std::unique_ptr<MemoryRegion> successor;
  for (int i = 0; i < 300; ++i) {
    successor.reset();
    auto made = pair().passive.domain->RegisterMemory(absl::MakeSpan(there().data(), kDeniedSize), kEverything);
    ASSERT_TRUE(made.ok()) << made.status();
    successor = *std::move(made);
    ASSERT_NE(successor->rkey(), rkey) << "after " << i << " others";
  }
  ExpectDenied(Fault::kRemoteKey, Write(0, {here().whole()}, there().remote(), rkey));
}

TEST_P(RemoteProtectionTest, AKeyOfAnotherProtectionDomainIsDenied) {
  Prepare();
  auto other = pair().passive.device.CreateProtectionDomain();
  ASSERT_TRUE(other.ok()) << other.status();
  Memory foreign(**other, kDeniedSize, 5);
  ExpectDenied(Fault::kRemoteKey, Write(0, {here().whole()}, foreign.remote(), foreign.rkey()));
  EXPECT_TRUE(foreign.Untouched());
}

TEST_P(RemoteProtectionTest, AReadWithAKeyOfAnotherProtectionDomainIsDenied) {
  Prepare();
  auto other = pair().passive.device.CreateProtectionDomain();
  ASSERT_TRUE(other.ok()) << other.status();
  Memory foreign(**other, kDeniedSize, 5);
  ExpectDenied(Fault::kRemoteKey, Read(0, {here().whole()}, foreign.remote(), foreign.rkey()));
}

TEST_P(RemoteProtectionTest, AWriteWithImmediateThatIsDeniedDeliversNothing) {
  TOKAMAK_NEEDS(immediate);
  Prepare(kLocalWrite | kRemoteRead);
  pair().passive.MustPostReceives({{1, {}}});
  ExpectDenied(Fault::kRemoteRight, WriteWithImm(0, {here().whole()}, there().remote(), there().rkey(), 5));
  for (const Completion& completion : PollNow(*pair().passive.receives)) {
    EXPECT_NE(completion.status, CompletionStatus::kSuccess);
  }
}

TEST_P(RemoteProtectionTest, TheQueuePairThatDeniedIsInErrorToo) {
  Prepare(kLocalWrite | kRemoteRead);
  pair().passive.MustPostReceives({{1, {}}, {2, {}}});
  ExpectDenied(Fault::kRemoteRight, Write(0, {here().whole()}, there().remote(), there().rkey()));
  EXPECT_THAT(pair().passive.AwaitReceives(2), ElementsAre(Flushed(1), Flushed(2)));
  EXPECT_EQ(pair().passive.state(), QueuePairState::kError);
}

// The owner of the memory: what it hands to its own device is checked as well.
class LocalProtectionTest : public ConformanceTest {
 protected:
  void SetUp() override {
    ConformanceTest::SetUp();
    if (IsSkipped() || HasFatalFailure()) return;
    pair_ = Connect();
    here_ = std::make_unique<Memory>(*pair_->active.domain, kDeniedSize, 1);
    there_ = std::make_unique<Memory>(*pair_->passive.domain, kDeniedSize, 2);
  }

  Memory& here() { return *here_; }
  Memory& there() { return *there_; }
  Pair& pair() { return *pair_; }

  void ExpectDenied(Fault fault, Work bad) {
    ExpectDeniedAtLast(fault, std::move(bad));
    EXPECT_TRUE(there().Untouched());
  }

  // The same where only the end of the source is denied: the device may have sent what comes
  // before.
  void ExpectDeniedAtLast(Fault fault, Work bad) {
    bad.request.id = 2;
    const Work before = Write(1, {}, 0, 0), after = Write(3, {}, 0, 0);
    const auto expect_before = [this] {
      EXPECT_THAT(pair().active.AwaitSends(1), ElementsAre(Done(1, CompletionOpcode::kWrite)));
    };
    if (backend().HearsAnswersAfterALocalFault()) {
      pair().active.MustPost({before, bad, after});
      expect_before();
    } else {
      pair().active.MustPost({before});
      expect_before();
      pair().active.MustPost({bad, after});
    }
    ExpectFault(pair().active, fault, 2, {3});
    LookOn();
    EXPECT_TRUE(here().Untouched());
  }

  // Posts a receive that cannot take a message, then a good one; both sides see why.
  void ExpectReceiveDenied(Fault here_fault, Fault peer_fault, const Receive& bad, Sge message) {
    TOKAMAK_NEEDS(acknowledgements);
    pair().passive.MustPostReceives({{1, bad.pieces}, {2, {}}});
    pair().active.MustPost({Send(1, {message}), Send(2, {})});
    ExpectReceiveFault(pair().passive, here_fault, 1, {2});
    ExpectFault(pair().active, peer_fault, 1, {2});
  }

 private:
  std::unique_ptr<Pair> pair_;
  std::unique_ptr<Memory> here_, there_;
};
TOKAMAK_CONFORMANCE(LocalProtectionTest);

TEST_P(LocalProtectionTest, ASourceWithAnUnknownKeyIsDenied) {
  ExpectDenied(Fault::kLocalKey,
               Write(0, {{here().data(), 100, here().lkey() ^ 0x5a5a5a}}, there().remote(), there().rkey()));
}

TEST_P(LocalProtectionTest, ASourceThatLeavesItsRegionIsDenied) {
  ExpectDeniedAtLast(Fault::kLocalKey, Write(0, {here().piece(1, kDeniedSize)}, there().remote(), there().rkey()));
  const std::vector<uint8_t> before = Pattern(2, kDeniedSize);
  for (size_t i = 0; i < kDeniedSize; ++i) {
    const uint8_t byte = there().bytes()[i];
    ASSERT_TRUE(byte == before[i] || (i + 1 < kDeniedSize && byte == here().bytes()[i + 1])) << "byte " << i;
  }
}

TEST_P(LocalProtectionTest, ASourceOfADeadRegionIsDenied) {
  Memory dead(*pair().active.domain, 100, 3);
  const Sge piece = dead.whole();
  dead.Deregister();
  ExpectDenied(Fault::kLocalKey, Write(0, {piece}, there().remote(), there().rkey()));
}

TEST_P(LocalProtectionTest, ASourceOfAnotherProtectionDomainIsDenied) {
  auto other = pair().active.device.CreateProtectionDomain();
  ASSERT_TRUE(other.ok()) << other.status();
  Memory foreign(**other, 100, 3);
  ExpectDenied(Fault::kLocalKey, Write(0, {foreign.whole()}, there().remote(), there().rkey()));
}

TEST_P(LocalProtectionTest, ASinkThatMayNotBeWrittenIsDenied) {
  Memory constant(*pair().active.domain, 100, 3, kRemoteRead);
  ExpectDenied(Fault::kLocalRight, Read(0, {constant.whole()}, there().remote(), there().rkey()));
  EXPECT_TRUE(constant.Untouched());
}

TEST_P(LocalProtectionTest, AnAtomicsSinkThatMayNotBeWrittenIsDenied) {
  TOKAMAK_NEEDS(atomics);
  PairOptions options;
  options.passive.remote_access = kRemoteAtomic;
  auto atomic_pair = Connect(options);
  Memory constant(*atomic_pair->active.domain, 8, 3, kRemoteRead),
      word(*atomic_pair->passive.domain, 8, 4, kWithAtomics);
  atomic_pair->active.MustPost({FetchAdd(1, constant.whole(), word.remote(), word.rkey(), 1)});
  ExpectFault(atomic_pair->active, Fault::kLocalRight, 1);
  EXPECT_TRUE(constant.Untouched());
}

TEST_P(LocalProtectionTest, ASinkThatLeavesItsRegionIsDenied) {
  ExpectDenied(Fault::kLocalKey, Read(0, {here().piece(kDeniedSize - 99, 100)}, there().remote(), there().rkey()));
}

TEST_P(LocalProtectionTest, AReceiveWithAnUnknownKeyFailsBothSides) {
  ExpectReceiveDenied(Fault::kReceiveKey, Fault::kPeerReceiveKey,
                      {0, {{there().data(), 100, there().lkey() ^ 0x5a5a5a}}}, here().piece(0, 50));
  EXPECT_TRUE(there().Untouched());
}

TEST_P(LocalProtectionTest, AReceiveThatLeavesItsRegionFailsBothSides) {
  ExpectReceiveDenied(Fault::kReceiveKey, Fault::kPeerReceiveKey, {0, {there().piece(kDeniedSize - 50, 100)}},
                      here().piece(0, 100));
}

TEST_P(LocalProtectionTest, AReceiveThatMayNotBeWrittenFailsBothSides) {
  Memory constant(*pair().passive.domain, 100, 3, kRemoteRead);
  ExpectReceiveDenied(Fault::kReceiveRight, Fault::kPeerReceiveKey, {0, {constant.whole()}}, here().piece(0, 100));
  EXPECT_TRUE(constant.Untouched());
}

TEST_P(LocalProtectionTest, AMessageLongerThanItsReceiveFailsBothSides) {
  ExpectReceiveDenied(Fault::kReceiveShort, Fault::kPeerReceiveShort, {0, {there().piece(0, 99)}},
                      here().piece(0, 100));
  EXPECT_TRUE(there().Untouched(99, kDeniedSize - 99));
}

TEST_P(LocalProtectionTest, AMessageOfManyPacketsLongerThanItsReceiveFailsBothSides) {
  ExpectReceiveDenied(Fault::kReceiveShort, Fault::kPeerReceiveShort, {0, {there().piece(0, kDeniedSize - 1)}},
                      here().whole());
  EXPECT_TRUE(there().Untouched(kDeniedSize - 1, 1));
}

TEST_P(LocalProtectionTest, MemoryMustNotBeEmpty) {
  auto region = pair().active.domain->RegisterMemory({}, kEverything);
  EXPECT_TRUE(absl::IsInvalidArgument(region.status())) << region.status();
}

TEST_P(LocalProtectionTest, RemoteWritingNeedsLocalWriting) {
  uint8_t bytes[64] = {};
  auto region = pair().active.domain->RegisterMemory(absl::MakeSpan(bytes), kRemoteWrite);
  EXPECT_TRUE(absl::IsInvalidArgument(region.status())) << region.status();
}

TEST_P(LocalProtectionTest, RemoteAtomicsNeedLocalWriting) {
  TOKAMAK_NEEDS(atomics);
  uint8_t bytes[64] = {};
  auto region = pair().active.domain->RegisterMemory(absl::MakeSpan(bytes), kRemoteAtomic);
  EXPECT_TRUE(absl::IsInvalidArgument(region.status())) << region.status();
}

TEST_P(LocalProtectionTest, ARegionSaysWhatItCovers) {
  EXPECT_EQ(here().region()->address(), here().data());
  EXPECT_EQ(here().region()->length(), kDeniedSize);
}

TEST_P(LocalProtectionTest, AByteForAReceiveOfNothingFailsBothSides) {
  ExpectReceiveDenied(Fault::kReceiveShort, Fault::kPeerReceiveShort, {0, {}}, here().piece(0, 1));
}

}  // namespace
}  // namespace tokamak::verbs::conformance
