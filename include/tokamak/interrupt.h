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

#include <utility>

#include "tokamak/status.h"

namespace tokamak {

class Interrupt final {
 public:
  // kResourceExhausted: the process has no descriptors left. One takes two.
  static Result<Interrupt> Make();

  Interrupt(Interrupt&& other) noexcept
      : descriptor_(std::exchange(other.descriptor_, -1)), trigger_(std::exchange(other.trigger_, -1)) {}
  Interrupt& operator=(Interrupt&& other) noexcept;
  Interrupt(const Interrupt&) = delete;
  Interrupt& operator=(const Interrupt&) = delete;
  ~Interrupt();

  // Ends the calls that wait with it. Async-signal-safe.
  void Fire() const;

  // From now on calls wait again.
  void Reset() const;

  bool fired() const;

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
};

}  // namespace tokamak
