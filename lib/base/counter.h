// Counter is a number that one thread adds to and any thread reads, as cheap as a plain one.
//
// What others read is a little old, and two counters need not be of the same moment.
#pragma once

#include <atomic>
#include <cstdint>

namespace tokamak::base {

class Counter final {
 public:
  Counter() = default;
  // A copy is the number as it is now.
  Counter(const Counter& other) : value_(other.value()) {}
  Counter& operator=(const Counter&) = delete;

  // The one thread.
  void Add(uint64_t n) { value_.store(value() + n, std::memory_order_relaxed); }
  Counter& operator+=(uint64_t n) {
    Add(n);
    return *this;
  }
  Counter& operator++() { return *this += 1; }

  // Any thread.
  uint64_t value() const { return value_.load(std::memory_order_relaxed); }
  operator uint64_t() const { return value(); }

 private:
  std::atomic<uint64_t> value_{0};
};

}  // namespace tokamak::base
