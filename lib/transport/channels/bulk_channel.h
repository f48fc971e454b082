// BulkChannel moves objects with one-sided requests over the bulk queue pairs of a connection:
// READs on the puller's side, WRITEs on the owner's.
//
// Shares (bulk_job.h) and jobs take turns chunk by chunk, within chunks_in_flight for each job and
// a window for each queue pair (for READs, as many as the peer serves at once). Chunks have
// chunk_size bytes, or fewer on paths with losses (lossy_paths.h). A share of a write ends with a
// note (message.h).
//
// Law: what is in flight on a rail is repeated only after its queue pairs are gone, and a WRITE
// only after the puller, its own gone too, has reported what it misses: a share is never written
// while its note may still come.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "lib/base/containers/intrusive_list.h"
#include "lib/transport/channels/bulk_job.h"
#include "lib/transport/channels/bulk_queue.h"
#include "lib/transport/channels/context.h"
#include "lib/transport/messages/hello.h"
#include "lib/transport/messages/message.h"
#include "lib/transport/messages/rail_messages.h"
#include "lib/verbs/verbs.h"

namespace tokamak::transport {

class BulkChannel final {
 public:
  using Side = BulkQueue::Side;

  // Queue pair q is of rail q / each.
  struct Shape {
    uint32_t primary = 0;
    uint32_t rails = 1;
    uint32_t each = 1;
  };

  struct Trouble {
    absl::Status status;
    uint32_t rail = 0;
  };

  BulkChannel(Context& context, Side side, const Shape& shape, const verbs::Address& peer);

  absl::Status Make(uint32_t rail, SharedCompletions::User& user);
  static uint32_t CompletionsFor(Side side, uint32_t each) { return each * BulkQueue::CompletionsFor(side); }

  Side side() const { return side_; }
  const Shape& shape() const { return shape_; }
  uint32_t queue_pairs() const { return shape_.rails * shape_.each; }
  uint32_t RailOfQueue(uint32_t q) const { return q / shape_.each; }
  void LimitRails(uint32_t rails) { shape_.rails = rails; }
  // Writes that a puller may have under way, so that their notes find receives: one note of each
  // write, or, where shares may move, all of each, and those of as many that are over here and not
  // yet at the owner.
  uint32_t max_writes() const;

  // True once the primary rail's queue pairs are made.
  bool made() const { return Has(shape_.primary * shape_.each); }
  // False if the rail has dropped out.
  bool Has(uint32_t q) const { return q < queues_.size() && queues_[q] != nullptr; }
  verbs::QueuePair& queue_pair(uint32_t q) { return queues_[q]->queue_pair(); }

  void OnPeerHello(uint32_t q, const Hello& peer);
  // Lowers the packet size, in bytes.
  void LimitPackets(uint32_t path_mtu) { packet_ = std::max(verbs::kMinMtu, std::min(packet_, path_mtu)); }
  // All queue pairs of the rail are ReadyToSend. The puller greets on each; the owner sends only
  // after that.
  void Enable(uint32_t rail);
  // Returns bits.
  uint32_t live_rails() const;

  // Needs made().
  void Add(BulkJob* job);
  bool idle() const { return jobs_.empty(); }
  bool has_chunks_to_post() const { return !ready_.empty(); }
  // Returns the queue for windows of a rail (write_target.h). Null: not now, or not with this
  // shape.
  BulkQueue* QueueForWindows(uint32_t rail);
  void OnBindFailed(uint32_t q, uint32_t entry);

  // Posts no more of the job. Returns true if some is in flight: OnJobOver follows. Else forgets
  // it.
  bool Stop(BulkJob* job);

  Trouble Pump();

  absl::Status OnSent(uint32_t q, uint32_t entry);
  // Repost posts the receive again.
  absl::StatusOr<uint32_t> OnReceived(uint32_t q, uint32_t entry, const verbs::Completion& completion) {
    return queues_[q]->OnReceived(entry, completion);
  }
  Trouble Repost();

  // Moves the queue pairs to Error; requests come back by OnSent, OnReceived and OnFlushed.
  void Fail(uint32_t rail);
  void OnFlushed(uint32_t q, bool receive, uint32_t entry) { queues_[q]->OnFlushed(receive, entry); }
  bool Flushed(uint32_t rail) const;
  // Drops the rail's queue pairs; their connections must have gone. READs go on over other rails,
  // which must exist; WRITEs wait for Resolve.
  void Drop(uint32_t rail);
  // The puller, its queue pairs dropped too, names the writes that it waits for; all others over
  // the rail have arrived or are unwanted. kInvalidArgument: no rail is left for them.
  absl::Status Resolve(uint32_t rail, absl::Span<const WantedWrite> wanted);

 private:
  uint64_t ChunkNow() const;
  bool PostNext(BulkJob* job);
  void Post(BulkJob* job, uint32_t s);
  bool AnyRoom() const;
  bool Usable(uint32_t q, const BulkJob& job) const;
  uint32_t NextQueueFor(const BulkJob& job);
  void Restart(BulkJob* job, BulkJob::Share* share, uint64_t from);
  void DropShare(BulkJob* job, BulkJob::Share* share);
  void MakeReady(BulkJob* job);
  void EndThoseThatAreOver();

  Context& context_;
  const Side side_;
  const verbs::Address peer_;
  uint32_t packet_ = verbs::kMaxMtu;  // bytes
  Shape shape_;
  std::vector<std::unique_ptr<BulkQueue>> queues_;  // null: not there
  bool enabled_ = false;
  uint32_t next_queue_ = 0;
  base::IntrusiveList<BulkJob, &BulkJob::link> ready_;  // with chunks to post
  base::IntrusiveList<BulkJob, &BulkJob::all_link> jobs_;
};

}  // namespace tokamak::transport
