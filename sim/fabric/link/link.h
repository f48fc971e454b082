// Link is one direction of a cable: it puts one frame after the other on the wire, and each arrives
// at the other end when its last byte has travelled there.
//
// It has no queue: the sender waits until `free_at()`. It may lose or damage packets
// (loss_model.h); while it is down it loses all, pause frames too.
//
// Law: sent == delivered + lost + dropped_down + in_flight(), in frames.
#pragma once

#include <cstdint>
#include <memory>

#include "lib/base/event_loop.h"
#include "lib/base/random.h"
#include "lib/base/time.h"
#include "sim/fabric/link/environment.h"
#include "sim/fabric/link/flight_ring.h"
#include "sim/fabric/link/loss_model.h"
#include "sim/fabric/link/rate.h"

namespace tokamak::sim {

struct LinkParameters {
  Rate rate = Rate::Gigabits(100);
  base::Duration delay = base::Microseconds(1);  // from end to end
};

struct LinkCounters {
  uint64_t sent = 0;  // frames, pause frames included
  uint64_t sent_bytes = 0;
  uint64_t pauses_sent = 0;
  uint64_t delivered = 0;
  uint64_t corrupted = 0;  // among the delivered
  uint64_t lost = 0;
  uint64_t dropped_down = 0;
};

// Takes the frame over.
class FrameReceiver {
 public:
  virtual ~FrameReceiver() = default;
  virtual void Receive(Frame* frame, uint32_t port) = 0;
};

class alignas(64) Link final {
 public:
  // `from`: the sending port, for observers.
  Link(Environment& environment, const LinkParameters& parameters, const Place& from)
      : environment_(environment), parameters_(parameters), from_(from) {}
  ~Link();
  Link(const Link&) = delete;
  Link& operator=(const Link&) = delete;

  void Connect(FrameReceiver& to, uint32_t port) {
    to_ = &to;
    to_port_ = port;
  }

  // Take effect now. The options must be valid.
  void SetLoss(const LossOptions& options, const base::Random& random);

  void SetUp(bool up);
  bool up() const { return up_; }

  // The wire must be free.
  void Transmit(Frame* frame);

  // Time when the last byte of the last frame leaves.
  base::Time free_at() const { return free_at_; }
  bool free() const { return environment_.loop.Now() >= free_at_; }

  const LinkParameters& parameters() const { return parameters_; }
  const LinkCounters& counters() const { return counters_; }
  uint64_t in_flight() const { return flying_.size(); }

 private:
  void Arrive();
  void Deliver(Frame* frame);
  void Drop(Frame* frame, DropReason reason, uint64_t* counter);
  void DropFlying();

  // Members read for each frame come first, in two cache lines.
  Environment& environment_;
  const LinkParameters parameters_;
  base::Time free_at_;
  bool up_ = true;
  uint32_t to_port_ = 0;
  FrameReceiver* to_ = nullptr;
  FlightRing flying_;
  base::Timer arrival_;  // of the first frame in flight
  LinkCounters counters_;
  const Place from_;
  std::unique_ptr<LossModel> loss_;  // null: no losses
};

}  // namespace tokamak::sim
