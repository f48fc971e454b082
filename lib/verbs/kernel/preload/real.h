// The C library's own functions, behind those of ours that have their names.
//
// REAL(open)(path, flags) calls the next function of that name after ours. It is looked up at the
// first use, as programs call before our constructors have run.
//
// Thread rule: any thread.
#pragma once

#include <dlfcn.h>

#include <atomic>

namespace tokamak::verbs::kernel::preload {

// One `Holder` for each name.
template <typename Function, typename Holder>
Function* FindReal(const char* name) {
  static std::atomic<Function*> found{nullptr};
  Function* function = found.load(std::memory_order_relaxed);
  if (function == nullptr) {
    function = reinterpret_cast<Function*>(dlsym(RTLD_NEXT, name));
    found.store(function, std::memory_order_relaxed);
  }
  return function;
}

}  // namespace tokamak::verbs::kernel::preload

#define REAL(name)                                                                     \
  ([]() {                                                                              \
    struct Holder;                                                                     \
    return ::tokamak::verbs::kernel::preload::FindReal<decltype(name), Holder>(#name); \
  }())
