// Write: the puller knows the size, opens exactly its memory to the owner, and the owner WRITEs into it. One round trip, no
// copy. The key is revoked before the object is sealed.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "lib/transport/bulk_channel.h"
#include "lib/transport/message.h"
#include "lib/transport/registration.h"

namespace tokamak::transport {

// The puller's half: a key of its own for the memory, and the notes that say that all is written.
class WritePuller final {
 public:
  // Opens `memory`, which is not empty, to the peer.
  absl::Status Open(Registration& registration, absl::Span<uint8_t> memory);
  RemoteRange range() const;

  // kInvalidArgument: a note that no owner would send after those before it. `queue_pairs` of the connection.
  absl::Status OnNote(const Note& note, uint32_t queue_pairs);
  bool complete() const { return notes_expected_ > 0 && notes_ == notes_expected_; }

  // From now on nobody can write there.
  void Revoke() { lease_.reset(); }

 private:
  absl::Span<uint8_t> memory_;
  std::unique_ptr<Lease> lease_;
  uint32_t notes_expected_ = 0;
  uint32_t notes_ = 0;
};

// The owner's half.
class WriteOwner final {
 public:
  // Starts to WRITE `object`, which is not empty; `owner` hears of the end.
  absl::Status Start(Registration& registration, BulkChannel& bulk, const PinnedObject& object, const RemoteRange& to,
                     uint64_t transfer, BulkJob::Owner& owner);
  // Posts no more. True: WRITEs are in flight, and OnJobOver will follow.
  bool Stop(BulkChannel& bulk) { return started_ && bulk.Stop(&job_); }
  // Nothing is in flight.
  void Close() { lease_.reset(); }
  // Bytes that are written, as far as the device has said; less than all while the transfer goes on.
  uint64_t BytesWritten(uint64_t chunk_size) const { return std::min(job_.requests_done * chunk_size, job_.size - 1); }

 private:
  BulkJob job_;
  bool started_ = false;
  std::unique_ptr<Lease> lease_;
};

}  // namespace tokamak::transport
