#include "lib/verbs/ibv/completion_pair.h"

namespace tokamak::verbs::ibv {

absl::StatusOr<CompletionPair> CompletionPair::Of(const QueuePairOptions& options, const Context& context) {
  const auto* sends = dynamic_cast<IbvCompletionQueue*>(options.send_queue);
  const auto* receives = dynamic_cast<IbvCompletionQueue*>(options.receive_queue);
  if (sends == nullptr || receives == nullptr || sends->core()->context() != &context ||
      receives->core()->context() != &context) {
    return absl::InvalidArgumentError("a queue pair needs completion queues of its own device");
  }
  if (&sends->core()->loop() != &receives->core()->loop()) {
    return absl::InvalidArgumentError("both completion queues of a queue pair live on one loop");
  }
  return CompletionPair(sends->core(), receives->core());
}

void CompletionPair::Add(CompletionOwner& owner) const {
  sends_->Add(owner);
  if (!are_one()) receives_->Add(owner);
}

void CompletionPair::Remove(CompletionOwner& owner) const {
  sends_->Remove(owner);
  if (!are_one()) receives_->Remove(owner);
}

void CompletionPair::Forget(CompletionOwner& owner, bool for_good) const {
  sends_->Forget(owner, for_good);
  if (!are_one()) receives_->Forget(owner, for_good);
}

}  // namespace tokamak::verbs::ibv
