// A membership with a store and a directory that may be away; the test moves the clock.
#pragma once

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "lib/base/random.h"
#include "lib/base/trace.h"
#include "lib/node/cluster/membership.h"
#include "sim/time/sim_loop.h"
#include "tests/node/trouble_directory.h"

namespace tokamak::node {

// Records the changes that membership makes to the copies of the node.
class FakeCopies final : public Copies {
 public:
  explicit FakeCopies(store::Store& store) : store_(store) {}
  bool StaysEntered(const base::ObjectVersion& version) const override { return coming == version; }
  void OnWithdraw(const base::ObjectVersion& version) override { withdrawn.push_back(version); }
  void OnDeletedIsNamed(const base::ObjectVersion&) override {}
  void Drop(const base::ObjectVersion& version, const absl::Status& why) override {
    dropped.emplace_back(version, why);
    store_.DeleteVersion(version).IgnoreError();
  }
  base::Pending AwaitVouched(const base::ObjectVersion&, base::Task) override { return nullptr; }

  std::optional<base::ObjectVersion> coming;
  std::vector<base::ObjectVersion> withdrawn;
  std::vector<std::pair<base::ObjectVersion, absl::Status>> dropped;

 private:
  store::Store& store_;
};

class MembershipTest : public testing::Test {
 protected:
  static constexpr size_t kArena = 1 << 20;
  struct alignas(64) Block {
    uint8_t bytes[64];
  };

  MembershipTest() { Make(); }

  void Make() {
    membership_.reset();
    membership_ = std::make_unique<Membership>(
        loop_, store_, directory_, copies_, directory::NodeInfo{"a", 1, {"10.0.0.1:7000"}, "soft", kArena}, options_);
  }

  void UseMaxDirty(size_t versions) {
    options_.max_dirty = versions;
    Make();
  }
  static base::ObjectId Id(int number) { return base::ObjectId::FromName(std::to_string(number)); }
  void Start() {
    membership_->Start([this](const absl::Status& status) { joined_.push_back(status); });
  }
  void Put(int number, uint64_t size = 100) {
    ASSERT_TRUE(store_.Create(Id(number), size, 0, me_).ok());
    ASSERT_TRUE(store_.Seal(Id(number), me_).ok());
  }
  base::ObjectVersion Version(int number) const { return {Id(number), store_.Find(Id(number))->generation}; }
  // Another node, "b", is alive and says a word.
  void OtherJoins() {
    directory::JoinRequest request;
    request.node = {"b", 1, {"10.0.0.2:7000"}, "soft", 0};
    request.lease = base::Seconds(1000);
    calls_.push_back(
        directory_.local().Join(request, base::Seconds(1), [](const auto& joined) { EXPECT_TRUE(joined.ok()); }));
  }
  void Say(const directory::NodeId& node, directory::Update::Kind kind, const base::ObjectVersion& version,
           uint64_t size = 100) {
    directory::Update word;
    word.kind = kind;
    word.version = version;
    word.data_size = size;
    calls_.push_back(directory_.local().Update(node, {}, {word}, base::Seconds(1), [](const auto& statuses) {
      ASSERT_TRUE(statuses.ok());
      EXPECT_EQ(statuses->front(), absl::OkStatus());
    }));
    scheduler_.RunFor(base::Nanoseconds(1));
  }
  // Whether the directory says that this node holds it.
  bool Announced(int number) {
    bool held = false;
    directory::LocateRequest request;
    request.id = Id(number);
    request.deadline = base::Seconds(1);
    const base::Pending call = directory_.local().Locate(request, [&](const auto& info) { held = info.ok(); });
    scheduler_.RunFor(base::Nanoseconds(1));
    return held;
  }

  // True if a deletion would reach this node.
  bool IsHeldOrComing(const base::ObjectVersion& version) {
    bool found = false;
    const base::Pending call =
        directory_.local().Held("a", "", base::Seconds(1), [&](const absl::StatusOr<directory::HeldReply>& held) {
          found = held.ok() && std::count(held->versions.begin(), held->versions.end(), version) != 0;
        });
    scheduler_.RunFor(base::Nanoseconds(1));
    return found;
  }

  absl::Status DeleteAtDirectory(const base::ObjectId& id, const std::vector<directory::NodeId>& dropped = {}) {
    absl::Status status = absl::InternalError("no answer");
    const base::Pending call = directory_.local().Delete({id, base::kNoGeneration, dropped, ""}, base::Seconds(1),
                                                         [&](const auto& reply) { status = reply.status(); });
    scheduler_.RunFor(base::Nanoseconds(1));
    return status;
  }
  // Whether the directory waits for this node until it has told all, and no longer.
  void ExpectWaitedForUntilAllIsTold(int objects) {
    absl::Status why = DeleteAtDirectory(Id(-1));
    for (int i = 0; i < 500 && absl::IsUnavailable(why); ++i) {
      scheduler_.RunFor(base::Milliseconds(10));
      why = DeleteAtDirectory(Id(-1));
    }
    EXPECT_TRUE(absl::IsNotFound(why)) << why;
    for (int i = 0; i < objects; ++i) ASSERT_TRUE(Announced(i)) << i;
  }

  sim::Scheduler scheduler_;
  sim::SimLoop loop_{scheduler_};
  base::NoTrace trace_;
  std::vector<Block> arena_ = std::vector<Block>(kArena / sizeof(Block));
  static store::Options Cache() {
    store::Options options;
    options.cache = true;  // so that something can be evicted
    return options;
  }
  store::Store store_{{arena_[0].bytes, kArena}, Cache(), loop_, trace_};
  const store::Owner me_ = store_.NewOwner();
  TroubleDirectory directory_{loop_};
  FakeCopies copies_{store_};
  std::vector<base::Pending> calls_;
  MembershipOptions options_;
  std::unique_ptr<Membership> membership_;
  std::vector<absl::Status> joined_;
};

}  // namespace tokamak::node
