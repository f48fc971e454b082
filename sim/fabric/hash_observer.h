// HashObserver folds all events of a fabric into one number, the same for two runs of one seed.
//
// It takes in times, places and sizes: payload without memory gives the same number.
#pragma once

#include <cstdint>

#include "lib/base/event_loop.h"
#include "sim/fabric/link/observer.h"

namespace tokamak::sim {

class HashObserver final : public Observer {
 public:
  explicit HashObserver(const base::EventLoop& loop) : loop_(loop) {}

  void OnEnqueue(const Place& place, const Frame& frame, uint64_t queue) override { Fold(1, place, frame, queue); }
  void OnDequeue(const Place& place, const Frame& frame, uint64_t queue) override { Fold(2, place, frame, queue); }
  void OnTransmit(const Place& place, const Frame& frame) override { Fold(3, place, frame, 0); }
  void OnReceive(const Place& place, const Frame& frame) override { Fold(4, place, frame, 0); }
  void OnDrop(const Place& place, const Frame& frame, DropReason why) override {
    Fold(5, place, frame, static_cast<uint64_t>(why));
  }
  void OnMark(const Place& place, const Frame& frame, uint64_t queue) override { Fold(6, place, frame, queue); }
  void OnPauseSent(const Place& place, uint8_t priority, bool paused) override { Fold(7, place, priority, paused); }
  void OnPaused(const Place& place, uint8_t priority, bool paused) override { Fold(8, place, priority, paused); }
  void OnNotification(const Place& place, const Frame& frame) override { Fold(9, place, frame, 0); }
  void OnWatchdog(const Place& place, uint8_t priority, bool storm) override { Fold(10, place, priority, storm); }

  uint64_t hash() const { return hash_; }
  uint64_t events() const { return events_; }

 private:
  void Fold(uint64_t kind, const Place& place, const Frame& frame, uint64_t value);
  void Fold(uint64_t kind, const Place& place, uint64_t first, uint64_t second);

  const base::EventLoop& loop_;
  uint64_t hash_ = 0;
  uint64_t events_ = 0;
};

}  // namespace tokamak::sim
