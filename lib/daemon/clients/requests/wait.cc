#include "lib/daemon/clients/requests/wait.h"

namespace tokamak::daemon {

void PendingWaitHere::Start(const client::WaitRequest& request) {
  const base::Duration timeout = base::Microseconds(static_cast<int64_t>(request.timeout_microseconds));
  wait_ = asker().store().WaitLater(request.ids, request.count, asker().loop().Now() + timeout,
                                    [this](const std::vector<bool>& sealed) {
                                      client::WaitReply reply;
                                      reply.ready.assign(sealed.begin(), sealed.end());
                                      EndWith(reply);
                                    });
}

PendingWaitAnywhere::~PendingWaitAnywhere() { asker().context().watched -= watched_; }

void PendingWaitAnywhere::Start(const client::WaitRequest& request) {
  count_ = request.count;
  for (const base::ObjectId& id : request.ids) {
    const bool here = asker().store().Contains(id);
    reply_.ready.push_back(here ? 1 : 0);
    ++(here ? ready_ : unanswered_);
  }
  if (ready_ >= count_ || unanswered_ == 0) return EndWith(reply_);
  if (request.timeout_microseconds > 0) watched_ = unanswered_;
  asker().context().watched += watched_;
  const base::Duration timeout = base::Microseconds(static_cast<int64_t>(request.timeout_microseconds));
  for (size_t i = 0; i < request.ids.size(); ++i) {
    if (reply_.ready[i] != 0) continue;
    questions_.push_back(
        asker().node().Locate(request.ids[i], timeout,
                              [this, i](const absl::StatusOr<directory::LocatedObject>& info) { Located(i, info); }));
  }
}

void PendingWaitAnywhere::Located(size_t index, const absl::StatusOr<directory::LocatedObject>& info) {
  --unanswered_;
  if (info.ok()) ++ready_;
  if (info.ok()) reply_.ready[index] = 1;
  if (!info.ok() && !absl::IsNotFound(info.status())) trouble_ = info.status();
  if (ready_ < count_ && unanswered_ > 0) return;
  // Ends the open questions.
  if (ready_ < count_ && !trouble_.ok()) return EndWith(trouble_);
  EndWith(reply_);
}

}  // namespace tokamak::daemon
