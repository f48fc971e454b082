// Each strategy's calls of the device: which memory, which rights, for how long.
#include "lib/transport/memory/registration.h"

#include <memory>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "lib/transport/memory/registration_cache.h"
#include "tests/transport/world.h"

namespace tokamak::transport::testing {
namespace {

using Use = Registration::Use;

// Notes what is registered; a region that is dropped is struck out.
class NotingDomain final : public verbs::ProtectionDomain {
 public:
  struct Entry {
    absl::Span<uint8_t> memory;
    verbs::Access access;
    bool alive;
  };
  std::vector<Entry> entries;
  bool full = false;
  bool refuses_windows = false;

  absl::StatusOr<std::unique_ptr<verbs::MemoryRegion>> RegisterMemory(absl::Span<uint8_t> memory,
                                                                      verbs::Access access) override {
    if (full) return absl::ResourceExhaustedError("locked memory");
    if (refuses_windows && (access & verbs::kWindowBind) != 0) return absl::InvalidArgumentError("access");
    entries.push_back({memory, access, true});
    return std::make_unique<Region>(*this, entries.size() - 1);
  }
  absl::StatusOr<std::unique_ptr<verbs::MemoryWindow>> CreateMemoryWindow() override {
    return absl::UnimplementedError("");
  }
  absl::StatusOr<std::unique_ptr<verbs::QueuePair>> CreateQueuePair(const verbs::QueuePairOptions&) override {
    return absl::UnimplementedError("");
  }
  absl::StatusOr<std::unique_ptr<verbs::SharedReceiveQueue>> CreateSharedReceiveQueue(uint32_t, uint32_t) override {
    return absl::UnimplementedError("");
  }

 private:
  class Region final : public verbs::MemoryRegion {
   public:
    Region(NotingDomain& domain, size_t entry) : domain_(domain), entry_(entry) {}
    ~Region() override { domain_.entries[entry_].alive = false; }
    uint8_t* address() const override { return domain_.entries[entry_].memory.data(); }
    uint64_t length() const override { return domain_.entries[entry_].memory.size(); }
    uint32_t lkey() const override { return 1000 + static_cast<uint32_t>(entry_); }
    uint32_t rkey() const override { return 2000 + static_cast<uint32_t>(entry_); }

   private:
    NotingDomain& domain_;
    const size_t entry_;
  };
};

class RegistrationTest : public ::testing::Test {
 protected:
  RegistrationTest() : memory(4096) {}
  absl::Span<uint8_t> Part(size_t at, size_t size) { return absl::MakeSpan(memory).subspan(at, size); }
  static Node& AddIwarp(World& world) {
    NodeOptions options;
    options.like_iwarp = true;
    return world.Add(options);
  }

  World world;
  verbs::Device& device = *world.Add().device;
  verbs::Device& iwarp = *AddIwarp(world).device;
  NotingDomain domain;
  std::vector<uint8_t> memory;
};

TEST_F(RegistrationTest, AnArenaIsRegisteredOnceForReading) {
  auto arena = RegisterArena(device, domain, absl::MakeSpan(memory));
  ASSERT_TRUE(arena.ok()) << arena.status();
  for (Use use : {Use::kReadSource, Use::kReadTarget}) {
    auto lease = (*arena)->Acquire(Part(100, 200), use);
    ASSERT_TRUE(lease.ok()) << lease.status();
    EXPECT_EQ(lease->lkey(), 1000u);
    EXPECT_EQ(lease->rkey(), 2000u);
  }
  ASSERT_EQ(domain.entries.size(), 1u);
  EXPECT_EQ(domain.entries[0].memory.size(), memory.size());
  EXPECT_EQ(domain.entries[0].access,
            verbs::kLocalWrite | verbs::kRemoteRead | verbs::kRelaxedOrdering | verbs::kWindowBind);
}

TEST_F(RegistrationTest, WindowsAreBoundInsideTheArenaWhereTheDeviceHasThem) {
  auto arena = RegisterArena(device, domain, Part(1000, 1000));
  verbs::MemoryRegion* const ground = (*arena)->GroundOf(Part(1000, 1000));
  ASSERT_NE(ground, nullptr);
  EXPECT_EQ(ground->rkey(), 2000u);
  EXPECT_EQ((*arena)->GroundOf(Part(1999, 1)), ground);
  for (auto [at, size] : {std::pair<size_t, size_t>{999, 10}, {1991, 10}, {2000, 1}, {1500, 0}}) {
    EXPECT_EQ((*arena)->GroundOf(Part(at, size)), nullptr);
  }
  EXPECT_EQ(RegisterOnDemand(device, domain)->GroundOf(Part(1000, 10)), nullptr);
  EXPECT_EQ((*RegisterArena(iwarp, domain, absl::MakeSpan(memory)))->GroundOf(Part(1000, 10)), nullptr);
}

TEST_F(RegistrationTest, AnArenaThatMayNotCarryWindowsIsRegisteredWithout) {
  domain.refuses_windows = true;
  auto arena = RegisterArena(device, domain, Part(1000, 1000));
  ASSERT_TRUE(arena.ok()) << arena.status();
  EXPECT_EQ((*arena)->GroundOf(Part(1000, 10)), nullptr);
  EXPECT_EQ(domain.entries.size(), 1u);
}

TEST_F(RegistrationTest, AWriteTargetHasAKeyOfExactlyItsRange) {
  auto arena = RegisterArena(device, domain, absl::MakeSpan(memory));
  const auto on_demand = RegisterOnDemand(device, domain);
  for (Registration* registration : {arena->get(), on_demand.get()}) {
    auto lease = registration->Acquire(Part(100, 200), Use::kWriteTarget);
    ASSERT_TRUE(lease.ok()) << lease.status();
    const NotingDomain::Entry& entry = domain.entries.back();
    EXPECT_EQ(entry.memory.data(), memory.data() + 100);
    EXPECT_EQ(entry.memory.size(), 200u);
    EXPECT_EQ(entry.access, verbs::kLocalWrite | verbs::kRemoteWrite | verbs::kRelaxedOrdering);
    EXPECT_NE(lease->rkey(), 2000u);
    EXPECT_TRUE(entry.alive);
    lease = absl::CancelledError();  // dropped
    EXPECT_FALSE(domain.entries.back().alive) << "a lease that is dropped revokes its key";
  }
  EXPECT_TRUE(domain.entries[0].alive);
}

TEST_F(RegistrationTest, OnDemandGivesNoMoreThanTheUseNeeds) {
  const auto registration = RegisterOnDemand(device, domain);
  auto source = registration->Acquire(Part(0, 10), Use::kReadSource);
  auto target = registration->Acquire(Part(10, 10), Use::kReadTarget);
  ASSERT_TRUE(source.ok() && target.ok());
  EXPECT_EQ(domain.entries[0].access, verbs::kRemoteRead);
  EXPECT_EQ(domain.entries[1].access, verbs::kLocalWrite | verbs::kRelaxedOrdering);
}

TEST_F(RegistrationTest, IwarpReadsIntoAKeyOfItsOwn) {
  auto arena = RegisterArena(iwarp, domain, absl::MakeSpan(memory));
  EXPECT_EQ(domain.entries[0].access, verbs::kLocalWrite | verbs::kRemoteRead | verbs::kRelaxedOrdering);
  auto lease = (*arena)->Acquire(Part(100, 200), Use::kReadTarget);
  ASSERT_TRUE(lease.ok());
  EXPECT_EQ(domain.entries[1].memory.size(), 200u);
  EXPECT_EQ(domain.entries[1].access, verbs::kLocalWrite | verbs::kRemoteWrite | verbs::kRelaxedOrdering);
}

TEST_F(RegistrationTest, MemoryOutsideOfTheArenaIsRefused) {
  auto arena = RegisterArena(device, domain, Part(1000, 1000));
  for (auto [at, size] : {std::pair<size_t, size_t>{999, 10}, {0, 4096}, {1991, 10}, {2000, 1}, {1500, 0}}) {
    EXPECT_EQ((*arena)->Acquire(Part(at, size), Use::kReadSource).status().code(), absl::StatusCode::kInvalidArgument);
  }
  EXPECT_TRUE((*arena)->Acquire(Part(1000, 1000), Use::kReadSource).ok());
  EXPECT_TRUE((*arena)->Acquire(Part(1999, 1), Use::kWriteTarget).ok());
}

TEST_F(RegistrationTest, ARefusalOfTheDeviceIsPassedOn) {
  domain.full = true;
  EXPECT_EQ(RegisterArena(device, domain, absl::MakeSpan(memory)).status().code(),
            absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(RegisterOnDemand(device, domain)->Acquire(Part(0, 1), Use::kReadSource).status().code(),
            absl::StatusCode::kResourceExhausted);
}

class RegistrationCacheTest : public RegistrationTest {
 protected:
  static constexpr size_t kBlock = 512;

  RegistrationCache cache_{domain, Part(0, 4000), RegisterOnDemand(device, domain), /*reads_need_own_keys=*/false,
                           kBlock};
};

TEST_F(RegistrationCacheTest, BlocksAreRegisteredWhenTheyAreFirstUsedAndKept) {
  for (int i = 0; i < 3; ++i) {
    for (const Use use : {Use::kReadSource, Use::kReadTarget}) {
      auto lease = cache_.Acquire(Part(600, 700), use);
      ASSERT_TRUE(lease.ok()) << lease.status();
      EXPECT_EQ(lease->rkey(), 2000u);
      EXPECT_EQ(lease->registered_now(), i == 0 && use == Use::kReadSource);
    }
  }
  ASSERT_EQ(domain.entries.size(), 1u);
  EXPECT_EQ(domain.entries[0].memory.data(), memory.data() + kBlock);
  EXPECT_EQ(domain.entries[0].memory.size(), 2 * kBlock);
  EXPECT_EQ(domain.entries[0].access, verbs::kLocalWrite | verbs::kRemoteRead | verbs::kRelaxedOrdering);
  EXPECT_EQ(cache_.Acquire(Part(1023, 2), Use::kReadSource)->rkey(), 2000u) << "inside of it";
  EXPECT_EQ(cache_.Acquire(Part(1535, 2), Use::kReadSource)->rkey(), 2001u) << "beyond";
  EXPECT_TRUE(domain.entries[0].alive);
}

TEST_F(RegistrationCacheTest, TheLastBlockEndsWithTheStore) {
  ASSERT_TRUE(cache_.Acquire(Part(3990, 10), Use::kReadSource).ok());
  EXPECT_EQ(domain.entries[0].memory.size(), 4000 - 7 * kBlock);
  EXPECT_EQ(cache_.Acquire(Part(3990, 11), Use::kReadSource).status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(cache_.Acquire(Part(0, 0), Use::kReadSource).status().code(), absl::StatusCode::kInvalidArgument);
}

TEST_F(RegistrationCacheTest, AWriteTargetIsNeverACachedRegion) {
  ASSERT_TRUE(cache_.Acquire(Part(0, 100), Use::kReadSource).ok());
  {
    auto lease = cache_.Acquire(Part(10, 20), Use::kWriteTarget);
    ASSERT_TRUE(lease.ok());
    EXPECT_EQ(domain.entries.back().memory.size(), 20u);
    EXPECT_EQ(lease->rkey(), 2001u);
  }
  EXPECT_FALSE(domain.entries.back().alive) << "its key is revoked";
  EXPECT_EQ(cache_.GroundOf(Part(10, 20)), nullptr);
}

TEST_F(RegistrationCacheTest, WhereReadNeedsRemoteWriteItsTargetHasAKeyOfItsOwn) {
  const auto cache = RegisterCached(iwarp, domain, Part(0, 4000));
  ASSERT_TRUE(cache->Acquire(Part(10, 20), Use::kReadTarget).ok());
  EXPECT_EQ(domain.entries[0].memory.size(), 20u);
  EXPECT_NE(domain.entries[0].access & verbs::kRemoteWrite, verbs::Access{});
}

TEST_F(RegistrationCacheTest, TheLongestUnusedBlockGoesAndBlocksInUseStay) {
  constexpr size_t kStore = (RegistrationCache::kMaxRegions + 2) * kBlock;
  memory.resize(kStore);
  RegistrationCache cache(domain, Part(0, kStore), RegisterOnDemand(device, domain), false, kBlock);
  const auto acquire = [&](size_t block) { return cache.Acquire(Part(block * kBlock, 1), Use::kReadSource); };
  const auto held = acquire(0);
  for (size_t i = 1; i < RegistrationCache::kMaxRegions; ++i) ASSERT_TRUE(acquire(i).ok());
  ASSERT_TRUE(acquire(1).ok());  // used again
  ASSERT_TRUE(acquire(RegistrationCache::kMaxRegions).ok());
  EXPECT_EQ(cache.size(), RegistrationCache::kMaxRegions);
  EXPECT_TRUE(domain.entries[0].alive) << "in use";
  EXPECT_TRUE(domain.entries[1].alive) << "used a moment ago";
  EXPECT_FALSE(domain.entries[2].alive);
}

TEST_F(RegistrationCacheTest, WithAllBlocksInUseATransferRegistersItsOwnMemory) {
  constexpr size_t kStore = (RegistrationCache::kMaxRegions + 2) * kBlock;
  memory.resize(kStore);
  RegistrationCache cache(domain, Part(0, kStore), RegisterOnDemand(device, domain), false, kBlock);
  std::vector<Lease> held;
  for (size_t i = 0; i <= RegistrationCache::kMaxRegions; ++i) {
    auto lease = cache.Acquire(Part(i * kBlock, 1), Use::kReadSource);
    ASSERT_TRUE(lease.ok());
    held.push_back(*std::move(lease));
  }
  EXPECT_EQ(cache.size(), RegistrationCache::kMaxRegions);
  EXPECT_EQ(domain.entries.back().memory.size(), 1u);
  held.clear();
  EXPECT_FALSE(domain.entries.back().alive);
  EXPECT_TRUE(domain.entries.front().alive);
}

TEST_F(RegistrationCacheTest, ARefusalOfTheDeviceIsPassedOnAndTriedAgain) {
  domain.full = true;
  EXPECT_EQ(cache_.Acquire(Part(0, 1), Use::kReadSource).status().code(), absl::StatusCode::kResourceExhausted);
  domain.full = false;
  EXPECT_TRUE(cache_.Acquire(Part(0, 1), Use::kReadSource).ok());
}

}  // namespace
}  // namespace tokamak::transport::testing
