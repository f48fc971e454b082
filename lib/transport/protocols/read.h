// Read: the owner names the object's memory, the puller READs it into place, and sends DONE. No
// copy; the owner's processor is not needed while the bytes move.
#pragma once

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "lib/transport/channels/bulk_channel.h"
#include "lib/transport/messages/message.h"
#include "lib/transport/protocols/leases.h"

namespace tokamak::transport {

// Keys for the object until DONE.
class ReadOwner final {
 public:
  // Errors: those of Registration::Acquire.
  absl::Status Open(Context& context, const BulkChannel& bulk, const PinnedObject& object);
  void Describe(Header* header) const;
  void Close() { leases_.Drop(); }

 private:
  PinnedObject object_;
  uint32_t primary_ = 0;
  Leases leases_;
};

class ReadPuller final {
 public:
  // READs all of `memory`, which is not empty; `owner` learns of the end.
  absl::Status Start(Context& context, BulkChannel& bulk, absl::Span<uint8_t> memory, const RemoteRange& from,
                     BulkJob::Owner& owner);
  // Returns true if READs are in flight: OnJobOver follows.
  bool Stop(BulkChannel& bulk) { return started_ && bulk.Stop(&job_); }
  const BulkJob& job() const { return job_; }
  uint64_t arrived() const { return started_ ? job_.Beginning() : 0; }
  // Nothing may be in flight.
  void Close() { leases_.Drop(); }

 private:
  BulkJob job_;
  bool started_ = false;
  Leases leases_;
};

}  // namespace tokamak::transport
