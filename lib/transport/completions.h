// Completions is a completion queue, read in batches.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "lib/verbs/verbs.h"

namespace tokamak::transport {

class Completions final {
 public:
  // Armed.
  static absl::StatusOr<std::unique_ptr<Completions>> Create(verbs::Device& device, base::EventLoop& loop,
                                                             uint32_t depth, std::function<void()> on_event) {
    auto queue = device.CreateCompletionQueue(loop, depth, std::move(on_event));
    if (!queue.ok()) return queue.status();
    std::unique_ptr<Completions> completions(new Completions(*std::move(queue)));
    completions->Arm();
    return completions;
  }

  verbs::CompletionQueue& queue() { return *queue_; }
  void Arm() { queue_->RequestNotify(); }

  // The next one, or null. It stays where it is until the call after.
  const verbs::Completion* Next() {
    if (next_ == count_) {
      next_ = 0;
      count_ = queue_->Poll(absl::MakeSpan(batch_));
      if (count_ == 0) return nullptr;
    }
    return &batch_[next_++];
  }
  // Those that were polled and not read yet are not wanted: their queue pairs are gone.
  void Forget() { next_ = count_ = 0; }

 private:
  static constexpr size_t kBatch = 32;

  explicit Completions(std::unique_ptr<verbs::CompletionQueue> queue) : queue_(std::move(queue)) {}

  std::unique_ptr<verbs::CompletionQueue> queue_;
  std::array<verbs::Completion, kBatch> batch_;
  size_t next_ = 0;
  size_t count_ = 0;
};

}  // namespace tokamak::transport
