// What a program and its device order by the indices of their rings, said to the thread sanitizer.
//
// The program's side of a ring is rdma-core's provider, which is not built with the sanitizer: it
// sees our loads and stores of an index and none of the program's, and would report whatever a
// program does with its memory once a completion told it to. In other builds these are nothing.
// Thread rule: any thread.
#pragma once

#if defined(__SANITIZE_THREAD__)
#include <sanitizer/tsan_interface.h>
#endif

namespace tokamak::verbs::kernel {

#if defined(__SANITIZE_THREAD__)
struct ProgramOrder {
  static constexpr bool kTold = true;
  static inline char of_program, of_device;

  // Before the program's call stores an index, and after ours loaded it.
  static void ProgramStores() { __tsan_release(&of_program); }
  static void DeviceLoads() { __tsan_acquire(&of_program); }
  // The other way round.
  static void DeviceStores() { __tsan_release(&of_device); }
  static void ProgramLoads() { __tsan_acquire(&of_device); }
};
#else
struct ProgramOrder {
  static constexpr bool kTold = false;

  static void ProgramStores() {}
  static void DeviceLoads() {}
  static void DeviceStores() {}
  static void ProgramLoads() {}
};
#endif

}  // namespace tokamak::verbs::kernel
