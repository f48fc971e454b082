#include "lib/verbs/soft/state/completion_ring.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"

namespace tokamak::verbs::soft {
namespace {

size_t RoundUp(size_t n) {
  size_t power = 1;
  while (power < n) power *= 2;
  return power;
}

}  // namespace

CompletionRing::CompletionRing(uint32_t depth, std::unique_ptr<base::Signal> event, base::EventLoop& loop)
    : depth_(depth), loop_(loop), entries_(SpaceFor(depth)), mask_(entries_.size() - 1), event_(std::move(event)) {}

CompletionRing::Space CompletionRing::SpaceFor(uint32_t depth) { return Space(RoundUp(depth)); }

size_t CompletionRing::Poll(absl::Span<Completion> completions) {
  const uint64_t tail = tail_.load(std::memory_order_seq_cst);
  uint64_t head = head_.load(std::memory_order_relaxed);
  size_t count = 0;
  for (; head != tail && count < completions.size(); ++head) {
    const Entry& entry = entries_[head & mask_];
    if (*entry.released < entry.release) *entry.released = entry.release;
    completions[count++] = entry.completion;
  }
  head_.store(head, std::memory_order_release);
  return count;
}

void CompletionRing::Arm(bool solicited_only) {
  if (!solicited_only) {
    armed_.store(kArmed, std::memory_order_seq_cst);
    return;
  }
  // Arming for solicited events alone does not replace arming for any.
  uint32_t expected = kNotArmed;
  armed_.compare_exchange_strong(expected, kArmedSolicited, std::memory_order_seq_cst);
}

bool CompletionRing::Push(const Completion& completion, uint64_t* released, uint64_t release, bool solicited) {
  if (dead_ || closed()) return true;
  if (written_ - head_.load(std::memory_order_acquire) >= depth_) {
    dead_ = true;
    any_news_ = solicited_news_ = true;
    return false;
  }
  Entry& entry = entries_[written_++ & mask_];
  entry = {completion, released, release};
  entry.completion.solicited = solicited;
  any_news_ = true;
  solicited_news_ |= solicited || completion.status != CompletionStatus::kSuccess;
  return true;
}

void CompletionRing::Publish() {
  tail_.store(written_, std::memory_order_seq_cst);
  if (closed()) return;
  const uint32_t armed = armed_.load(std::memory_order_seq_cst);
  if (armed == kNotArmed) {
    any_news_ = solicited_news_ = false;
    return;
  }
  if (armed == kArmed ? !any_news_ : !solicited_news_) return;
  any_news_ = solicited_news_ = false;
  armed_.store(kNotArmed, std::memory_order_seq_cst);
  event_->Raise();
}

void CompletionRing::Forget(uint32_t number, uint64_t* released) {
  const uint64_t head = head_.load(std::memory_order_relaxed);
  const uint64_t tail = tail_.load(std::memory_order_relaxed);
  const auto goes = [&](const Entry& entry) {
    return entry.released == released && entry.completion.queue_pair_number == number;
  };
  std::vector<uint64_t> releases;  // the steps in which polling releases
  size_t gone = 0;
  for (uint64_t i = head; i != written_; ++i) {
    const Entry& entry = entries_[i & mask_];
    if (entry.released == released) releases.push_back(entry.release);
    if (goes(entry)) ++gone;
  }
  if (gone == 0) return;
  // Takes that many steps now; entries that stay take the others.
  *released = std::max(*released, releases[gone - 1]);
  uint64_t kept = head;
  uint64_t shown = head;
  for (uint64_t i = head; i != written_; ++i) {
    Entry entry = entries_[i & mask_];
    if (goes(entry)) continue;
    if (entry.released == released) entry.release = releases[gone++];
    entries_[kept++ & mask_] = entry;
    if (i < tail) shown = kept;
  }
  written_ = kept;
  tail_.store(shown, std::memory_order_seq_cst);
}

void CompletionRing::Release(uint64_t* released, uint64_t release) {
  for (uint64_t i = written_; i != head_.load(std::memory_order_relaxed); --i) {
    Entry& entry = entries_[(i - 1) & mask_];
    if (entry.released == released) std::swap(entry.release, release);
  }
  *released = std::max(*released, release);
}

absl::Status CompletionRing::Resize(uint32_t depth, Space* space) {
  const uint64_t head = head_.load(std::memory_order_relaxed);
  if (written_ - head > depth) {
    return absl::InvalidArgumentError(
        absl::StrCat(written_ - head, " completions wait, which ", depth, " entries do not hold"));
  }
  const size_t mask = space->size() - 1;
  for (uint64_t i = head; i != written_; ++i) (*space)[i & mask] = entries_[i & mask_];
  entries_.swap(*space);
  mask_ = mask;
  depth_ = depth;
  return absl::OkStatus();
}

std::unique_ptr<base::Signal> CompletionRing::Close() { return std::move(event_); }

}  // namespace tokamak::verbs::soft
