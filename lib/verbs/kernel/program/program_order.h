// Reports to the thread sanitizer the order that the indices of rings make between a program and
// its device.
//
// The program's side of a ring is rdma-core's provider, which is built without the thread
// sanitizer: that would report the program's use of its memory after a completion. In other builds
// these do nothing.
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

  // Before the program's call stores an index; after our load of it.
  static void ProgramStores() { __tsan_release(&of_program); }
  static void DeviceLoads() { __tsan_acquire(&of_program); }
  // The other direction.
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
