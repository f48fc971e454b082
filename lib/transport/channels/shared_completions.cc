#include "lib/transport/channels/shared_completions.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "lib/base/check.h"
#include "lib/base/log.h"

namespace tokamak::transport {

// ---- room

absl::StatusOr<std::unique_ptr<SharedCompletions>> SharedCompletions::Create(verbs::Device& device,
                                                                             base::EventLoop& loop,
                                                                             size_t largest_copy) {
  std::unique_ptr<SharedCompletions> shared(new SharedCompletions(device, loop, largest_copy));
  const uint32_t most = device.limits().max_completions;
  if (absl::Status s = shared->Open(std::min(kFirstDepth / 2, most)); !s.ok()) return s;
  // Only a try shows whether a device can resize.
  Queue& queue = *shared->queues_[0];
  const absl::Status resized = queue.completions->Resize(std::min(kFirstDepth, most));
  shared->resizable_ = resized.ok();
  LOG_IF(WARNING, !resized.ok()) << device.name() << " does not resize completion queues: further ones are opened as "
                                 << "they are needed: " << resized;
  shared->Arm(queue);
  return shared;
}

SharedCompletions::~SharedCompletions() { CHECK(users_.empty() && unnumbered_.empty()) << "connections go first"; }

absl::Status SharedCompletions::Open(uint32_t depth) {
  auto queue = std::make_unique<Queue>();
  auto made = device_.CreateCompletionQueue(loop_, depth, [this, queue = queue.get()] {
    Arm(*queue);  // arm, then drain
    Drain();
  });
  if (!made.ok()) return made.status();
  queue->completions = *std::move(made);
  Arm(*queue);
  queues_.push_back(std::move(queue));
  return absl::OkStatus();
}

void SharedCompletions::Arm(Queue& queue) { queue.completions->RequestNotify(); }

absl::StatusOr<std::unique_ptr<SharedCompletions::Share>> SharedCompletions::Reserve(uint32_t entries, uint32_t more) {
  const uint32_t wanted = resizable_ ? entries : entries + more;
  auto queue = QueueFor(wanted);
  if (!queue.ok()) return queue.status();
  (*queue)->reserved += wanted;
  return std::unique_ptr<Share>(new Share(*this, **queue, wanted));
}

absl::StatusOr<SharedCompletions::Queue*> SharedCompletions::QueueFor(uint32_t entries) {
  for (const auto& queue : queues_) {
    if (MakeRoom(*queue, entries)) return queue.get();
  }
  const uint32_t most = device_.limits().max_completions;
  const uint32_t last = queues_.back()->completions->depth();
  if (!resizable_ && entries <= most && last < most) {
    if (absl::Status s = Open(std::max(entries, last < most / 2 ? 2 * last : most)); !s.ok()) return s;
    return queues_.back().get();
  }
  return absl::ResourceExhaustedError(
      absl::StrCat("the completion queue of ", device_.name(), " has ", last, " entries, of which ",
                   queues_.back()->reserved, " are taken, and cannot grow by ", entries, " (the device's limit is ",
                   most, "): use more engines, or fewer receive_slots for each connection"));
}

bool SharedCompletions::MakeRoom(Queue& queue, uint32_t entries) {
  const uint64_t needed = uint64_t{queue.reserved} + entries;
  const uint64_t depth = queue.completions->depth();
  if (needed <= depth) return true;
  const uint64_t most = device_.limits().max_completions;
  if (!resizable_ || needed > most || resize_rest_.armed()) return false;
  const absl::Status resized =
      queue.completions->Resize(static_cast<uint32_t>(std::min(most, std::max(needed, 2 * depth))));
  if (!resized.ok()) {
    LOG_EVERY_N(WARNING, 1000) << "the completion queue of " << device_.name() << " does not grow: " << resized;
    resize_rest_ = loop_.RunAfter(kResizeRest, [] {});
    return false;
  }
  Arm(queue);
  more_ = loop_.Post([this] { Drain(); });
  return true;
}

verbs::CompletionQueue& SharedCompletions::Share::queue() { return *queue_.completions; }

void SharedCompletions::Share::Bind(const verbs::QueuePair& queue_pair, User& user) {
  CHECK(user_ == nullptr);
  user_ = &user;
  if (queue_pair.made()) return owner_.Enter(*this, queue_pair.number());
  unnumbered_ = &queue_pair;
  owner_.unnumbered_.push_back(this);
}

void SharedCompletions::Enter(Share& share, uint32_t number) {
  share.unnumbered_ = nullptr;
  share.number_ = number;
  CHECK(users_.emplace(number, share.user_).second) << "two queue pairs of one number";
}

// A queue pair that could not be made completes nothing, and has no number.
void SharedCompletions::EnterThoseThatAreMade() {
  const auto made = std::partition(unnumbered_.begin(), unnumbered_.end(),
                                   [](const Share* share) { return !share->unnumbered_->made(); });
  std::for_each(made, unnumbered_.end(), [this](Share* share) {
    const uint32_t number = share->unnumbered_->number();
    if (number != 0) return Enter(*share, number);
    share->unnumbered_ = nullptr;
    share->user_ = nullptr;
  });
  unnumbered_.erase(made, unnumbered_.end());
}

SharedCompletions::User* SharedCompletions::UserOf(uint32_t number) {
  const auto user = users_.find(number);
  return user == users_.end() ? nullptr : user->second;
}

bool SharedCompletions::Share::Grow(uint32_t entries) {
  if (!owner_.resizable_) return true;  // reserved from the start
  if (!owner_.MakeRoom(queue_, entries)) return false;
  queue_.reserved += entries;
  entries_ += entries;
  return true;
}

void SharedCompletions::Share::Shrink(uint32_t entries) {
  if (!owner_.resizable_) return;
  CHECK_LE(entries, entries_);
  queue_.reserved -= entries;
  entries_ -= entries;
}

// The device has dropped those not polled with the queue pair.
void SharedCompletions::Leave(Share& share) {
  share.queue_.reserved -= share.entries_;
  if (share.user_ == nullptr) return;
  if (share.unnumbered_ != nullptr) {
    unnumbered_.erase(std::remove(unnumbered_.begin(), unnumbered_.end(), &share), unnumbered_.end());
    return;
  }
  users_.erase(share.number_);
  const auto stale = [&](const verbs::Completion& one) { return one.queue_pair_number == share.number_; };
  const auto begin = batch_.begin() + static_cast<ptrdiff_t>(next_);
  const auto end = batch_.begin() + static_cast<ptrdiff_t>(count_);
  count_ -= static_cast<size_t>(end - std::remove_if(begin, end, stale));
}

uint32_t SharedCompletions::reserved() const {
  uint32_t sum = 0;
  for (const auto& queue : queues_) sum += queue->reserved;
  return sum;
}

uint32_t SharedCompletions::depth() const {
  uint32_t sum = 0;
  for (const auto& queue : queues_) sum += queue->completions->depth();
  return sum;
}

// ---- completions

bool SharedCompletions::Drain() {
  CopyBudget budget;
  size_t handled = 0;
  bool more = false;
  while (!more && (next_ < count_ || NextBatch())) {
    while (next_ < count_ && !more) {
      const verbs::Completion completion = batch_[next_++];  // by value: the batch may change
      ++passed_;
      User* const user = UserOf(completion.queue_pair_number);
      if (user == nullptr) {
        LOG(ERROR) << device_.name() << " completed a request of queue pair " << completion.queue_pair_number
                   << ", which is gone";
        DCHECK(false) << "queue pair " << completion.queue_pair_number;
        continue;
      }
      User& one = *user;
      if (!turns_.Listed(&one)) turns_.PushBack(&one);
      one.OnCompletion(completion, budget);
      more = ++handled == kCompletionsPerTask || !budget.Covers(largest_copy_);
    }
    GiveTurns(budget);
  }
  if (more) more_ = loop_.Post([this] { Drain(); });
  return more;
}

// Polls the queues in turns, so that none starves.
bool SharedCompletions::NextBatch() {
  for (size_t looked = 0; looked < queues_.size(); ++looked) {
    Queue& queue = *queues_[next_queue_];
    next_queue_ = (next_queue_ + 1) % queues_.size();
    next_ = 0;
    count_ = queue.completions->Poll(absl::MakeSpan(batch_));
    if (count_ == 0) continue;
    // First: a user that leaves takes its completions out of the batch.
    if (!unnumbered_.empty()) EnterThoseThatAreMade();
    return true;
  }
  return false;
}

void SharedCompletions::GiveTurns(CopyBudget& budget) {
  while (!turns_.empty()) turns_.PopFront()->OnTurn(budget);
}

}  // namespace tokamak::transport
