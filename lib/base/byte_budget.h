// ByteBudget bounds the memory that one party, such as a program, may make us hold, over all its
// connections.
//
// It may be part of a whole, such as a user's for all programs, and counts there too.
// Law: used() is the sum of the claims, and at most limit(), of the whole as well. One loop. A
// budget outlives its claims, and a whole its parts.
#pragma once

#include <cstdint>
#include <utility>

#include "lib/base/check.h"

namespace tokamak::base {

class ByteBudget final {
 public:
  explicit ByteBudget(uint64_t limit, ByteBudget* whole = nullptr) : limit_(limit), whole_(whole) {}
  ~ByteBudget() { CHECK_EQ(used_, 0u); }
  ByteBudget(const ByteBudget&) = delete;
  ByteBudget& operator=(const ByteBudget&) = delete;

  uint64_t limit() const { return limit_; }
  uint64_t used() const { return used_; }
  bool has(uint64_t bytes) const { return bytes <= limit_ - used_ && (whole_ == nullptr || whole_->has(bytes)); }
  // True if more than half is taken: time to free caches.
  bool tight() const { return used_ > limit_ / 2 || (whole_ != nullptr && whole_->tight()); }

 private:
  friend class ByteClaim;

  void Add(uint64_t bytes) {
    used_ += bytes;
    if (whole_ != nullptr) whole_->Add(bytes);
  }
  void Remove(uint64_t bytes) {
    used_ -= bytes;
    if (whole_ != nullptr) whole_->Remove(bytes);
  }

  const uint64_t limit_;
  ByteBudget* const whole_;
  uint64_t used_ = 0;
};

// The share of one place. Dropping it gives it back.
class ByteClaim final {
 public:
  ByteClaim() = default;
  // Without a budget nothing is counted or refused.
  explicit ByteClaim(ByteBudget* budget) : budget_(budget) {}
  ~ByteClaim() { GiveBack(); }
  ByteClaim(ByteClaim&& o) noexcept : budget_(std::exchange(o.budget_, nullptr)), bytes_(std::exchange(o.bytes_, 0)) {}
  ByteClaim& operator=(ByteClaim&& o) noexcept {
    GiveBack();
    budget_ = std::exchange(o.budget_, nullptr);
    bytes_ = std::exchange(o.bytes_, 0);
    return *this;
  }

  // Sets the bytes held. Returns false, changing nothing, if the budget lacks the difference.
  [[nodiscard]] bool Resize(uint64_t bytes) {
    if (budget_ == nullptr || bytes == bytes_) return true;
    if (bytes < bytes_) {
      budget_->Remove(bytes_ - bytes);
    } else {
      if (!budget_->has(bytes - bytes_)) return false;
      budget_->Add(bytes - bytes_);
    }
    bytes_ = bytes;
    return true;
  }

  uint64_t bytes() const { return bytes_; }
  bool tight() const { return budget_ != nullptr && budget_->tight(); }

 private:
  void GiveBack() {
    if (budget_ != nullptr) budget_->Remove(std::exchange(bytes_, 0));
  }

  ByteBudget* budget_ = nullptr;
  uint64_t bytes_ = 0;
};

}  // namespace tokamak::base
