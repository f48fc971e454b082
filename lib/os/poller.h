// Poller is a source of work that can be found by looking, without a syscall: a completion queue,
// say.
//
// The loop looks in every round. Before it sleeps it follows "arm, then drain": Arm, and then one
// more Poll, so that work which came between the last look and the arming is not left behind.
// Thread rule: the loop's thread only.
#pragma once

namespace tokamak::os {

class Poller {
 public:
  virtual ~Poller() = default;

  // Runs a bounded amount of ready work, and returns true if there was any. Takes the event of
  // descriptor(), so that it is readable no longer. Must be cheap without work.
  virtual bool Poll() = 0;

  // Makes the next arrival of work signal the loop: descriptor() becomes readable, or, if there is
  // none, a Signal of the loop is raised or another watched descriptor becomes readable. Holds
  // until the first such event; called before each sleep, so also when armed already. Runs no work
  // itself.
  virtual void Arm() = 0;

  // Becomes readable after Arm; the same for the life of the poller, or -1 if something else wakes
  // the loop.
  virtual int descriptor() const = 0;
};

}  // namespace tokamak::os
