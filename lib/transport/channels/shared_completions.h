// SharedCompletions is the completion queue of an engine on one rail. All queue pairs there share
// it, so that an idle peer costs no queue, no channel and no poll.
//
// A completion goes to the connection whose queue pair it names; after each batch every connection
// in it gets a turn, to post again and to send. A task has bounds, then posts its continuation. If
// a device cannot resize its queues, further ones are opened, each twice as large.
//
// Law: a queue has an entry for everything that may be posted on its queue pairs (Share), so it
//      cannot overrun.
// Law: no completion is passed on for a queue pair whose share was dropped.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "lib/base/containers/intrusive_list.h"
#include "lib/base/event_loop.h"
#include "lib/base/time.h"
#include "lib/transport/channels/copy_budget.h"
#include "lib/verbs/verbs.h"

namespace tokamak::transport {

class SharedCompletions final {
  struct Queue;

 public:
  static constexpr uint32_t kFirstDepth = 1024;
  static constexpr size_t kCompletionsPerTask = 1024;
  // Rest after a failed resize: memory is short for longer than a message takes, and a try is work
  // for the kernel, on the loop.
  static constexpr base::Duration kResizeRest = base::Seconds(1);

  // Outlives its shares, and is not dropped between OnCompletion and OnTurn.
  class User {
   public:
    // May drop shares.
    virtual void OnCompletion(const verbs::Completion& completion, CopyBudget& budget) = 0;
    // Follows in the same task.
    virtual void OnTurn(CopyBudget& budget) = 0;

    base::Link<User> turn;

   protected:
    ~User() = default;
  };

  // Room for the requests of one queue pair; dropped after it.
  class Share final {
   public:
    ~Share() { owner_.Leave(*this); }
    Share(const Share&) = delete;
    Share& operator=(const Share&) = delete;

    verbs::CompletionQueue& queue();
    // The queue pair may be made later.
    void Bind(const verbs::QueuePair& queue_pair, User& user);
    // Returns false, changing nothing, if there is no room.
    [[nodiscard]] bool Grow(uint32_t entries);
    // Gives back `entries` that will not be posted.
    void Shrink(uint32_t entries);

   private:
    friend class SharedCompletions;
    Share(SharedCompletions& owner, Queue& queue, uint32_t entries) : owner_(owner), queue_(queue), entries_(entries) {}

    SharedCompletions& owner_;
    Queue& queue_;
    uint32_t entries_;
    User* user_ = nullptr;
    const verbs::QueuePair* unnumbered_ = nullptr;  // until its number is known
    uint32_t number_ = 0;                           // the queue pair's
  };

  // `largest_copy`: bytes of one completion.
  static absl::StatusOr<std::unique_ptr<SharedCompletions>> Create(verbs::Device& device, base::EventLoop& loop,
                                                                   size_t largest_copy);
  ~SharedCompletions();

  // Reserves room for `entries` requests and receives of a queue pair, and for `more` by
  // Share::Grow. kResourceExhausted: the device's queues are full.
  absl::StatusOr<std::unique_ptr<Share>> Reserve(uint32_t entries, uint32_t more = 0);

  // Passes on what is there, within one task's bounds. Returns true if it goes on by itself.
  bool Drain();
  // Completions passed on; and that number once all that are there now are.
  uint64_t passed() const { return passed_; }
  uint64_t ahead() const { return passed_ + (count_ - next_) + depth(); }

  size_t queues() const { return queues_.size(); }
  uint32_t reserved() const;  // entries
  uint32_t depth() const;     // entries

 private:
  static constexpr size_t kBatch = 8;  // small: the first waits until all are polled

  struct Queue {
    std::unique_ptr<verbs::CompletionQueue> completions;
    uint32_t reserved = 0;  // entries
  };

  SharedCompletions(verbs::Device& device, base::EventLoop& loop, size_t largest_copy)
      : device_(device), loop_(loop), largest_copy_(largest_copy) {}
  absl::Status Open(uint32_t depth);
  bool MakeRoom(Queue& queue, uint32_t entries);
  absl::StatusOr<Queue*> QueueFor(uint32_t entries);
  void Leave(Share& share);
  void Enter(Share& share, uint32_t number);
  void EnterThoseThatAreMade();
  User* UserOf(uint32_t number);
  void Arm(Queue& queue);
  bool NextBatch();
  void GiveTurns(CopyBudget& budget);

  verbs::Device& device_;
  base::EventLoop& loop_;
  const size_t largest_copy_;
  bool resizable_ = true;
  std::vector<std::unique_ptr<Queue>> queues_;  // the last is the largest
  absl::flat_hash_map<uint32_t, User*> users_;  // by queue pair number; never visited in its own order
  std::vector<Share*> unnumbered_;              // of queue pairs not made at the last look
  base::IntrusiveList<User, &User::turn> turns_;

  std::array<verbs::Completion, kBatch> batch_;
  size_t next_ = 0;        // in batch_
  size_t count_ = 0;       // in batch_
  size_t next_queue_ = 0;  // to be polled
  uint64_t passed_ = 0;    // completions
  base::Timer more_;
  base::Timer resize_rest_;  // armed: no resizing
};

}  // namespace tokamak::transport
