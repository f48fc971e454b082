#include "lib/transport/read.h"

#include <utility>

namespace tokamak::transport {

absl::Status ReadOwner::Open(Registration& registration, const PinnedObject& object) {
  object_ = object;
  if (object.size.total() == 0) return absl::OkStatus();
  auto lease = registration.Acquire({object.address, object.size.total()}, Registration::Use::kReadSource);
  if (!lease.ok()) return lease.status();
  lease_ = *std::move(lease);
  return absl::OkStatus();
}

void ReadOwner::Describe(Header* header) const {
  header->kind = MessageKind::kData;
  header->protocol = Protocol::kRead;
  header->size = object_.size;
  if (lease_ == nullptr) return;
  header->remote = {reinterpret_cast<uintptr_t>(object_.address), lease_->rkey()};
}

absl::Status ReadPuller::Start(Registration& registration, BulkChannel& bulk, absl::Span<uint8_t> memory,
                               const RemoteRange& from, BulkJob::Owner& owner) {
  auto lease = registration.Acquire(memory, Registration::Use::kReadTarget);
  if (!lease.ok()) return lease.status();
  lease_ = *std::move(lease);
  job_.owner = &owner;
  job_.opcode = verbs::Opcode::kRead;
  job_.local = memory.data();
  job_.lkey = lease_->lkey();
  job_.remote = from.address;
  job_.rkey = from.rkey;
  job_.size = memory.size();
  started_ = true;
  bulk.Add(&job_);
  return absl::OkStatus();
}

}  // namespace tokamak::transport
