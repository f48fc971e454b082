#include "lib/daemon/clients/requests/pending_request.h"

#include <utility>

#include "lib/base/check.h"

namespace tokamak::daemon {

const Asker& PendingRequest::asker() const { return all_.asker(); }

void PendingRequest::End() { all_.End(*this); }

void PendingRequests::Register(std::unique_ptr<PendingRequest> request, const RequestCost& cost) {
  PendingRequest& added = *request;
  added.memory_ = base::ByteClaim(share_ == nullptr ? nullptr : &share_->memory);
  CHECK(added.memory_.Resize(cost.memory()));
  added.ids_ = cost.ids;
  ids_ += cost.ids;
  if (share_ != nullptr) share_->waiting_ids += cost.ids;
  list_.PushBack(&added);
  added.self_ = std::move(request);
}

void PendingRequests::End(PendingRequest& request) {
  ids_ -= request.ids_;
  if (share_ != nullptr) share_->waiting_ids -= request.ids_;
  list_.Remove(&request);
  const std::unique_ptr<PendingRequest> last = std::move(request.self_);
}

void PendingRequests::EndAll() {
  while (!list_.empty()) End(*list_.first());
}

}  // namespace tokamak::daemon
