#include "lib/transport/protocols/read.h"

namespace tokamak::transport {

absl::Status ReadOwner::Open(Context& context, const BulkChannel& bulk, const PinnedObject& object) {
  object_ = object;
  primary_ = bulk.shape().primary;
  if (object.size.total() == 0) return absl::OkStatus();
  return leases_.Acquire(context, bulk.live_rails(), {object.address, object.size.total()},
                         Registration::Use::kReadSource);
}

void ReadOwner::Describe(Header* header) const {
  header->kind = MessageKind::kData;
  header->protocol = Protocol::kRead;
  header->size = object_.size;
  header->remote = leases_.Tell(primary_);
}

absl::Status ReadPuller::Start(Context& context, BulkChannel& bulk, absl::Span<uint8_t> memory, const RemoteRange& from,
                               BulkJob::Owner& owner) {
  const absl::Status s = leases_.Acquire(context, bulk.live_rails(), memory, Registration::Use::kReadTarget);
  if (!s.ok()) return s;
  job_.owner = &owner;
  job_.opcode = verbs::Opcode::kRead;
  job_.size = memory.size();
  leases_.Aim(&job_, from, bulk.shape().primary);
  started_ = true;
  bulk.Add(&job_);
  return absl::OkStatus();
}

}  // namespace tokamak::transport
