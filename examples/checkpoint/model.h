// Model is what is trained: a linear map that learns another one by stochastic gradient descent
// with momentum.
//
// Its state is weights and momentum in one piece of memory, every byte of which changes in every
// step; inputs are drawn from the number of the step. So the state after N steps is the same in
// every run of one program, and a run that was resumed can be compared with one that was not, bit
// by bit. Thread rule: one thread.
#pragma once

#include <cstdint>
#include <vector>

#include "tokamak/span.h"

namespace tokamak::example {

class Model final {
 public:
  static constexpr uint64_t kColumns = 1024;
  static constexpr uint64_t kRowBytes = kColumns * sizeof(float) * 2;  // a row of weights, and its momentum

  // With a state of about `state_bytes`, a whole number of rows and at least one.
  explicit Model(uint64_t state_bytes);

  // One step; the mean of the squared errors of its batch before it.
  double Step();

  // Steps done.
  uint64_t step() const { return step_; }

  Span<const uint8_t> state() const {
    return {reinterpret_cast<const uint8_t*>(state_.data()), state_.size() * sizeof(float)};
  }
  uint64_t Hash() const;  // XXH64 of the state

  // The memory for reading a state that was saved after `step` steps.
  Span<uint8_t> StateToFill() { return {reinterpret_cast<uint8_t*>(state_.data()), state_.size() * sizeof(float)}; }
  void ContinueFrom(uint64_t step) { step_ = step; }

 private:
  static constexpr uint64_t kBatch = 2;

  uint64_t rows_;
  uint64_t step_ = 0;
  std::vector<float> state_;   // weights, then momentum, row by row
  std::vector<float> inputs_;  // of one batch
};

}  // namespace tokamak::example
