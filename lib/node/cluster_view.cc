#include "lib/node/cluster_view.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <utility>

#include "lib/verbs/types.h"

namespace tokamak::node {

ClusterView::~ClusterView() {
  while (!askers_.empty()) askers_.PopFront()->view = nullptr;
}

ClusterView::Asker::~Asker() {
  if (view == nullptr) return;
  view->askers_.Remove(this);
  if (view->askers_.empty()) view->Stop();
}

base::Pending ClusterView::Look(Callback done) {
  auto asker = std::make_unique<Asker>(*this, std::move(done));
  askers_.PushBack(asker.get());
  if (step_ != Step::kIdle) return asker;
  const bool is_good = viewed_at_.has_value() && needs_.loop.Now() - *viewed_at_ < kGoodFor;
  if (is_good) {
    TellSoon();
  } else {
    AskDirectory();
  }
  return asker;
}

// Nobody waits: the incomplete view is not shown.
void ClusterView::Stop() {
  if (step_ == Step::kAskingNodes) viewed_at_.reset();
  step_ = Step::kIdle;
  directory_call_.reset();
  calls_.clear();
  telling_.Cancel();
}

void ClusterView::AskDirectory() {
  step_ = Step::kAskingDirectory;
  directory_call_ = needs_.directory.Roster(
      kDirectoryDeadline, [this](const absl::StatusOr<std::vector<directory::RosterEntry>>& roster) { Named(roster); });
}

void ClusterView::Named(const absl::StatusOr<std::vector<directory::RosterEntry>>& roster) {
  const base::Pending asked = std::move(directory_call_);
  const base::Time now = needs_.loop.Now();
  view_ = {roster.ok(), {}};
  if (roster.ok()) {
    roster_ = *roster;
    named_at_ = now;
  } else if (roster_.empty()) {
    roster_ = {{needs_.self, directory::Liveness::kAlive, {}}};
    named_at_ = now;
  }
  for (const directory::RosterEntry& entry : roster_) {
    const NodeState state = entry.liveness == directory::Liveness::kAlive ? NodeState::kAlive : NodeState::kSilent;
    view_.nodes.push_back({entry.node, state, entry.unheard_for + (now - named_at_), std::nullopt});
  }
  AskNodes();
}

void ClusterView::AskNodes() {
  step_ = Step::kAskingNodes;
  ask_until_ = needs_.loop.Now() + kNodesDeadline;
  calls_.clear();
  calls_.resize(std::min(view_.nodes.size(), kMaxAsked));
  next_ = open_ = 0;
  AskNext();
}

void ClusterView::AskNext() {
  const base::Duration left = ask_until_ - needs_.loop.Now();
  for (; next_ < calls_.size() && open_ < kAtOnce && left > base::Duration(); ++next_) {
    Entry& entry = view_.nodes[next_];
    if (entry.node.id == needs_.self.id) {
      entry.numbers = needs_.own();
      entry.unheard_for = base::Duration();
      continue;
    }
    const auto address = verbs::Address::Parse(entry.node.engines.front());
    if (!address.ok()) continue;
    ++open_;
    calls_[next_] = needs_.nodes.Call(
        *address, {}, left,
        [this, place = next_](const absl::StatusOr<absl::Span<const uint8_t>>& reply) { Answered(place, reply); });
  }
  if (open_ > 0) return;
  viewed_at_ = needs_.loop.Now();
  TellSoon();
}

void ClusterView::Answered(size_t place, const absl::StatusOr<absl::Span<const uint8_t>>& reply) {
  Entry& entry = view_.nodes[place];
  if (reply.ok()) {
    entry.numbers = NodeNumbers::Decode(*reply);  // none: of another release
    if (entry.state == NodeState::kAlive) entry.unheard_for = base::Duration();
  } else if (entry.state == NodeState::kAlive) {
    entry.state = NodeState::kSuspected;
  }
  calls_[place].reset();
  --open_;
  AskNext();
}

// No callback runs inside Look.
void ClusterView::TellSoon() {
  step_ = Step::kTelling;
  telling_ = needs_.loop.Post([this] { Tell(); });
}

// A Look from inside an answer asks anew, or gets the same view.
void ClusterView::Tell() {
  step_ = Step::kIdle;
  const View view = view_;
  const base::Lifetime::Watch watch = lifetime_.Watched();
  for (size_t left = askers_.size(); left > 0 && !askers_.empty(); --left) {
    Asker& asker = *askers_.PopFront();
    asker.view = nullptr;
    const auto done = std::move(asker.done);
    done(view);  // may drop us
    if (watch.over()) return;
  }
}

}  // namespace tokamak::node
