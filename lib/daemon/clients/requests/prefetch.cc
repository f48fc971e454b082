#include "lib/daemon/clients/requests/prefetch.h"

#include "lib/node/node.h"

namespace tokamak::daemon {

void PendingPrefetch::Start(const client::PrefetchRequest& request) {
  node::GetOptions options;
  options.timeout = base::Microseconds(static_cast<int64_t>(request.timeout_microseconds));
  unanswered_ = request.ids.size();
  reply_.outcomes.resize(request.ids.size());
  for (size_t i = 0; i < request.ids.size(); ++i) {
    prefetches_.push_back(asker().node().Prefetch(request.ids[i], options, request.pin,
                                                  [this, i](const absl::Status& status) { EndOne(i, status); }));
  }
}

void PendingPrefetch::EndOne(size_t index, const absl::Status& status) {
  reply_.outcomes[index] = client::Outcome::Of(status);
  if (--unanswered_ == 0) EndWith(reply_);
}

}  // namespace tokamak::daemon
