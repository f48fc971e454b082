// Write: the puller knows the size and opens exactly its memory to the owner, which WRITEs into it.
// One round trip, no copy. The key is revoked before the object is sealed.
#pragma once

#include <algorithm>
#include <cstdint>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "lib/transport/channels/bulk_channel.h"
#include "lib/transport/messages/message.h"
#include "lib/transport/protocols/leases.h"
#include "lib/transport/protocols/write_target.h"

namespace tokamak::transport {

// Notes prove that all is written.
class WritePuller final {
 public:
  explicit WritePuller(WriteTarget::Owner& owner) : target_(owner) {}
  WriteTarget& target() { return target_; }

  // `queue_pairs`: the connection's. kInvalidArgument: the note contradicts earlier ones.
  absl::Status OnNote(const Note& note, uint32_t queue_pairs);
  bool complete() const { return shares_ > 0 && seen_ == (1u << shares_) - 1; }
  uint32_t shares_seen() const { return seen_; }

 private:
  WriteTarget target_;
  uint32_t shares_ = 0;  // 0: no note has come
  uint32_t seen_ = 0;    // bits
};

class WriteOwner final {
 public:
  // WRITEs `bytes`, which are not empty; `owner` learns of the end.
  absl::Status Start(Context& context, BulkChannel& bulk, absl::Span<uint8_t> bytes, const RemoteRange& to,
                     uint64_t transfer, BulkJob::Owner& owner);
  // Returns true if WRITEs are in flight: OnJobOver follows.
  bool Stop(BulkChannel& bulk) { return started_ && bulk.Stop(&job_); }
  const BulkJob& job() const { return job_; }
  // Nothing may be in flight.
  void Close() { leases_.Drop(); }
  // Written bytes, by completions; less than all while the transfer goes on, and falls when some
  // are repeated.
  uint64_t BytesWritten() const { return std::min(job_.bytes_done, job_.size - 1); }
  // Written bytes from the start without a gap.
  uint64_t arrived() const { return started_ ? job_.Beginning() : 0; }

 private:
  BulkJob job_;
  bool started_ = false;
  Leases leases_;
};

}  // namespace tokamak::transport
