#include "lib/verbs/soft/cm/connection_handles.h"

#include <algorithm>
#include <utility>

#include "lib/base/check.h"

namespace tokamak::verbs::soft {
SoftConnection::SoftConnection(std::shared_ptr<Management> nic, ConnectionDesk& desk, base::EventLoop& owner,
                               const Address& peer, ConnectionHandler handler)
    : nic_(std::move(nic)),
      desk_(desk),
      peer_(peer),
      handler_(std::move(handler)),
      signal_(owner.MakeSignal([this] { Deliver(); })) {}

SoftConnection::~SoftConnection() {
  NicLock lock(nic_->mutex());
  desk_.Forget(*this);
}

void SoftConnection::Tell(const ConnectionNews& news, const ConnectionState&) {
  news_.push_back(news);
  signal_->Raise();
}

void SoftConnection::Deliver() {
  absl::InlinedVector<ConnectionNews, 2> news;
  {
    NicLock lock(nic_->mutex());
    news.swap(news_);
  }
  const base::Lifetime::Watch watch = lifetime_.Watched();
  ConnectionHandler handler = std::move(handler_);  // it may drop this
  for (const ConnectionNews& one : news) {
    ConnectionEvent event;
    event.kind = one.kind;
    event.status = one.status;
    if (one.private_data) event.private_data = absl::MakeConstSpan(*one.private_data).first(kUserPrivateData);
    event.path_mtu = one.path_mtu;
    event.peer_queue_pair = one.peer_queue_pair;
    handler(event);
    if (watch.over()) return;
  }
  handler_ = std::move(handler);
}

SoftConnectionRequest::~SoftConnectionRequest() {
  if (answered_) return;
  NicLock lock(nic_->mutex());
  desk_.Reject(request_.key, UserData{});
}

absl::StatusOr<std::unique_ptr<Connection>> SoftConnectionRequest::Accept(QueuePair& queue_pair,
                                                                          const ConnectOptions& options,
                                                                          ConnectionHandler handler) {
  if (answered_) return absl::FailedPreconditionError("this request has been answered");
  auto connection = desk_.Accept(request_.key, queue_pair, options, std::move(handler));
  answered_ = connection.ok();
  return connection;
}

void SoftConnectionRequest::Reject(absl::Span<const uint8_t> private_data) {
  if (answered_) return;
  answered_ = true;
  UserData data{};
  CHECK_LE(private_data.size(), data.size());
  std::copy(private_data.begin(), private_data.end(), data.begin());
  NicLock lock(nic_->mutex());
  desk_.Reject(request_.key, data);
}

SoftListener::SoftListener(std::shared_ptr<Management> nic, ConnectionDesk& desk, base::EventLoop& loop,
                           const Address& address, RequestHandler handler)
    : nic_(std::move(nic)),
      desk_(desk),
      address_(address),
      handler_(std::move(handler)),
      signal_(loop.MakeSignal([this] { Deliver(); })) {}

SoftListener::~SoftListener() {
  NicLock lock(nic_->mutex());
  desk_.Forget(*this);
}

void SoftListener::Deliver() {
  const base::Lifetime::Watch watch = lifetime_.Watched();
  RequestHandler handler = std::move(handler_);  // it may drop this
  for (size_t i = 0; i < kMaxToldAtOnce; ++i) {
    std::optional<PendingRequest> request;
    {
      NicLock lock(nic_->mutex());
      request = desk_.TakeRequest(*this);
    }
    if (!request) break;
    handler(std::make_unique<SoftConnectionRequest>(nic_, desk_, *request));
    if (watch.over()) return;
  }
  handler_ = std::move(handler);
  NicLock lock(nic_->mutex());
  if (!waiting.empty()) Wake();
}

}  // namespace tokamak::verbs::soft
