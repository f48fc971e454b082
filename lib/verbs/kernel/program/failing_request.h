// Counts the send requests that a process's devices take, to find the one that has to fail
// (program_faults.h). Requests that are flushed by queue pairs in Error do not count.
//
// Thread rule: one lock's.
#pragma once

#include <cstdint>

#include "lib/verbs/kernel/program/program_faults.h"

namespace tokamak::verbs::kernel {

class FailingRequest final {
 public:
  explicit FailingRequest(const RequestFault& fault) : fault_(fault) {}

  // True if the request after `more` others is the one that fails.
  bool IsAfter(uint64_t more) const { return taken_ + more + 1 == fault_.number; }

  void Take(uint64_t requests) { taken_ += requests; }

  const RequestFault& fault() const { return fault_; }
  bool has_failed() const { return fault_.number != 0 && taken_ >= fault_.number; }

 private:
  const RequestFault fault_;
  uint64_t taken_ = 0;
};

}  // namespace tokamak::verbs::kernel
