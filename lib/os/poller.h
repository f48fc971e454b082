// Poller is a source of work that can be found by looking, without a syscall: a completion queue,
// say.
//
// The loop polls in every round. Before a sleep it arms, then drains: Arm, and then one more Poll.
// Thread rule: the loop's thread only.
#pragma once

namespace tokamak::os {

class Poller {
 public:
  virtual ~Poller() = default;

  // Runs a bounded amount of work; returns true if there was any. Takes the event of descriptor(),
  // so that it is readable no longer. Must be cheap without work.
  virtual bool Poll() = 0;

  // Makes the next work wake the loop: descriptor() becomes readable, or, if there is none, a
  // Signal is raised or another watched descriptor becomes readable. Holds until the first event;
  // called before each sleep, also when armed. Runs no work.
  virtual void Arm() = 0;

  // Becomes readable after Arm. The same for the life of the poller; -1 if something else wakes the
  // loop.
  virtual int descriptor() const = 0;
};

}  // namespace tokamak::os
