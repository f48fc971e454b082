// PendingGet waits until the objects of a Get are here and pinned for the program.
#pragma once

#include <cstdint>

#include "absl/types/span.h"
#include "lib/base/handle.h"
#include "lib/base/trace.h"
#include "lib/client/protocol/messages.h"
#include "lib/daemon/clients/requests/pending_request.h"
#include "lib/node/node.h"

namespace tokamak::daemon {

class PendingGet final : public PendingRequest {
 public:
  using PendingRequest::PendingRequest;
  ~PendingGet() override;

  void Start(const client::GetRequest& request);

 private:
  void Got(absl::Span<const node::GetResult> results);
  void Record(base::Phase phase) const;

  uint64_t activity_ = 0;  // 0: not traced
  base::Pending get_;
};

}  // namespace tokamak::daemon
