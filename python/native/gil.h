// Waiting without the GIL, in such a way that signals are handled meanwhile.
//
// Python handles a signal in its main thread, between two steps of the interpreter: a thread that
// waits in C++ makes none. So while the main thread waits, Python writes the signals that it gets
// to an Interrupt (signal.set_wakeup_fd), which has the call ask the handlers; what they raise, as
// that of Ctrl-C does, ends it and is raised here. Where they raise nothing it goes on.
// Thread rule: with the GIL.
#pragma once

#include <pybind11/pybind11.h>

#include <utility>

#include "tokamak/interrupt.h"

namespace tokamak::python {

// While it lives, signals that Python handles fire interrupt(). None where this is not the main
// thread, or an event loop has taken the wake-up descriptor of signals.
class SignalWatch final {
 public:
  SignalWatch();
  ~SignalWatch() {
    End();
    PyErr_Clear();
  }
  SignalWatch(const SignalWatch&) = delete;
  SignalWatch& operator=(const SignalWatch&) = delete;

  // Sets what a handler has raised meanwhile as Python's error.
  void End();
  const Interrupt* interrupt() const { return interrupt_; }

 private:
  const Interrupt* interrupt_ = nullptr;
};

// Runs handlers of signals that came, and raises what they raise.
inline void HandleSignals() {
  if (PyErr_CheckSignals() != 0) throw pybind11::error_already_set();
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

// Returns call(interrupt), which may wait. With `given`, that alone interrupts it.
template <typename Call>
auto WaitWithoutGil(const Interrupt* given, Call call) {
  if (given != nullptr) return WithoutGil([&] { return call(given); });
  SignalWatch watch;
  HandleSignals();  // what came before the watch began
  auto result = WithoutGil([&] { return call(watch.interrupt()); });
  watch.End();
  if (PyErr_Occurred() != nullptr) throw pybind11::error_already_set();  // a handler raised it
  return result;
}

}  // namespace tokamak::python
