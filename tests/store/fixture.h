// A store of 64 KiB on a simulated loop, and short words for what tests do with it.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "gtest/gtest.h"
#include "lib/base/object_id.h"
#include "lib/base/text/object_name.h"
#include "lib/base/trace.h"
#include "lib/store/store.h"
#include "sim/time/sim_loop.h"

namespace tokamak::store {

inline base::ObjectId Id(std::string_view name) { return base::ObjectId::FromName(name); }

inline base::ObjectName Name(absl::string_view name) {
  return *base::ObjectName::For(base::ObjectId::FromName({name.data(), name.size()}), name);
}

inline absl::Span<const uint8_t> AsBytes(absl::string_view text) {
  return {reinterpret_cast<const uint8_t*>(text.data()), text.size()};
}

class StoreTest : public testing::Test {
 protected:
  static constexpr uint64_t kCapacity = 64 * 1024;

  explicit StoreTest(Options options = {}) : loop_(scheduler_), arena_(kCapacity / kBlock) {
    store_ = std::make_unique<Store>(memory(), std::move(options), loop_, trace_);
    alice_ = store_->NewOwner();
    bob_ = store_->NewOwner();
  }

  // Whatever a test did, the books must balance.
  void TearDown() override {
    if (store_ != nullptr) {
      EXPECT_EQ(store_->CheckConsistency(), absl::OkStatus());
    }
  }

  absl::Span<uint8_t> memory() { return {arena_[0].bytes, kCapacity}; }

  absl::Status Create(std::string_view name, uint64_t size, Origin origin = Origin::kCreatedHere) {
    if (origin == Origin::kPulled) return store_->CreateCopy({Id(name), base::Generation{7}}, size, 0, alice_).status();
    return store_->Create(Id(name), size, 0, alice_).status();
  }

  void Put(std::string_view name, uint64_t size, Origin origin = Origin::kCreatedHere) {
    ASSERT_EQ(Create(name, size, origin), absl::OkStatus());
    ASSERT_EQ(store_->Seal(Id(name), alice_), absl::OkStatus());
  }

  bool Has(std::string_view name) const { return store_->Contains(Id(name)); }

  base::Time In(base::Duration duration) const { return scheduler_.Now() + duration; }

  static constexpr size_t kBlock = 64;
  struct alignas(kBlock) Block {
    uint8_t bytes[kBlock] = {};
  };

  sim::Scheduler scheduler_;
  sim::SimLoop loop_;
  base::TraceHash trace_;
  std::vector<Block> arena_;
  std::unique_ptr<Store> store_;
  Owner alice_{};
  Owner bob_{};
};

}  // namespace tokamak::store
