// Poller is a source of work that can be found by looking, without a syscall: a completion queue,
// say.
//
// Polled in every round; before a sleep, "arm, then drain": Arm, and one more Poll.
// Thread rule: the loop's thread only.
#pragma once

namespace tokamak::os {

class Poller {
 public:
  virtual ~Poller() = default;

  // Runs a bounded amount of work; returns true if there was any. Takes descriptor()'s event. Must
  // be cheap without work.
  virtual bool Poll() = 0;

  // Makes the next work wake the loop: descriptor() becomes readable, or, if there is none, a
  // Signal is raised or another watched descriptor becomes readable. Holds until the first event;
  // called before each sleep, also when armed. Runs no work.
  virtual void Arm() = 0;

  // Readable after Arm; constant; -1 if something else wakes the loop.
  virtual int descriptor() const = 0;
};

}  // namespace tokamak::os
