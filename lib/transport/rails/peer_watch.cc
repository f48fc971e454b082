#include "lib/transport/rails/peer_watch.h"

#include <algorithm>

namespace tokamak::transport {

PeerWatch::PeerWatch(Context& context, ControlChannel& control, base::Duration idle_limit, User& user)
    : context_(context), control_(control), idle_limit_(idle_limit), user_(user), idle_since_(context.loop.Now()) {}

void PeerWatch::Watch() {
  if (watching_) return;
  watching_ = true;
  received_ = control_.received();
  timer_ = context_.loop.RunAfter(kProbeInterval, [this] { OnWatch(); });
}

void PeerWatch::OnTurn() {
  if (watching_ || looks_soon_ || !control_.may_rest()) return;
  looks_soon_ = true;
  timer_ = context_.loop.RunAt(std::min(context_.loop.Now() + kWindowRest, idle_since_ + idle_limit_),
                               [this] { OnWatch(); });
}

// Until its completion is known, the last message is work.
void PeerWatch::OnWatch() {
  const base::Time now = context_.loop.Now();
  const bool busy = user_.busy();
  looks_soon_ = false;
  draining_ = !busy && watching_ && !draining_ && !control_.drained();
  if (busy || draining_ || control_.completion_owed()) {
    if (DeviceIsStuck()) {
      return user_.Break(absl::UnavailableError("the device tells nothing of what became of a message"));
    }
    if (PeerIsStuck()) {
      return user_.Break(absl::UnavailableError("the peer has taken no message for a long while"));
    }
    control_.AskCompletion();
    if (draining_ || control_.received() == received_) control_.Probe();
    watching_ = false;
    Watch();
    return user_.Wake();
  }
  if (watching_ || control_.received() != received_) idle_since_ = now;
  watching_ = false;
  received_ = control_.received();
  if (now - idle_since_ >= idle_limit_) return user_.Break(absl::UnavailableError("idle"));
  base::Time next = idle_since_ + idle_limit_;
  if (control_.may_rest() && now - idle_since_ >= kWindowRest) {
    control_.Rest();
    user_.Wake();  // it reports the device's error
  }
  // For what did not leave at once.
  looks_soon_ = control_.may_rest();
  if (looks_soon_) next = std::min(next, std::max(idle_since_ + kWindowRest, now + kProbeInterval));
  timer_ = context_.loop.RunAt(next, [this] { OnWatch(); });
}

// True if one message has waited for its completion in all of the last watches. A working device
// reports a dead peer after all its retries (each takes four timeouts at most, 9.7.6.1.3);
// kPatience is for a busy one.
bool PeerWatch::DeviceIsStuck() {
  const bool waits = control_.completion_owed() && control_.completions() == completions_;
  completions_ = control_.completions();
  watches_without_completion_ = waits ? watches_without_completion_ + 1 : 0;
  const verbs::ReliabilityOptions& reliability = context_.options.reliability;
  return kProbeInterval * watches_without_completion_ >
         kPatience + reliability.ack_timeout * 4 * (reliability.retry_count + 1);
}

// True if its device has taken all that may be sent, the probe last, and it sends nothing: its
// death can no longer be detected.
bool PeerWatch::PeerIsStuck() {
  const bool waits = control_.starved() && control_.received() == received_;
  watches_without_credit_ = waits ? watches_without_credit_ + 1 : 0;
  return kProbeInterval * watches_without_credit_ > kPatience;
}

}  // namespace tokamak::transport
