// PendingWaitHere and PendingWaitAnywhere wait until enough of the objects of a Wait are sealed: on
// this node, or on any.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "lib/base/handle.h"
#include "lib/client/protocol/messages.h"
#include "lib/daemon/clients/requests/pending_request.h"
#include "lib/directory/directory.h"

namespace tokamak::daemon {

class PendingWaitHere final : public PendingRequest {
 public:
  using PendingRequest::PendingRequest;

  void Start(const client::WaitRequest& request);

 private:
  base::Pending wait_;
};

// Asks the directory for each object missing here; ends with enough found, or all answers.
class PendingWaitAnywhere final : public PendingRequest {
 public:
  using PendingRequest::PendingRequest;
  ~PendingWaitAnywhere() override;

  // May answer within the call.
  void Start(const client::WaitRequest& request);

 private:
  void Located(size_t index, const absl::StatusOr<directory::LocatedObject>& info);

  client::WaitReply reply_;
  uint32_t count_ = 0;  // that suffice
  uint32_t ready_ = 0;
  uint32_t unanswered_ = 0;
  absl::Status trouble_;  // of an unanswered question
  size_t watched_ = 0;    // part of SessionContext::watched
  std::vector<base::Pending> questions_;
};

}  // namespace tokamak::daemon
