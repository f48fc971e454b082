#include "lib/transport/protocols/write.h"

#include "absl/strings/str_cat.h"

namespace tokamak::transport {

absl::Status WritePuller::OnNote(const Note& note, uint32_t queue_pairs) {
  const uint32_t share = 1u << note.share;
  const bool first = shares_ == 0;
  if (note.shares > queue_pairs || note.share >= note.shares || (!first && note.shares != shares_) ||
      (seen_ & share) != 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("a note for share ", note.share, " of ", note.shares, " over ", queue_pairs, " queue pairs"));
  }
  shares_ = note.shares;
  seen_ |= share;
  return absl::OkStatus();
}

absl::Status WriteOwner::Start(Context& context, BulkChannel& bulk, absl::Span<uint8_t> bytes, const RemoteRange& to,
                               uint64_t transfer, BulkJob::Owner& owner) {
  const absl::Status s = leases_.Acquire(context, bulk.live_rails(), bytes, Registration::Use::kReadSource);
  if (!s.ok()) return s;
  job_.owner = &owner;
  job_.opcode = verbs::Opcode::kWrite;
  job_.size = bytes.size();
  job_.transfer = transfer;
  leases_.Aim(&job_, to, bulk.shape().primary);
  started_ = true;
  bulk.Add(&job_);
  return absl::OkStatus();
}

}  // namespace tokamak::transport
