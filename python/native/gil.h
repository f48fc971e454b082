// Waiting without the GIL, in such a way that signals are handled meanwhile.
//
// Python handles a signal in its main thread, between two steps of the interpreter: a thread that
// waits in C++ makes none. So while the main thread waits, Python writes the signals that it gets
// to an Interrupt (signal.set_wakeup_fd), which ends the call; then the handlers run, and what they
// raise, as that of Ctrl-C does, is raised here. Where they raise nothing the call goes on with the
// time that is left.
// Thread rule: with the GIL.
#pragma once

#include <pybind11/pybind11.h>

#include <chrono>
#include <type_traits>
#include <utility>
#include <vector>

#include "tokamak/interrupt.h"
#include "tokamak/status.h"
#include "tokamak/timeout.h"

namespace tokamak::python {

// While it lives, signals that Python handles fire interrupt(). None where this is not the main
// thread, or somebody else, such as an event loop, is told of signals.
class SignalWatch final {
 public:
  SignalWatch();
  ~SignalWatch() { End(); }
  SignalWatch(const SignalWatch&) = delete;
  SignalWatch& operator=(const SignalWatch&) = delete;

  void End();
  const Interrupt* interrupt() const { return interrupt_; }

 private:
  const Interrupt* interrupt_ = nullptr;
};

// Runs handlers of signals that came, and raises what they raise.
inline void HandleSignals() {
  if (PyErr_CheckSignals() != 0) throw pybind11::error_already_set();
}

inline bool IsCancelled(const Status& status) { return status.code() == StatusCode::kCancelled; }
template <typename T>
bool IsCancelled(const Result<T>& result) {
  return !result.ok() && IsCancelled(result.status());
}
template <typename T>
bool IsCancelled(const std::vector<T>& results) {
  for (const T& result : results) {
    if (IsCancelled(result)) return true;
  }
  return false;
}

// Without the GIL while it lives. When the interpreter ends a thread that comes back waits for the
// end of the process: to have the GIL is no longer possible, and Python would end the thread in the
// midst of C++, which cannot be unwound so.
class ReleasedGil final {
 public:
  ReleasedGil() : state_(PyEval_SaveThread()) {}
  ~ReleasedGil();
  ReleasedGil(const ReleasedGil&) = delete;
  ReleasedGil& operator=(const ReleasedGil&) = delete;

  // From now on no thread but this one comes back. To be called when the interpreter is about to
  // end (atexit).
  static void KeepOthersAway();
  // A forked child has none of its parent's other threads. Once.
  static void ForgetOthersAfterFork();

 private:
  PyThreadState* const state_;
};

template <typename Call>
auto WithoutGil(Call call) {
  const ReleasedGil released;
  return call();
}

// Returns call(left, interrupt), which may wait as long as `timeout`. With `given`, that alone
// interrupts it.
template <typename Call>
auto WaitWithoutGil(Timeout timeout, const Interrupt* given, Call call) {
  using Clock = std::chrono::steady_clock;
  if (given != nullptr || timeout.duration() == timeout.duration().zero()) {
    return WithoutGil([&] { return call(timeout, given); });
  }
  const Clock::time_point end = Clock::now() + timeout.duration();
  for (;;) {
    SignalWatch watch;
    HandleSignals();  // what came before the watch began
    auto result = WithoutGil([&] { return call(timeout, watch.interrupt()); });
    watch.End();
    if (!IsCancelled(result)) return result;
    HandleSignals();
    timeout = end - Clock::now();
  }
}

}  // namespace tokamak::python
