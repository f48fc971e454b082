#include "lib/os/process/forks.h"

#include <pthread.h>

#include <atomic>

namespace tokamak::os {
namespace {

std::atomic<uint64_t> forks{0};

void CountFork() { forks.fetch_add(1, std::memory_order_relaxed); }

}  // namespace

uint64_t ForkCount() {
  static const int registered = pthread_atfork(nullptr, nullptr, &CountFork);
  static_cast<void>(registered);  // without memory for it, forks go unnoticed
  return forks.load(std::memory_order_relaxed);
}

}  // namespace tokamak::os
