// CompletionPair is the two completion queues of a queue pair, of its sends and of its receives,
// which may be one.
//
// Thread rule: the thread of their loop, which is one.
#pragma once

#include <memory>
#include <utility>

#include "absl/status/statusor.h"
#include "lib/verbs/ibv/completion_queue.h"
#include "lib/verbs/verbs.h"

namespace tokamak::verbs::ibv {

class CompletionPair final {
 public:
  // kInvalidArgument: they are not queues of this device, or not of one loop.
  static absl::StatusOr<CompletionPair> Of(const QueuePairOptions& options, const Context& context);

  CompletionPair(std::shared_ptr<CompletionCore> sends, std::shared_ptr<CompletionCore> receives)
      : sends_(std::move(sends)), receives_(std::move(receives)) {}

  CompletionCore& sends() const { return *sends_; }
  CompletionCore& receives() const { return *receives_; }
  os::EpollLoop& loop() const { return sends_->loop(); }

  // As CompletionCore's, each queue once.
  void Add(CompletionOwner& owner) const;
  void Remove(CompletionOwner& owner) const;
  void Forget(CompletionOwner& owner, bool for_good) const;

 private:
  bool are_one() const { return sends_ == receives_; }

  std::shared_ptr<CompletionCore> sends_;
  std::shared_ptr<CompletionCore> receives_;
};

}  // namespace tokamak::verbs::ibv
