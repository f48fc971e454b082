// BulkChannel moves objects with one-sided requests over the bulk queue pairs of a connection:
// READs on the puller's side, WRITEs on the owner's.
//
// A job's chunks are dealt out to shares, each over one queue pair (bulk_job.h). Shares and jobs
// take turns chunk by chunk, pipelined within chunks_in_flight for each job and a window for each
// queue pair (for READs, the number that the peer serves at once). A chunk is chunk_size long, and
// short where the path loses packets (lossy_paths.h). A share of a write ends with a note: 32 bits,
// as immediate of its last WRITE, or as a SEND after it if a device has no immediates.
//
// Queue pairs of a rail come and go together: those of the primary rail as they are needed
// (primary_rail.h), of others as these can be reached (secondary_rail.h).
//
// Law: what is in flight on a rail is repeated only after its queue pairs are gone, and a WRITE
// only when the puller, after its own are gone, has reported what it misses: a share is never
// written while its note may still come.
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

  // Queue pairs of a connection: `each` on each of `rails`; number q is of rail q / each.
  struct Shape {
    uint32_t primary = 0;
    uint32_t rails = 1;
    uint32_t each = 1;
  };

  // A refusal of the device, or a value that does not fit.
  struct Trouble {
    absl::Status status;
    uint32_t rail = 0;
  };

  BulkChannel(Context& context, Side side, const Shape& shape, const verbs::Address& peer);

  // Makes the queue pairs of a rail, and posts their receives.
  absl::Status Make(uint32_t rail, SharedCompletions::User& user);
  // Most completions of one rail at once.
  static uint32_t CompletionsFor(Side side, uint32_t each) { return each * BulkQueue::CompletionsFor(side); }

  Side side() const { return side_; }
  const Shape& shape() const { return shape_; }
  uint32_t queue_pairs() const { return shape_.rails * shape_.each; }
  uint32_t RailOfQueue(uint32_t q) const { return q / shape_.each; }
  // Lowers the number of rails to that of the peer.
  void LimitRails(uint32_t rails) { shape_.rails = rails; }
  // Writes that a puller may have under way, so that no queue pair meets more notes than it has
  // receives: one of each, or, where shares may move, all of each, and those of as many that are
  // over here and not at the owner.
  uint32_t max_writes() const;

  // True once the primary rail's queue pairs are made, though perhaps not connected.
  bool made() const { return Has(shape_.primary * shape_.each); }
  // False if the rail has dropped out: what comes for it is ignored.
  bool Has(uint32_t q) const { return q < queues_.size() && queues_[q] != nullptr; }
  verbs::QueuePair& queue_pair(uint32_t q) { return queues_[q]->queue_pair(); }

  void OnPeerHello(uint32_t q, const Hello& peer);
  // Lowers the packet size, in bytes, to that of any of its queue pairs.
  void LimitPackets(uint32_t path_mtu) { packet_ = std::max(verbs::kMinMtu, std::min(packet_, path_mtu)); }
  // All queue pairs of the rail are ReadyToSend. The puller greets on each; the owner sends on a
  // queue pair only after that.
  void Enable(uint32_t rail);
  // Bits of the rails over which a new transfer can go.
  uint32_t live_rails() const;

  // Call it only while made().
  void Add(BulkJob* job);
  bool idle() const { return jobs_.empty(); }
  bool has_chunks_to_post() const { return !ready_.empty(); }
  // Returns the queue where windows can be bound for the peer's WRITEs over a rail, see
  // write_target.h. Null: not now, or not with this shape.
  BulkQueue* QueueForWindows(uint32_t rail);
  // A request to bind a window failed.
  void OnBindFailed(uint32_t q, uint32_t entry);

  // Posts no more of the job. Returns true if some is in flight: OnJobOver will follow. Otherwise
  // the job is forgotten.
  bool Stop(BulkJob* job);

  Trouble Pump();

  absl::Status OnSent(uint32_t q, uint32_t entry);
  // A note came; Repost posts its receive again.
  absl::StatusOr<uint32_t> OnReceived(uint32_t q, uint32_t entry, const verbs::Completion& completion) {
    return queues_[q]->OnReceived(entry, completion);
  }
  Trouble Repost();

  // ---- a rail drops out

  // Moves its queue pairs to Error; posted requests come back through OnSent, OnReceived and
  // OnFlushed.
  void Fail(uint32_t rail);
  void OnFlushed(uint32_t q, bool receive, uint32_t entry) { queues_[q]->OnFlushed(receive, entry); }
  bool Flushed(uint32_t rail) const;
  // Drops the rail's queue pairs, whose connections must have gone. READs go on over others, of
  // which there must be some; WRITEs wait for Resolve.
  void Drop(uint32_t rail);
  // The puller has dropped the rail, too, and names the writes that it still waits for. All other
  // writes over the rail have arrived, or are unwanted. kInvalidArgument: no rail is left for them.
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
  base::IntrusiveList<BulkJob, &BulkJob::link> ready_;  // jobs with chunks left to post
  base::IntrusiveList<BulkJob, &BulkJob::all_link> jobs_;
};

}  // namespace tokamak::transport
