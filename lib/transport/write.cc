#include "lib/transport/write.h"

#include <utility>

#include "absl/strings/str_cat.h"

namespace tokamak::transport {

absl::Status WritePuller::Open(Registration& registration, absl::Span<uint8_t> memory) {
  auto lease = registration.Acquire(memory, Registration::Use::kWriteTarget);
  if (!lease.ok()) return lease.status();
  lease_ = *std::move(lease);
  memory_ = memory;
  return absl::OkStatus();
}

RemoteRange WritePuller::range() const {
  if (lease_ == nullptr) return {};
  return {reinterpret_cast<uintptr_t>(memory_.data()), lease_->rkey()};
}

absl::Status WritePuller::OnNote(const Note& note, uint32_t queue_pairs) {
  const bool first = notes_expected_ == 0;
  if (note.queues == 0 || note.queues > queue_pairs || (!first && note.queues != notes_expected_) || complete()) {
    return absl::InvalidArgumentError(
        absl::StrCat("note ", notes_ + 1, " of ", note.queues, " over ", queue_pairs, " queue pairs"));
  }
  notes_expected_ = note.queues;
  ++notes_;
  return absl::OkStatus();
}

absl::Status WriteOwner::Start(Registration& registration, BulkChannel& bulk, const PinnedObject& object,
                               const RemoteRange& to, uint64_t transfer, BulkJob::Owner& owner) {
  auto lease = registration.Acquire({object.address, object.size.total()}, Registration::Use::kReadSource);
  if (!lease.ok()) return lease.status();
  lease_ = *std::move(lease);
  job_.owner = &owner;
  job_.opcode = verbs::Opcode::kWrite;
  job_.local = object.address;
  job_.lkey = lease_->lkey();
  job_.remote = to.address;
  job_.rkey = to.rkey;
  job_.size = object.size.total();
  job_.number = static_cast<uint32_t>(transfer);
  started_ = true;
  bulk.Add(&job_);
  return absl::OkStatus();
}

}  // namespace tokamak::transport
