#include "lib/node/pull.h"

#include <algorithm>
#include <set>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "glog/logging.h"

namespace tokamak::node {

class Pulls::WaiterHandle final : public Waiter {
 public:
  WaiterHandle(std::weak_ptr<Pull> pull, uint64_t number) : pull_(std::move(pull)), number_(number) {}
  ~WaiterHandle() override;
  absl::Status trouble() const override;

 private:
  const std::weak_ptr<Pull> pull_;
  const uint64_t number_;
};

// One object on its way here.
class Pulls::Pull final : public std::enable_shared_from_this<Pull> {
 public:
  Pull(Pulls& pulls, const base::ObjectId& id) : pulls_(pulls), id_(id), owner_(pulls.store_.NewOwner()) {}

  void Begin() { Enter(State::kLocating); }

  std::unique_ptr<Waiter> AddWaiter(transport::Protocol protocol, Callback done) {
    if (protocol != transport::Protocol::kAuto) protocol_ = protocol;
    waiters_.emplace(++last_waiter_, std::move(done));
    return std::make_unique<WaiterHandle>(weak_from_this(), last_waiter_);
  }

  void DropWaiter(uint64_t number) {
    if (waiters_.erase(number) == 0 || !waiters_.empty()) return;
    if (state_ == State::kMoving) return engine_->Cancel(token_);  // ends in Moved
    if (state_ != State::kOver) Finish(absl::CancelledError("nobody waits for it any more"));
  }

  const absl::Status& trouble() const { return trouble_; }

 private:
  enum class State { kNew, kLocating, kBackOff, kRefreshing, kMoving, kOver };

  // The one place where the state changes; each state starts its work here.
  void Enter(State state) {
    CHECK(state_ != State::kOver);
    state_ = state;
    timer_.Cancel();
    switch (state) {
      case State::kLocating:
        return Locate();
      case State::kBackOff:
        return BackOff();
      case State::kRefreshing:
        return RefreshPeers();
      case State::kNew:
      case State::kMoving:
      case State::kOver:
        return;
    }
  }

  void Locate() {
    tried_.clear();
    refreshed_ = false;
    const base::Duration wait = pulls_.options_.locate_wait;
    pulls_.directory_.Locate(id_, wait, wait + pulls_.options_.directory_deadline,
                             [self = weak_from_this()](absl::StatusOr<directory::ObjectInfo> info) {
                               if (const auto pull = self.lock()) pull->Located(std::move(info));
                             });
  }

  void Located(absl::StatusOr<directory::ObjectInfo> info) {
    if (state_ != State::kLocating) return;
    if (IsHere()) return Finish(absl::OkStatus());
    if (!info.ok()) {
      // "Not found" waited already; an outage is waited out here.
      trouble_ = absl::IsNotFound(info.status()) ? absl::NotFoundError("no node holds the object") : info.status();
      return absl::IsNotFound(info.status()) ? Enter(State::kLocating) : Enter(State::kBackOff);
    }
    info_ = *std::move(info);
    TryNextHolder();
  }

  void TryNextHolder() {
    if (IsHere()) return Finish(absl::OkStatus());
    bool unknown = false;
    const directory::NodeId holder = ChooseHolder(&unknown);
    if (!holder.empty()) return MoveFrom(holder);
    if (unknown && !refreshed_) return Enter(State::kRefreshing);
    if (trouble_.ok()) trouble_ = absl::UnavailableError("no holder of the object can be reached now");
    Enter(State::kBackOff);
  }

  // The least busy of the holders that were not tried in this round; chance decides between equals.
  directory::NodeId ChooseHolder(bool* unknown) {
    directory::NodeId best;
    uint64_t best_rank = 0;
    for (const directory::NodeId& holder : info_.holders) {
      if (tried_.count(holder) != 0) continue;
      if (holder == pulls_.self_) {
        WithdrawStale(holder);
        continue;
      }
      const Peers::Peer* peer = pulls_.peers_.Find(holder);
      if (peer == nullptr) *unknown = true;
      if (!pulls_.peers_.Ready(holder)) continue;
      const uint64_t rank = (uint64_t{peer->pulls} << 32) + pulls_.random_.Below(uint64_t{1} << 32);
      if (best.empty() || rank < best_rank) {
        best = holder;
        best_rank = rank;
      }
    }
    return best;
  }

  void RefreshPeers() {
    refreshed_ = true;
    pulls_.peers_.Refresh([self = weak_from_this()](const absl::Status& status) {
      const auto pull = self.lock();
      if (pull == nullptr || pull->state_ != State::kRefreshing) return;
      if (!status.ok()) pull->trouble_ = status;
      pull->TryNextHolder();
    });
  }

  void BackOff() {
    const base::Duration doubled = retry_delay_ * 2;
    retry_delay_ = std::clamp(doubled, pulls_.options_.first_retry, pulls_.options_.max_retry);
    timer_ = pulls_.loop_.RunAfter(retry_delay_, [this] { Enter(State::kLocating); });
  }

  void MoveFrom(const directory::NodeId& holder) {
    const auto place = pulls_.store_.Create(id_, info_.data_size, info_.metadata_size, store::Origin::kPulled, owner_);
    if (!place.ok()) return NoPlace(place.status());
    CHECK(pulls_.store_.Pin(id_, owner_).ok());

    transport::PullRequest request;
    request.id = id_;
    request.size_known = true;
    request.size = {info_.data_size, info_.metadata_size};
    request.protocol = protocol_;
    request.deadline =
        pulls_.options_.attempt_deadline + base::Seconds(1) * static_cast<int64_t>(place->total_size() >> 25);
    Peers::Peer* peer = pulls_.peers_.Find(holder);
    engine_ = &pulls_.NextEngine();
    request.owner = peer->engines[pulls_.next_engine_ % peer->engines.size()];
    EngineLink::PullHandlers handlers;
    handlers.done = [self = weak_from_this()](const absl::Status& status, const transport::TransferReport& report) {
      if (const auto pull = self.lock()) pull->Moved(status, report);
    };
    token_ = engine_->Pull(request, pulls_.store_.Memory(*place), std::move(handlers));
    if (token_ == 0) {
      GiveUpPlace();
      trouble_ = absl::ResourceExhaustedError("too many objects are on their way here: waiting for some to arrive");
      return Enter(State::kBackOff);
    }
    holder_ = holder;
    if (!tried_.empty()) ++pulls_.counters_.next_holder;
    tried_.insert(holder);
    ++peer->pulls;
    Enter(State::kMoving);
  }

  void NoPlace(const absl::Status& status) {
    trouble_ = status;
    // A program of this node is creating it, or an earlier object of this id is still read.
    if (absl::IsAlreadyExists(status) || absl::IsFailedPrecondition(status)) return Enter(State::kBackOff);
    const uint64_t size = info_.data_size + info_.metadata_size;
    if (!absl::IsResourceExhausted(status)) return Finish(status);
    if (size > pulls_.store_.arena().size()) {
      return Finish(
          absl::ResourceExhaustedError(absl::StrCat("the object has ", size, " bytes, this node's whole memory ",
                                                    pulls_.store_.arena().size(), ": start tokd with more --memory")));
    }
    ++pulls_.counters_.waited_for_room;
    Enter(State::kBackOff);
  }

  void Moved(const absl::Status& status, const transport::TransferReport& report) {
    CHECK(state_ == State::kMoving);
    if (Peers::Peer* peer = pulls_.peers_.Find(holder_); peer != nullptr && peer->pulls > 0) --peer->pulls;
    if (status.ok()) return Arrived(report);
    GiveUpPlace();
    if (waiters_.empty()) return Finish(status);
    ++pulls_.counters_.failed_attempts;
    trouble_ = absl::Status(status.code(), absl::StrCat("from ", holder_, ": ", status.message()));
    VLOG(1) << "pull of " << id_.ToHex() << " " << trouble_;
    if (absl::IsNotFound(status)) {
      WithdrawStale(holder_);
    } else if (!absl::IsCancelled(status)) {
      pulls_.peers_.Failed(holder_);
    }
    TryNextHolder();
  }

  void Arrived(const transport::TransferReport& report) {
    pulls_.peers_.Succeeded(holder_);
    ++pulls_.counters_.pulled;
    ++pulls_.counters_.pulled_by[static_cast<size_t>(report.protocol)];
    pulls_.counters_.pulled_bytes += report.size.total();
    CHECK(pulls_.store_.Seal(id_, owner_).ok());
    CHECK(pulls_.store_.Release(id_, owner_).ok());
    Finish(absl::OkStatus());
  }

  void GiveUpPlace() {
    CHECK(pulls_.store_.Abort(id_, owner_).ok());
    CHECK(pulls_.store_.Release(id_, owner_).ok());
  }

  void WithdrawStale(const directory::NodeId& holder) {
    ++pulls_.counters_.stale_holders;
    pulls_.directory_.Withdraw(id_, holder, pulls_.options_.directory_deadline, [](const absl::Status&) {});
  }

  bool IsHere() const { return pulls_.store_.Contains(id_); }

  void Finish(const absl::Status& status) {
    Enter(State::kOver);
    const auto self = shared_from_this();
    pulls_.pulls_.erase(id_);
    const auto waiters = std::exchange(waiters_, {});
    for (const auto& [number, done] : waiters) done(status);
  }

  Pulls& pulls_;
  const base::ObjectId id_;
  const store::Owner owner_;
  State state_ = State::kNew;
  transport::Protocol protocol_ = transport::Protocol::kAuto;
  absl::Status trouble_;
  base::Timer timer_;
  base::Duration retry_delay_;
  directory::ObjectInfo info_;
  std::set<directory::NodeId> tried_;  // in this round
  bool refreshed_ = false;             // in this round
  directory::NodeId holder_;           // kMoving
  EngineLink* engine_ = nullptr;       // kMoving
  uint64_t token_ = 0;                 // kMoving
  uint64_t last_waiter_ = 0;
  std::map<uint64_t, Callback> waiters_;
};

Pulls::WaiterHandle::~WaiterHandle() {
  if (const auto pull = pull_.lock()) pull->DropWaiter(number_);
}

absl::Status Pulls::WaiterHandle::trouble() const {
  const auto pull = pull_.lock();
  return pull == nullptr ? absl::OkStatus() : pull->trouble();
}

Pulls::Pulls(base::EventLoop& loop, store::Store& store, directory::Directory& directory, Peers& peers,
             std::vector<EngineLink*> engines, directory::NodeId self, base::Random random, const PullOptions& options)
    : loop_(loop),
      store_(store),
      directory_(directory),
      peers_(peers),
      engines_(std::move(engines)),
      self_(std::move(self)),
      random_(random),
      options_(options) {
  CHECK(!engines_.empty());
}

Pulls::~Pulls() = default;

std::unique_ptr<Pulls::Waiter> Pulls::Start(const base::ObjectId& id, transport::Protocol protocol, Callback done) {
  std::shared_ptr<Pull>& pull = pulls_[id];
  const bool is_new = pull == nullptr;
  if (is_new) pull = std::make_shared<Pull>(*this, id);
  auto waiter = pull->AddWaiter(protocol, std::move(done));
  if (is_new) pull->Begin();
  return waiter;
}

}  // namespace tokamak::node
