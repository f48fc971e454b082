#include "lib/verbs/kernel/program/program_pages.h"

#include <atomic>
#include <csetjmp>
#include <csignal>
#include <cstring>
#include <mutex>

namespace tokamak::verbs::kernel {
namespace {

constexpr uintptr_t kSmallestPage = 4096;
constexpr int kFaults[] = {SIGSEGV, SIGBUS};

// Where a fault of this thread leads; null while it does not touch the program's memory.
thread_local std::jmp_buf* volatile way_back = nullptr;
struct sigaction faults_before[sizeof(kFaults) / sizeof(kFaults[0])];  // of kFaults

void EndAsByDefault(int fault) {
  struct sigaction standard {};
  standard.sa_handler = SIG_DFL;
  sigaction(fault, &standard, nullptr);  // the repeated instruction ends the process
}

void HandOn(int fault, siginfo_t* info, void* context) {
  const struct sigaction& old = faults_before[fault == kFaults[0] ? 0 : 1];
  const bool has_handler = (old.sa_flags & SA_SIGINFO) != 0 || (old.sa_handler != SIG_DFL && old.sa_handler != SIG_IGN);
  if (!has_handler) return EndAsByDefault(fault);
  if ((old.sa_flags & SA_SIGINFO) != 0) return old.sa_sigaction(fault, info, context);
  old.sa_handler(fault);
}

void OnFault(int fault, siginfo_t* info, void* context) {
  std::jmp_buf* const back = way_back;
  if (back == nullptr) return HandOn(fault, info, context);
  way_back = nullptr;
  std::longjmp(*back, 1);
}

// True once this thread has unblocked these signals: our threads block all signals, and a blocked
// fault ends the process.
thread_local bool faults_open = false;

void UnblockFaults() {
  sigset_t faults;
  sigemptyset(&faults);
  for (const int fault : kFaults) sigaddset(&faults, fault);
  pthread_sigmask(SIG_UNBLOCK, &faults, nullptr);
}

// Leaves each byte as it is, even if others change it. No sanitizer may check this access.
template <bool kWrite>
__attribute__((noinline, no_sanitize("address", "thread", "undefined"))) void TouchPages(uint8_t* memory,
                                                                                         size_t length) {
  uint8_t* const end = memory + length;
  for (uint8_t* at = memory; at < end;) {
    uint8_t value = __atomic_load_n(at, __ATOMIC_RELAXED);
    while (kWrite && !__atomic_compare_exchange_n(at, &value, value, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {
    }
    at += kSmallestPage - (reinterpret_cast<uintptr_t>(at) & (kSmallestPage - 1));
  }
}

// Returns false if `access` faulted.
template <typename Access>
bool Guarded(const Access& access) {
  if (!faults_open) {
    UnblockFaults();
    faults_open = true;
  }
  std::jmp_buf back;
  if (_setjmp(back) != 0) {
    UnblockFaults();  // a handler that does not return leaves its own blocked
    return false;
  }
  way_back = &back;
  std::atomic_signal_fence(std::memory_order_seq_cst);
  access();
  std::atomic_signal_fence(std::memory_order_seq_cst);
  way_back = nullptr;
  return true;
}

}  // namespace

void ProgramPages::TakeFaults() {
  static std::once_flag taken;
  std::call_once(taken, [] {
    for (size_t i = 0; i < sizeof(kFaults) / sizeof(kFaults[0]); ++i) {
      struct sigaction ours {};
      if (sigaction(kFaults[i], nullptr, &faults_before[i]) != 0) continue;
      ours.sa_sigaction = &OnFault;
      ours.sa_mask = faults_before[i].sa_mask;
      ours.sa_flags = SA_SIGINFO | SA_ONSTACK;
      sigaction(kFaults[i], &ours, nullptr);
    }
  });
}

bool ProgramPages::MayRead(const uint8_t* memory, size_t length) const {
  return Guarded([&] { TouchPages<false>(const_cast<uint8_t*>(memory), length); });
}

bool ProgramPages::MayChange(uint8_t* memory, size_t length) const {
  return Guarded([&] { TouchPages<true>(memory, length); });
}

bool ProgramPages::Write(uint8_t* to, const uint8_t* from, size_t length) const {
  return Guarded([&] { std::memcpy(to, from, length); });
}

}  // namespace tokamak::verbs::kernel
