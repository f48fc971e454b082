// EgressPort is the sending half of a port: a queue for each priority, the choice among them, and
// the pauses that the neighbour asked for.
//
// A pause frame goes first, made in its turn: it states what holds then. A pause stops a priority
// between frames, and ends by itself (802.1Qbb, 802.1Q clause 36).
#pragma once

#include <array>
#include <cstdint>

#include "lib/base/event_loop.h"
#include "lib/base/time.h"
#include "sim/fabric/link/environment.h"
#include "sim/fabric/link/link.h"
#include "sim/fabric/link/pause_frame.h"
#include "sim/fabric/switch/class_scheduler.h"
#include "sim/fabric/switch/frame_queue.h"
#include "sim/fabric/switch/port_counters.h"

namespace tokamak::sim {

class EgressOwner {
 public:
  virtual ~EgressOwner() = default;

  // A frame leaves for the wire. Nothing may be enqueued here during the call.
  virtual void OnDequeue(uint32_t port, const Frame& frame) = 0;

  // As SendPause asked for.
  virtual PauseFrame MakePause(uint32_t port) = 0;

  // As TellWhenIdle asked for.
  virtual void OnIdle(uint32_t port) = 0;

  virtual void OnResumed(uint32_t port) = 0;
};

class alignas(64) EgressPort final {
 public:
  // `link` and `owner` must outlive it. `place`: for observers; its port is the owner's.
  EgressPort(Environment& environment, EgressOwner& owner, Link& link, const Place& place,
             const SchedulingOptions& scheduling)
      : environment_(environment), owner_(owner), link_(link), place_(place), scheduler_(scheduling) {}
  ~EgressPort();
  EgressPort(const EgressPort&) = delete;
  EgressPort& operator=(const EgressPort&) = delete;

  // Sends it in its turn, perhaps during the call.
  void Enqueue(Frame* frame);

  // Goes next; one that has not left yet suffices.
  void SendPause();

  void OnPause(const PauseFrame& pause);

  // Forgets the neighbour's pauses: it forgot them, or is another one.
  void ForgetPauses();

  // Sets whether pauses of this priority are ignored.
  void Disregard(uint8_t priority, bool disregard);

  FrameQueue TakeQueue(uint8_t priority);

  // True if the wire is free and nothing can be sent.
  bool idle() const { return link_.free() && !Startable(); }

  // Asks for one OnIdle, never during the call.
  void TellWhenIdle();

  bool paused(uint8_t priority) const { return (paused_ & 1u << priority) != 0; }
  // Start of the pause; and the neighbour's last request.
  base::Time paused_since(uint8_t priority) const { return since_[priority]; }
  base::Time last_paused(uint8_t priority) const { return last_paused_[priority]; }

  const FrameQueue& queue(uint8_t priority) const { return queues_[priority]; }
  uint64_t frames_queued() const;

  const Place& place() const { return place_; }
  Link& link() const { return link_; }

  // The owner adds its own. Pauses count up to the time of reading.
  PortCounters& own_counters() { return counters_; }
  PortCounters counters() const;

 private:
  bool Startable() const { return pause_due_ || (filled_ & ~blocked()) != 0; }
  uint8_t blocked() const { return static_cast<uint8_t>(paused_ & ~disregarded_); }
  void Kick();
  void Arm();
  void OnFree();
  void StartNext();
  Frame* MakePauseFrame();
  Frame* NextFrame();
  void Pause(uint8_t priority, base::Duration time);
  void Resume(uint8_t priority);
  void ArmExpiry();
  void OnExpiry();

  // Members read for each frame come first.
  Environment& environment_;
  EgressOwner& owner_;
  Link& link_;
  const Place place_;
  uint8_t filled_ = 0;       // bits: priorities with frames
  uint8_t paused_ = 0;       // bits: stopped by the neighbour
  uint8_t disregarded_ = 0;  // bits: pauses ignored
  bool pause_due_ = false;
  bool starting_ = false;
  bool armed_ = false;
  bool tell_idle_ = false;
  base::Timer free_;  // the wire is free
  std::array<FrameQueue, kPriorities> queues_;
  ClassScheduler scheduler_;
  base::Timer expiry_;
  std::array<base::Time, kPriorities> until_;
  std::array<base::Time, kPriorities> since_;
  std::array<base::Time, kPriorities> last_paused_;
  PortCounters counters_;
};

}  // namespace tokamak::sim
