#include "python/native/gil.h"

#include <sys/syscall.h>
#include <unistd.h>

#include <memory>

namespace py = pybind11;

namespace tokamak::python {
namespace {

// The main thread's, one for each process: a forked child's signals are no business of its parent.
const Interrupt* OfThisProcess() {
  static pid_t made_by = 0;
  static std::unique_ptr<const Interrupt> interrupt;
  if (made_by == getpid()) return interrupt.get();
  Result<Interrupt> made = Interrupt::Make();
  if (!made.ok()) return nullptr;
  interrupt = std::make_unique<const Interrupt>(*std::move(made));
  made_by = getpid();
  return interrupt.get();
}

// signal.set_wakeup_fd: Python exports no C function for it. Returns who was told until now. It
// raises where this is another thread than Python's main one, as in a program that embeds Python.
int SetWakeup(int descriptor) {
  static PyObject* const set = py::object(py::module_::import("signal").attr("set_wakeup_fd")).release().ptr();
  return py::handle(set)(descriptor).cast<int>();
}

}  // namespace

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
  if (std::exchange(interrupt_, nullptr) != nullptr) SetWakeup(-1);
}

}  // namespace tokamak::python
