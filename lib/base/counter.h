// Counter is a number that one thread adds to and any thread reads, as cheap as a plain one.
//
// Other threads may read a slightly old value, and two counters at different moments.
#pragma once

#include <atomic>
#include <cstdint>

namespace tokamak::base {

class Counter final {
 public:
  Counter() = default;
  Counter(const Counter& other) : value_(other.value()) {}
  Counter& operator=(const Counter&) = delete;

  // Only on the one thread.
  void Add(uint64_t n) { value_.store(value() + n, std::memory_order_relaxed); }
  Counter& operator+=(uint64_t n) {
    Add(n);
    return *this;
  }
  Counter& operator++() { return *this += 1; }

  // On any thread.
  uint64_t value() const { return value_.load(std::memory_order_relaxed); }
  operator uint64_t() const { return value(); }

 private:
  std::atomic<uint64_t> value_{0};
};

}  // namespace tokamak::base
