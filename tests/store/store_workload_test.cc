// Whatever owners do in whatever order, a plain model says the same, the books balance, and no byte
// of a pinned object moves.
//
// The model leaves eviction to the store: it learns of evictions as a subscriber does, and checks
// that each was allowed.
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "lib/base/random.h"
#include "lib/store/store.h"
#include "tests/store/fixture.h"

namespace tokamak::store {
namespace {

constexpr int kObjects = 40;
constexpr int kOwners = 4;
constexpr int kSteps = 4000;

struct ModelObject {
  State state = State::kCreated;
  Owner creator{};
  uint8_t fill = 0;
  Location location;
  std::map<Owner, int> pins;

  bool lingers() const { return state == State::kDeleted || state == State::kAborted; }
};

class Workload {
 public:
  Workload(uint64_t seed, bool cache) : random_(seed), cache_(cache), loop_(scheduler_), arena_(kBlocks) {
    Options options;
    options.cache = cache;
    store_ = std::make_unique<Store>(absl::MakeSpan(arena_[0].bytes, kBlocks * 64), options, loop_, trace_);
    for (int i = 0; i < kOwners; ++i) owners_.push_back(store_->NewOwner(i < 2 ? "one program" : ""));
    subscription_ = store_->Subscribe([this](absl::Span<const Event> events) {
      for (const Event& event : events) {
        if (event.kind == Event::Kind::kEvicted) Evicted(event);
      }
    });
  }

  void Run() {
    for (int step = 0; step < kSteps && !testing::Test::HasFailure(); ++step) {
      Step();
      scheduler_.RunFor(base::Microseconds(1));
      if (step % 64 == 0) Check();
    }
    for (const Owner who : owners_) DropOwner(who);
    Check();
    EXPECT_EQ(store_->statistics().waiting_creates, 0u);
    EXPECT_GT(created_later_, 0);
    EXPECT_EQ(store_->statistics().pins, 0u);
    EXPECT_EQ(store_->statistics().waiting, 0u);
    EXPECT_EQ(store_->statistics().unsealed_objects, 0u);
  }

  uint64_t trace_hash() const { return trace_.hash(); }

 private:
  struct alignas(64) Block {
    uint8_t bytes[64] = {};
  };
  static constexpr size_t kBlocks = 512;
  static constexpr size_t kWaiting = 3;

  void Step() {
    const base::ObjectId id = Id(absl::StrCat(random_.Below(kObjects)));
    const Owner who = owners_[random_.Below(kOwners)];
    switch (random_.Below(13)) {
      case 0:
      case 1:
      case 2:
        return Create(id, who);
      case 3:
      case 4:
        return Seal(id, who);
      case 5:
        return Abort(id, who);
      case 6:
        return Acquire(id, who);
      case 7:
        return Pin(id, who);
      case 8:
        return Release(id, who);
      case 9:
        return random_.Chance(0.3) ? Delete(id) : Touch(id);
      case 10:
        return Get(id, who);
      case 11:
        if (random_.Chance(0.05)) return DropOwner(who);
        if (random_.Chance(0.05)) store_->Evict(random_.Below(4096));
        return;
      case 12:
        return CreateLater(id, who);
    }
  }

  void Create(const base::ObjectId& id, Owner who) {
    const bool pulled = random_.Chance(0.5);
    const base::Generation generation = base::DrawGeneration(random_);
    const uint64_t data_size = random_.Below(3000), metadata_size = random_.Below(100);
    const absl::StatusOr<Location> location = pulled
                                                  ? store_->CreateCopy({id, generation}, data_size, metadata_size, who)
                                                  : store_->Create(id, data_size, metadata_size, who);
    const auto it = model_.find(id);
    // Objects evicted just now are still in the model; only those that cannot be evicted forbid a
    // create for certain.
    if (it != model_.end() && it->second.lingers()) {
      EXPECT_EQ(location.status().code(), absl::StatusCode::kFailedPrecondition);
    } else if (it != model_.end()) {
      EXPECT_EQ(location.status().code(), absl::StatusCode::kAlreadyExists);
    } else if (!location.ok()) {
      EXPECT_EQ(location.status().code(), absl::StatusCode::kResourceExhausted);
    } else {
      Created(id, who, *location);
    }
  }

  void Created(const base::ObjectId& id, Owner who, const Location& location) {
    ModelObject object;
    object.creator = who;
    object.location = location;
    object.fill = static_cast<uint8_t>(random_.Next());
    for (uint8_t& byte : store_->Memory(location)) byte = object.fill;
    model_[id] = std::move(object);
  }

  // Up to kWaiting at a time; each may be dropped for the next.
  void CreateLater(const base::ObjectId& id, Owner who) {
    base::Pending& place = creates_[random_.Below(kWaiting)];
    place = store_->CreateLater({id, random_.Below(12'000), random_.Below(100), who},
                                scheduler_.Now() + base::Microseconds(static_cast<int64_t>(random_.Below(5000))),
                                [this, id, who](const absl::StatusOr<Location>& location) {
                                  if (!location.ok()) return;
                                  Created(id, who, *location);
                                  ++created_later_;
                                });
  }

  void Seal(const base::ObjectId& id, Owner who) {
    const bool legal = Unsealed(id, who);
    EXPECT_EQ(store_->Seal(id, who).ok(), legal);
    if (legal) model_.at(id).state = State::kSealed;
  }

  void Abort(const base::ObjectId& id, Owner who) {
    const bool legal = Unsealed(id, who);
    EXPECT_EQ(store_->Abort(id, who).ok(), legal);
    if (legal) End(id, State::kAborted);
  }

  void Acquire(const base::ObjectId& id, Owner who) {
    const bool legal = Sealed(id);
    EXPECT_EQ(store_->Acquire(id, who).ok(), legal);
    if (legal) ++model_.at(id).pins[who];
  }

  void Pin(const base::ObjectId& id, Owner who) {
    const bool legal = model_.count(id) != 0 && !model_.at(id).lingers();
    EXPECT_EQ(store_->Pin(id, who).ok(), legal);
    if (legal) ++model_.at(id).pins[who];
  }

  void Release(const base::ObjectId& id, Owner who) {
    const bool legal = model_.count(id) != 0 && model_.at(id).pins.count(who) != 0;
    EXPECT_EQ(store_->Release(id, who).ok(), legal);
    if (legal) Unpin(id, who, 1);
  }

  void Delete(const base::ObjectId& id) {
    const bool legal = Sealed(id);
    EXPECT_EQ(store_->Delete(id).ok(), legal);
    if (legal) End(id, State::kDeleted);
  }

  void Touch(const base::ObjectId& id) { EXPECT_EQ(store_->Touch(id).ok(), Sealed(id)); }

  // Gets run to their end within this step, or are dropped.
  void Get(const base::ObjectId& id, Owner who) {
    bool answered = false;
    auto handle = store_->GetLater({id, id}, scheduler_.Now(), who, [&](absl::Span<const GetEntry> entries) {
      answered = true;
      for (const GetEntry& entry : entries) {
        EXPECT_EQ(entry.location.has_value(), Sealed(id));
        if (entry.location.has_value()) ++model_.at(id).pins[who];
      }
    });
    if (random_.Chance(0.5)) return;
    scheduler_.RunFor(base::Microseconds(1));
    EXPECT_TRUE(answered);
  }

  void DropOwner(Owner who) {
    store_->DropOwner(who);
    std::vector<base::ObjectId> ids;
    for (const auto& [id, object] : model_) ids.push_back(id);
    for (const base::ObjectId& id : ids) {
      if (Unsealed(id, who)) End(id, State::kAborted);
      const auto it = model_.find(id);
      if (it != model_.end() && it->second.pins.count(who) != 0) Unpin(id, who, it->second.pins[who]);
    }
  }

  void Evicted(const Event& event) {
    // The id may have been created again before this event.
    if (model_.count(event.id) != 0 && model_.at(event.id).location.generation != event.generation) return;
    ASSERT_TRUE(Sealed(event.id));
    EXPECT_TRUE(model_.at(event.id).pins.empty());
    EXPECT_FALSE(!cache_ && event.origin == Origin::kCreatedHere);
    model_.erase(event.id);
  }

  bool Sealed(const base::ObjectId& id) const {
    const auto it = model_.find(id);
    return it != model_.end() && it->second.state == State::kSealed;
  }

  bool Unsealed(const base::ObjectId& id, Owner who) const {
    const auto it = model_.find(id);
    return it != model_.end() && it->second.state == State::kCreated && it->second.creator == who;
  }

  void End(const base::ObjectId& id, State state) {
    ModelObject& object = model_.at(id);
    object.state = state;
    if (object.pins.empty()) model_.erase(id);
  }

  void Unpin(const base::ObjectId& id, Owner who, int count) {
    ModelObject& object = model_.at(id);
    if ((object.pins[who] -= count) == 0) object.pins.erase(who);
    if (object.pins.empty() && object.lingers()) model_.erase(id);
  }

  void Check() {
    ASSERT_EQ(store_->CheckConsistency(), absl::OkStatus());
    ASSERT_EQ(store_->statistics().lost(), 0);
    const std::vector<StoredObject> infos = store_->List(kObjects + 1);
    ASSERT_EQ(infos.size(), model_.size());
    auto it = model_.begin();
    for (const StoredObject& info : infos) {
      const auto& [id, object] = *it++;
      ASSERT_EQ(info.id, id);
      ASSERT_EQ(info.state, object.state);
      ASSERT_EQ(info.location, object.location);
      for (const uint8_t byte : store_->Bytes(info.location)) ASSERT_EQ(byte, object.fill);
    }
  }

  base::Random random_;
  const bool cache_;
  sim::Scheduler scheduler_;
  sim::SimLoop loop_;
  base::TraceHash trace_;
  std::vector<Block> arena_;
  std::unique_ptr<Store> store_;
  std::unique_ptr<Handle> subscription_;
  std::vector<Owner> owners_;
  base::Pending creates_[kWaiting];
  int created_later_ = 0;
  std::map<base::ObjectId, ModelObject> model_;
};

TEST(StoreWorkloadTest, AgreesWithAPlainModel) {
  for (uint64_t seed = 1; seed <= 10; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    Workload(seed, seed % 2 == 0).Run();
  }
}

TEST(StoreWorkloadTest, OneSeedLeavesOneTrace) {
  Workload first(42, false), second(42, false);
  first.Run();
  second.Run();
  EXPECT_EQ(first.trace_hash(), second.trace_hash());
}

}  // namespace
}  // namespace tokamak::store
