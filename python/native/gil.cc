#include "python/native/gil.h"

#include <pthread.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <memory>
#include <thread>

namespace py = pybind11;

namespace tokamak::python {
namespace {

const Interrupt* OfThisProcess();

// The exception that a handler raised in the main thread, until its call has ended.
struct Raised {
  PyObject* type = nullptr;
  PyObject* value = nullptr;
  PyObject* trace = nullptr;
};
Raised raised;

// In the main thread, without the GIL. False: a handler has raised something.
bool RunHandlers() {
  const PyGILState_STATE state = PyGILState_Ensure();
  OfThisProcess()->Reset();
  if (raised.type == nullptr && PyErr_CheckSignals() != 0) PyErr_Fetch(&raised.type, &raised.value, &raised.trace);
  const bool goes_on = raised.type == nullptr;
  PyGILState_Release(state);
  return goes_on;
}

// The main thread's, one for each process: a forked child's signals are no business of its parent.
const Interrupt* OfThisProcess() {
  static pid_t made_by = 0;
  static std::unique_ptr<const Interrupt> interrupt;
  if (made_by == getpid()) return interrupt.get();
  Result<Interrupt> made = Interrupt::Make();
  if (!made.ok()) return nullptr;
  made->AskFirst([] { return RunHandlers(); });
  interrupt = std::make_unique<const Interrupt>(*std::move(made));
  made_by = getpid();
  return interrupt.get();
}

// signal.set_wakeup_fd: Python exports no C function for it. Returns the descriptor
// that it replaces. Raises on another thread than Python's main one, as in a program that embeds
// Python.
int SetWakeup(int descriptor) {
  static PyObject* const set = py::object(py::module_::import("signal").attr("set_wakeup_fd")).release().ptr();
  return py::handle(set)(descriptor).cast<int>();
}

std::atomic<bool> others_stay_away{false};
std::atomic<int> coming_back{0};
std::thread::id last_thread;

}  // namespace

ReleasedGil::~ReleasedGil() {
  coming_back.fetch_add(1);
  if (others_stay_away.load() && std::this_thread::get_id() != last_thread) {
    coming_back.fetch_sub(1);
    for (;;) pause();
  }
  PyEval_RestoreThread(state_);
  coming_back.fetch_sub(1);
}

void ReleasedGil::ForgetOthersAfterFork() {
  pthread_atfork(nullptr, nullptr, [] { coming_back.store(0); });
}

void ReleasedGil::KeepOthersAway() {
  last_thread = std::this_thread::get_id();
  others_stay_away.store(true);
  // Threads that are about to take the GIL get it first.
  PyThreadState* const state = PyEval_SaveThread();
  while (coming_back.load() > 0) std::this_thread::yield();
  PyEval_RestoreThread(state);
}

SignalWatch::SignalWatch() {
  if (syscall(SYS_gettid) != getpid()) return;
  const Interrupt* const interrupt = OfThisProcess();
  if (interrupt == nullptr) return;
  try {
    if (const int before = SetWakeup(interrupt->trigger()); before >= 0) {
      SetWakeup(before);
      return;
    }
  } catch (const py::error_already_set&) {
    return;
  }
  interrupt->Reset();
  interrupt_ = interrupt;
}

void SignalWatch::End() {
  if (std::exchange(interrupt_, nullptr) == nullptr) return;
  SetWakeup(-1);
  const Raised in_the_call = std::exchange(raised, Raised());
  if (in_the_call.type != nullptr) PyErr_Restore(in_the_call.type, in_the_call.value, in_the_call.trace);
}

}  // namespace tokamak::python
