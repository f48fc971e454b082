// Interrupt ends calls that wait: another thread or a signal handler fires it, and they return
// kCancelled at once.
//
//   // Where a handler of SIGINT finds it:
//   tokamak::Interrupt interrupt = *tokamak::Interrupt::Make();
//   tokamak::GetOptions options;
//   options.interrupt = &interrupt;
//   // kCancelled when the handler fired it:
//   auto buffer = client.Get(id, std::chrono::hours(1), options);
//
// It stays fired until Reset, and ends calls that begin meanwhile as well; one whose answer has
// come returns that.
// Thread rule: any thread, any number of calls at once; it lives longer than they. Fire may be
// called by a signal handler. Not across fork(): where a child fires it, its parent's is fired.
#pragma once

#include <functional>
#include <utility>

#include "tokamak/status.h"

namespace tokamak {

class Interrupt final {
 public:
  // kResourceExhausted: the process has no descriptors left. One takes two.
  static Result<Interrupt> Make();

  Interrupt(Interrupt&& other) noexcept
      : descriptor_(std::exchange(other.descriptor_, -1)),
        trigger_(std::exchange(other.trigger_, -1)),
        asked_first_(std::move(other.asked_first_)) {}
  Interrupt& operator=(Interrupt&& other) noexcept;
  Interrupt(const Interrupt&) = delete;
  Interrupt& operator=(const Interrupt&) = delete;
  ~Interrupt();

  // Ends the calls that wait with it. Async-signal-safe.
  void Fire() const;

  // From now on calls wait again.
  void Reset() const;

  bool fired() const;

  // From now on a call that waits and is interrupted asks this first, on its own thread, with
  // nothing locked: where it returns true, after Reset, the call goes on with what it has begun. So
  // a put is not sent twice because a signal came. To be set before any call has the interrupt.
  void AskFirst(std::function<bool()> goes_on) { asked_first_ = std::move(goes_on); }
  bool GoesOn() const { return asked_first_ && asked_first_(); }

  // Readable while it is fired.
  int descriptor() const { return descriptor_; }

  // A byte that is written here fires it as well: for those who know a descriptor only, as Python's
  // signal.set_wakeup_fd does.
  int trigger() const { return trigger_; }

 private:
  Interrupt(int descriptor, int trigger) : descriptor_(descriptor), trigger_(trigger) {}
  void Close();

  int descriptor_;  // a pipe's end to read from
  int trigger_;     // and the one to write to
  std::function<bool()> asked_first_;
};

}  // namespace tokamak
