// BulkChannel moves objects with one-sided requests over one or more queue pairs: READs on the side that pulls, WRITEs on the
// side that owns.
//
// A job's chunks go to the queue pairs in turn, pipelined within chunks_in_flight for each job and a window for each queue
// pair (for READs what the peer serves at once). Jobs take turns chunk by chunk. A write ends with a note on each queue pair
// that it used: 32 bits, as immediate of the last WRITE there, or as a SEND after it where a device has no immediates.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "lib/transport/context.h"
#include "lib/transport/hello.h"
#include "lib/transport/intrusive_list.h"
#include "lib/transport/message.h"
#include "lib/transport/request_id.h"
#include "lib/transport/slots.h"
#include "lib/verbs/verbs.h"

namespace tokamak::transport {

// One transfer's one-sided requests. Filled by who adds it; the memory belongs to the device while the job is busy.
struct BulkJob {
  class Owner {
   public:
    virtual ~Owner() = default;
    // A request of the job is done, and it is not over.
    virtual void OnJobProgress() = 0;
    // Nothing of the job is in flight any more: all of it is done, or it was stopped. The channel has forgotten it.
    virtual void OnJobOver() = 0;
  };

  Owner* owner = nullptr;
  verbs::Opcode opcode = verbs::Opcode::kRead;  // kRead or kWrite
  uint8_t* local = nullptr;
  uint32_t lkey = 0;
  uint64_t remote = 0;
  uint32_t rkey = 0;
  uint64_t size = 0;    // bytes, not 0
  uint32_t number = 0;  // kWrite: low bits of the transfer's, for its notes

  // The channel's.
  uint64_t posted = 0;  // bytes
  uint64_t chunks_posted = 0;
  uint64_t requests_done = 0;
  uint32_t in_flight = 0;  // requests
  uint32_t first_queue = 0;
  bool stopped = false;
  Link<BulkJob> link;
};

class BulkChannel final {
 public:
  enum class Side { kPuller, kOwner };

  static constexpr uint32_t kDepth = 64;           // send requests for each queue pair
  static constexpr uint32_t kWritesInFlight = 16;  // for each queue pair
  static constexpr uint32_t kNotes = 128;          // receives for each queue pair of a puller: writes pulled at once
  static constexpr uint32_t kGreetings = 2;        // the same of an owner
  static_assert(kWritesInFlight + 1 < kDepth, "a window of writes and their notes fit the queue");

  // Makes `queue_pairs` of them and posts their receives.
  static absl::StatusOr<std::unique_ptr<BulkChannel>> Create(Context& context, verbs::CompletionQueue& completions,
                                                             Side side, uint32_t queue_pairs);
  // Completions that may be there at once.
  static uint32_t CompletionsFor(Side side, uint32_t queue_pairs);

  uint32_t queue_pairs() const { return static_cast<uint32_t>(queues_.size()); }
  verbs::QueuePair& queue_pair(uint32_t i) { return *queues_[i].queue_pair; }

  void Meet(const Hello& peer);
  // All queue pairs are ReadyToSend. The puller greets; the owner sends on a queue pair when it was greeted there.
  void Enable();

  void Add(BulkJob* job);
  // Posts no more of it. True: some is in flight, and OnJobOver will follow. False: nothing is, and it is forgotten.
  bool Stop(BulkJob* job);

  absl::Status Pump();

  absl::Status OnSent(uint32_t queue, uint32_t entry);
  // A note came; its receive is posted again by Repost.
  absl::StatusOr<uint32_t> OnReceived(uint32_t queue, uint32_t entry, const verbs::Completion& completion);
  absl::Status Repost();

 private:
  static constexpr size_t kBatch = 16;
  static constexpr uint32_t kNoteSize = 4;  // bytes

  struct Queue {
    std::unique_ptr<verbs::QueuePair> queue_pair;
    SendRing ring{kDepth};
    std::array<BulkJob*, kDepth> jobs = {};  // of the entries that are taken; null: a greeting
    std::vector<uint32_t> drained;
    std::array<verbs::SendRequest, kBatch> staged;
    std::array<verbs::Sge, kBatch> pieces;
    size_t staged_count = 0;
    bool open = false;  // requests may be posted
  };

  BulkChannel(Context& context, Side side, Slots sends, Slots receives);
  absl::Status Open(verbs::CompletionQueue& completions, uint32_t queue_pairs);
  bool PostNext(BulkJob* job);
  bool AnyRoom() const;
  bool HasRoom(const Queue& queue) const { return queue.open && queue.ring.taken() < window_; }
  verbs::SendRequest& Stage(uint32_t queue, BulkJob* job, const verbs::Sge& piece);
  void StageNote(uint32_t queue, BulkJob* job, uint32_t value);
  void Flush(uint32_t queue);
  uint32_t receives_each() const { return side_ == Side::kPuller ? kNotes : kGreetings; }

  Context& context_;
  const Side side_;
  Slots sends_;     // notes that leave, kDepth for each queue pair
  Slots receives_;  // notes that come
  std::vector<Queue> queues_;
  uint32_t window_ = 1;  // requests in flight for each queue pair
  uint32_t max_inline_ = 0;
  bool immediate_ = false;
  bool enabled_ = false;
  uint32_t next_first_queue_ = 0;
  IntrusiveList<BulkJob, &BulkJob::link> ready_;  // jobs with bytes left to post
  absl::Status post_status_;
};

}  // namespace tokamak::transport
