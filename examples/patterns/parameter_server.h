// A parameter server for training in steps: workers WRITE their gradients into the server's memory
// and READ the new model from it; the server adds in place and copies nothing.
//
//   server's memory: model, even steps | model, odd steps | gradient of worker 0 | of worker 1 ...
//
//   worker                                        server
//   push: WRITE of the gradient with immediate -> completion; after the last worker's:
//                                                 the next model, into the half that nobody reads
//   pull: READ of that half                    <- WRITE of no bytes with immediate (the step)
//
// No half is read while it is written: a worker pushes for step n + 1 only after its READ of model
// n + 1 has ended, so when all have pushed, nobody reads model n any more, and its half takes model
// n + 2. (Li and others, "Scaling Distributed Machine Learning with the Parameter Server", OSDI
// 2014; this is its bulk-synchronous case.) Thread rule: the one thread of its loop.
#pragma once

#include <cstdint>
#include <cstring>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "examples/patterns/link.h"
#include "examples/patterns/memory.h"

namespace tokamak::example {

// The model's shape, on which server and workers agree.
struct ModelShape {
  uint64_t parameters = 0;
  uint32_t workers = 0;

  uint64_t bytes() const { return parameters * sizeof(float); }
  uint64_t ModelAt(uint32_t step) const { return step % 2 * bytes(); }
  uint64_t GradientAt(uint32_t worker) const { return (2 + worker) * bytes(); }
};

class ParameterServer final {
 public:
  ParameterServer(base::EventLoop& loop, verbs::Device& device, const ModelShape& shape, float learning_rate)
      : loop_(loop), device_(device), shape_(shape), learning_rate_(learning_rate) {}

  // All parameters begin at 0.
  absl::Status Listen() {
    if (!device_.limits().immediate) return absl::UnimplementedError("the device has no immediates");
    auto memory = Memory::Create(device_, shape_.GradientAt(shape_.workers), verbs::kRemoteRead | verbs::kRemoteWrite);
    if (!memory.ok()) return memory.status();
    memory_ = *std::move(memory);
    auto listener = device_.connection_manager().Listen(
        loop_, device_.address(),
        [this](std::unique_ptr<verbs::ConnectionRequest> request) { Check(Accept(*request)); });
    if (listener.ok()) listener_ = *std::move(listener);
    return listener.status();
  }

  const verbs::Address& service() const { return listener_->address(); }
  uint32_t step() const { return step_; }
  // The model of the present step.
  absl::Span<const float> model() const { return {Floats(shape_.ModelAt(step_)), shape_.parameters}; }
  const absl::Status& status() const { return status_; }

 private:
  float* Floats(uint64_t position) const { return reinterpret_cast<float*>(memory_->bytes().data() + position); }

  absl::Status Accept(verbs::ConnectionRequest& request) {
    if (links_.size() == shape_.workers) return absl::OkStatus();  // and the request is rejected
    auto link = Link::Create(loop_, device_, *memory_, [this](const auto& done) { OnCompletion(done); });
    if (!link.ok()) return link.status();
    links_.push_back(*std::move(link));
    if (absl::Status s = links_.back()->Receive(kPush); !s.ok()) return s;
    return links_.back()->Accept(request, [](const absl::Status&) {});
  }

  void OnCompletion(const verbs::Completion& completion) {
    if (completion.status != verbs::CompletionStatus::kSuccess) {
      return Check(absl::UnavailableError(verbs::ToString(completion.status)));
    }
    if (completion.id != kPush) return;
    if (completion.immediate != step_) return Check(absl::InvalidArgumentError("a gradient of another step"));
    // A worker has one receive here for each step, so nobody counts twice.
    if (++pushed_ == shape_.workers) Check(NextStep());
  }

  absl::Status NextStep() {
    const float* old = Floats(shape_.ModelAt(step_));
    float* next = Floats(shape_.ModelAt(step_ + 1));
    for (uint64_t i = 0; i < shape_.parameters; ++i) {
      float sum = 0;
      for (uint32_t worker = 0; worker < shape_.workers; ++worker) sum += Floats(shape_.GradientAt(worker))[i];
      next[i] = old[i] - learning_rate_ * sum / static_cast<float>(shape_.workers);
    }
    ++step_;
    pushed_ = 0;
    for (const auto& link : links_) {
      if (absl::Status s = link->Receive(kPush); !s.ok()) return s;  // before the worker hears of the step
      if (absl::Status s = link->Write(kStep, {}, 0, step_); !s.ok()) return s;
    }
    return absl::OkStatus();
  }

  void Check(const absl::Status& status) {
    if (status_.ok()) status_ = status;
  }

  enum Id : uint64_t { kPush, kStep };

  base::EventLoop& loop_;
  verbs::Device& device_;
  const ModelShape shape_;
  const float learning_rate_;
  std::unique_ptr<Memory> memory_;
  std::unique_ptr<verbs::Listener> listener_;
  std::vector<std::unique_ptr<Link>> links_;
  uint32_t step_ = 0;
  uint32_t pushed_ = 0;  // gradients of this step
  absl::Status status_;
};

class Worker final {
 public:
  // Computes the gradient at `model`. Both lie in the worker's memory.
  using Gradient = std::function<void(absl::Span<const float> model, absl::Span<float> gradient)>;

  // Workers have the numbers from 0 on.
  Worker(base::EventLoop& loop, verbs::Device& device, const ModelShape& shape, uint32_t number, Gradient gradient)
      : loop_(loop), device_(device), shape_(shape), number_(number), gradient_(std::move(gradient)) {}

  // Connects, and takes part in all steps before `last`.
  absl::Status Start(const verbs::Address& service, uint32_t last) {
    last_ = last;
    // The model as pulled, and the gradient to push. The server's step is a WRITE of no bytes.
    auto memory = Memory::Create(device_, 2 * shape_.bytes(), verbs::kRemoteWrite);
    if (!memory.ok()) return memory.status();
    memory_ = *std::move(memory);
    auto link = Link::Create(loop_, device_, *memory_, [this](const auto& done) { OnCompletion(done); });
    if (!link.ok()) return link.status();
    link_ = *std::move(link);
    if (absl::Status s = link_->Receive(kStep); !s.ok()) return s;
    return link_->Connect(device_.connection_manager(), service,
                          [this](const absl::Status& up) { Check(up.ok() ? Pull(0) : up); });
  }

  bool done() const { return step_ == last_ || !status_.ok(); }
  // As pulled last.
  absl::Span<const float> model() const {
    return {reinterpret_cast<const float*>(memory_->bytes().data()), shape_.parameters};
  }
  const absl::Status& status() const { return status_; }

 private:
  enum Id : uint64_t { kStep, kPull, kPush };

  absl::Status Pull(uint32_t step) {
    pulling_ = step;
    return link_->Read(kPull, memory_->bytes().first(shape_.bytes()), shape_.ModelAt(step));
  }

  absl::Status OnPulled() {
    step_ = pulling_;
    if (step_ == last_) return absl::OkStatus();
    const absl::Span<uint8_t> gradient = memory_->bytes().subspan(shape_.bytes());
    gradient_(model(), {reinterpret_cast<float*>(gradient.data()), shape_.parameters});
    return link_->Write(kPush, gradient, shape_.GradientAt(number_), step_);
  }

  absl::Status OnStep(uint32_t step) {
    if (step != step_ + 1) return absl::InvalidArgumentError("the server skips a step");
    if (absl::Status s = link_->Receive(kStep); !s.ok()) return s;
    return Pull(step);
  }

  void OnCompletion(const verbs::Completion& completion) {
    if (completion.status != verbs::CompletionStatus::kSuccess) {
      return Check(absl::UnavailableError(verbs::ToString(completion.status)));
    }
    if (completion.id == kPull) Check(OnPulled());
    if (completion.id == kStep) Check(OnStep(completion.immediate));
  }

  void Check(const absl::Status& status) {
    if (status_.ok()) status_ = status;
  }

  base::EventLoop& loop_;
  verbs::Device& device_;
  const ModelShape shape_;
  const uint32_t number_;
  const Gradient gradient_;
  std::unique_ptr<Memory> memory_;
  std::unique_ptr<Link> link_;
  uint32_t last_ = 0;
  uint32_t step_ = 0;
  uint32_t pulling_ = 0;
  absl::Status status_;
};

}  // namespace tokamak::example
