// Pieces of a fabric without NICs: frames made by hand, and a place where they end.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "gtest/gtest.h"
#include "sim/fabric/link/environment.h"
#include "sim/fabric/link/link.h"
#include "sim/fabric/switch/switch.h"
#include "sim/time/sim_loop.h"

namespace tokamak::sim {

// Remembers what came, and gives the frames back.
class Sink final : public FrameReceiver {
 public:
  struct Arrived {
    base::Time time;
    uint32_t psn;
    uint8_t priority;
    uint32_t wire_bytes;
    bool corrupt;
    bool marked;
  };

  Sink(base::EventLoop& loop, FramePool& frames) : loop_(loop), frames_(frames) {}

  void Receive(Frame* frame, uint32_t) override {
    if (frame->is_pause) {
      pauses.push_back({loop_.Now(), frame->pause});
    } else {
      arrived.push_back({loop_.Now(), frame->headers.psn, frame->priority, frame->wire_bytes, frame->corrupt,
                         frame->ecn == verbs::soft::Ecn::kMarked});
    }
    frames_.Give(frame);
  }

  struct Paused {
    base::Time time;
    PauseFrame frame;
  };
  std::vector<Arrived> arrived;
  std::vector<Paused> pauses;

 private:
  base::EventLoop& loop_;
  FramePool& frames_;
};

class PartsTest : public testing::Test {
 protected:
  Frame* MakeFrame(uint32_t psn, uint8_t priority = 0, uint32_t wire_bytes = 1000, uint32_t destination = 0) {
    Frame* frame = frames_.Take();
    verbs::soft::Packet packet;
    packet.psn = psn;
    packet.ecn = verbs::soft::Ecn::kCapable0;
    frame->Load(packet);
    frame->priority = priority;
    frame->wire_bytes = wire_bytes;
    frame->destination = destination;
    frame->flow = psn;
    return frame;
  }

  Frame* MakePause(uint8_t priority, uint16_t quanta) {
    Frame* frame = frames_.Take();
    frame->is_pause = true;
    frame->wire_bytes = PauseFrame::kWireBytes;
    frame->pause = PauseFrame();
    frame->pause.enabled = static_cast<uint8_t>(1u << priority);
    frame->pause.quanta[priority] = quanta;
    return frame;
  }

  int64_t Now() const { return (loop_.Now() - base::Time()).picoseconds(); }
  static int64_t Since(base::Time time) { return (time - base::Time()).picoseconds(); }

  Scheduler scheduler_;
  SimLoop loop_{scheduler_};
  FramePool frames_;
  Environment environment_{loop_, frames_, nullptr};
};

// A switch whose port i sends to sink(i), which is destination i.
class SwitchTest : public PartsTest {
 protected:
  void Build(uint32_t ports, const SwitchOptions& options, const LinkParameters& parameters = {}) {
    switch_ = std::make_unique<Switch>(environment_, options, 0, base::Random(1));
    RouteTable routes(1, ports);
    for (uint32_t i = 0; i < ports; ++i) {
      sinks_.push_back(std::make_unique<Sink>(loop_, frames_));
      links_.push_back(std::make_unique<Link>(environment_, parameters, Place{0, i}));
      links_.back()->Connect(*sinks_.back(), 0);
      ASSERT_EQ(switch_->AddPort(*links_.back()), i);
      routes.Set(i, routes.AddGroup({i}));
    }
    ASSERT_TRUE(switch_->Start().ok());
    switch_->SetRoutes(std::move(routes));
  }

  // A frame comes by one port, for another.
  void Arrive(uint32_t from, uint32_t to, uint32_t psn, uint8_t priority = 0, uint32_t wire_bytes = 1000) {
    switch_->Receive(MakeFrame(psn, priority, wire_bytes, to), from);
  }
  void Pause(uint32_t port, uint8_t priority, uint16_t quanta) { switch_->Receive(MakePause(priority, quanta), port); }

  Sink& sink(uint32_t port) { return *sinks_[port]; }
  PriorityCounters counters(uint32_t port, uint8_t priority) { return switch_->counters(port).priorities[priority]; }
  uint64_t drops(uint32_t port, DropReason reason) {
    return switch_->counters(port).drops[static_cast<size_t>(reason)];
  }

  std::vector<std::unique_ptr<Sink>> sinks_;
  std::vector<std::unique_ptr<Link>> links_;
  std::unique_ptr<Switch> switch_;
};

}  // namespace tokamak::sim
