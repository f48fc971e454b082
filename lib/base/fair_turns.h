// FairTurns divides a number of places among parties that do not know of each other, and queues
// turns that find none.
//
// A party's share is that of FairShare (fair_share.h). Turns of one party wait in order of arrival,
// and parties take turns.
// Law: a party with no turn under way waits only while every place is taken.
// Thread rule: one loop.
#pragma once

#include <algorithm>
#include <cstddef>
#include <map>
#include <utility>
#include <vector>

#include "lib/base/check.h"
#include "lib/base/containers/intrusive_list.h"

namespace tokamak::base {

template <typename Party>
class FairTurns final {
  struct Row;

 public:
  // One activity. Unless it is idle, End must come before it is dropped.
  class Turn {
   public:
    Turn() = default;
    Turn(const Turn&) = delete;
    Turn& operator=(const Turn&) = delete;
    bool waits() const { return state_ == State::kWaits; }
    bool runs() const { return state_ == State::kRuns; }

   private:
    friend class FairTurns;
    enum class State { kIdle, kWaits, kRuns };
    State state_ = State::kIdle;
    typename std::map<Party, typename FairTurns::Row>::iterator row_;
    Link<Turn> link_;
  };

  // At most `most_of_one` turns of a party run.
  FairTurns(size_t places, size_t most_of_one) : places_(places), most_of_one_(std::max<size_t>(most_of_one, 1)) {
    CHECK_GT(places, 0u);
    spare_.reserve(kSpareRows);
  }
  FairTurns(const FairTurns&) = delete;
  FairTurns& operator=(const FairTurns&) = delete;
  // Drops waiting and running turns without notice.
  ~FairTurns() {
    for (auto& [party, row] : rows_) {
      while (!row.waiting.empty()) row.waiting.PopFront();
      if (ring_.Listed(&row)) ring_.Remove(&row);
    }
  }

  // Returns true if it runs now, false if it waits until Next returns it.
  [[nodiscard]] bool Begin(const Party& party, Turn& turn) {
    CHECK(turn.state_ == Turn::State::kIdle);
    turn.row_ = RowOf(party);
    Row& row = turn.row_->second;
    if (row.waiting.empty() && MayRun(row)) {
      Run(row, turn);
      return true;
    }
    turn.state_ = Turn::State::kWaits;
    if (row.waiting.empty()) ring_.PushBack(&row);
    row.waiting.PushBack(&turn);
    ++waiting_;
    return false;
  }

  // Ends a running or waiting turn. Call Next after it.
  void End(Turn& turn) {
    CHECK(turn.state_ != Turn::State::kIdle);
    Row& row = turn.row_->second;
    if (turn.waits()) {
      TakeOut(row, turn);
    } else {
      --row.running;
      --running_;
    }
    turn.state_ = Turn::State::kIdle;
    if (row.running == 0 && row.waiting.empty()) Forget(turn.row_);
  }

  // Returns the next turn, now running, or null.
  Turn* Next() {
    for (size_t rows = ring_.size(); rows > 0 && running_ < places_; --rows) {
      Row& row = *ring_.first();
      ring_.Remove(&row);
      ring_.PushBack(&row);
      if (!MayRun(row)) continue;
      Turn* const turn = row.waiting.first();
      TakeOut(row, *turn);
      Run(row, *turn);
      return turn;
    }
    return nullptr;
  }

  size_t running() const { return running_; }
  size_t waiting() const { return waiting_; }

 private:
  struct Row {
    size_t running = 0;
    IntrusiveList<Turn, &Turn::link_> waiting;
    Link<Row> ring_link;  // while a turn waits
  };

  using Rows = std::map<Party, Row>;

  // Rows kept for reuse, since parties come and go with each call.
  static constexpr size_t kSpareRows = 16;

  typename Rows::iterator RowOf(const Party& party) {
    if (const auto found = rows_.find(party); found != rows_.end()) return found;
    if (spare_.empty()) return rows_.try_emplace(party).first;
    typename Rows::node_type row = std::move(spare_.back());
    spare_.pop_back();
    row.key() = party;
    return rows_.insert(std::move(row)).position;
  }

  void Forget(typename Rows::iterator row) {
    typename Rows::node_type idle = rows_.extract(row);
    if (spare_.size() < kSpareRows) spare_.push_back(std::move(idle));
  }

  bool MayRun(const Row& row) const { return row.running < std::min(places_ - running_, most_of_one_); }

  void Run(Row& row, Turn& turn) {
    turn.state_ = Turn::State::kRuns;
    ++row.running;
    ++running_;
  }

  void TakeOut(Row& row, Turn& turn) {
    row.waiting.Remove(&turn);
    --waiting_;
    if (row.waiting.empty()) ring_.Remove(&row);
  }

  const size_t places_;
  const size_t most_of_one_;
  size_t running_ = 0;
  size_t waiting_ = 0;
  Rows rows_;
  std::vector<typename Rows::node_type> spare_;
  IntrusiveList<Row, &Row::ring_link> ring_;
};

}  // namespace tokamak::base
