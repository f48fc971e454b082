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

  // Runs what is ready, a bounded amount of it, and returns whether anything was. Where
  // descriptor() is readable, Poll takes its event, so that it is readable no longer. Must be cheap
  // when there is nothing.
  virtual bool Poll() = 0;

  // From now on work that arrives makes descriptor() readable, or, where there is none, raises a
  // Signal of the loop or makes another descriptor readable that the loop watches. Holds until the
  // first such event; called before each sleep, so also when armed already. Runs nothing itself.
  virtual void Arm() = 0;

  // What becomes readable, the same for the life of the poller, or -1 where something else wakes
  // the loop.
  virtual int descriptor() const = 0;
};

}  // namespace tokamak::os
