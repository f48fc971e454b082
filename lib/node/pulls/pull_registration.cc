#include "lib/node/pulls/pull_registration.h"

#include <utility>

#include "lib/base/check.h"

namespace tokamak::node {

void PullRegistration::Ask(base::Duration wait, bool may_bring) {
  CHECK(!asking());
  const PullNeeds& needs = context_.needs;
  withdrawn_.reset();
  patient_until_ = needs.loop.Now() + context_.options.directory_patience;
  directory::LocateRequest request;
  request.id = id_;
  request.wait = wait;
  request.deadline = wait + context_.options.directory_deadline;
  request.puller = needs.self;
  request.may_bring = may_bring;
  locate_ =
      needs.directory.Locate(request, [this](const absl::StatusOr<directory::LocatedObject>& info) { Answered(info); });
}

// After an error too, the directory may have entered this node.
void PullRegistration::Answered(const absl::StatusOr<directory::LocatedObject>& info) {
  const PullNeeds& needs = context_.needs;
  locate_.reset();
  if (info.ok()) needs.places.Remember(id_, *info, needs.loop.Now());
  if (absl::IsUnavailable(info.status()) || absl::IsDeadlineExceeded(info.status())) {
    needs.membership.Suspect();
    needs.membership.Recheck({id_, base::kNoGeneration});
  }
  owner_.OnLocated(info);
}

void PullRegistration::Enter(const base::ObjectVersion& version) {
  CHECK(version.id == id_);
  state_ = State::kEntered;
  version_ = version;
}

void PullRegistration::Vouch(const base::ObjectVersion& version, base::Time until) {
  if (entered()) return;
  state_ = State::kVouched;
  version_ = version;
  vouched_until_ = until;
}

bool PullRegistration::IsComing(const base::ObjectVersion& version) const {
  if (version.generation == base::kNoGeneration) return entered() || asking();
  return entered() && version == version_;
}

void PullRegistration::OnWithdraw(const base::ObjectVersion& version) {
  if (asking()) withdrawn_ = version;
  if (entered() && version == version_) state_ = State::kUnknown;
}

void PullRegistration::TakeBack() {
  if (std::exchange(state_, State::kUnknown) == State::kEntered) context_.needs.membership.Recheck(version_);
}

void PullRegistration::Seal() {
  CHECK(state_ != State::kUnknown) << "a deletion would not reach this copy";
  if (state_ == State::kVouched) {
    ++context_.counters.vouched_for;
    context_.needs.membership.NoteUnregistered(version_, vouched_until_);
  }
  state_ = State::kUnknown;
}

void PullRegistration::End() {
  TakeBack();
  if (std::exchange(locate_, nullptr) != nullptr) context_.needs.membership.Recheck({id_, base::kNoGeneration});
}

}  // namespace tokamak::node
