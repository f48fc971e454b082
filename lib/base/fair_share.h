// FairShare divides a number of places among parties that do not know of each other.
//
// A party has at most as many as are free beside its own: one that wants all gets half, and n such
// leave an (n + 1)th part for the next. FairTurns adds waiting. A FairShare outlives its claims.
// Law: a party without places is refused one place only while every place is taken.
// Thread rule: one loop.
#pragma once

#include <cstddef>
#include <map>
#include <utility>

#include "lib/base/check.h"

namespace tokamak::base {

template <typename Party>
class FairShare final {
  using Rows = std::map<Party, size_t>;

 public:
  // Places of one party. Dropping it gives them back.
  class Claim final {
   public:
    Claim() = default;
    Claim(Claim&& other) noexcept
        : share_(std::exchange(other.share_, nullptr)), row_(other.row_), count_(other.count_) {}
    Claim& operator=(Claim&& other) noexcept {
      GiveBack();
      share_ = std::exchange(other.share_, nullptr);
      row_ = other.row_;
      count_ = other.count_;
      return *this;
    }
    ~Claim() { GiveBack(); }

   private:
    friend class FairShare;
    void GiveBack() {
      if (share_ != nullptr) share_->GiveBack(row_, count_);
    }

    Claim(FairShare* share, typename Rows::iterator row, size_t count) : share_(share), row_(row), count_(count) {}

    FairShare* share_ = nullptr;
    typename Rows::iterator row_{};
    size_t count_ = 0;
  };

  explicit FairShare(size_t places) : places_(places) {}
  FairShare(const FairShare&) = delete;
  FairShare& operator=(const FairShare&) = delete;
  ~FairShare() { CHECK_EQ(taken_, 0u); }

  // True if `party` may have `count` more, all together.
  bool MayTake(const Party& party, size_t count = 1) const {
    if (count == 0) return true;
    const auto row = rows_.find(party);
    const size_t held = row == rows_.end() ? 0 : row->second;
    return count <= places_ - taken_ && held + count - 1 < places_ - taken_ - (count - 1);
  }

  // Takes free places without asking MayTake.
  [[nodiscard]] Claim Take(const Party& party, size_t count = 1) {
    if (count == 0) return Claim();
    CHECK_LE(count, places_ - taken_);
    const auto row = rows_.try_emplace(party, 0).first;
    row->second += count;
    taken_ += count;
    return Claim(this, row, count);
  }

  size_t taken() const { return taken_; }
  bool full() const { return taken_ == places_; }

 private:
  void GiveBack(typename Rows::iterator row, size_t count) {
    taken_ -= count;
    row->second -= count;
    if (row->second == 0) rows_.erase(row);
  }

  const size_t places_;
  size_t taken_ = 0;
  Rows rows_;
};

}  // namespace tokamak::base
