#include "lib/verbs/ibv/off_loop_listener.h"

#include <utility>

#include "lib/base/check.h"
#include "lib/verbs/ibv/off_loop_connection.h"

namespace tokamak::verbs::ibv {

OffLoopRequest::OffLoopRequest(std::shared_ptr<CallThread> calls, std::shared_ptr<ConnectionRequest> asked,
                               size_t max_private_data)
    : calls_(std::move(calls)),
      asked_(std::move(asked)),
      max_private_data_(max_private_data),
      peer_(asked_->peer()),
      private_data_(asked_->private_data().begin(), asked_->private_data().end()) {}

OffLoopRequest::~OffLoopRequest() { Reject({}); }

std::shared_ptr<ConnectionRequest> OffLoopRequest::Answer() {
  if (auto* const counted = dynamic_cast<CountedRequest*>(asked_.get()); counted != nullptr) counted->Decided();
  return std::exchange(asked_, nullptr);
}

absl::StatusOr<std::unique_ptr<Connection>> OffLoopRequest::Accept(QueuePair& queue_pair, const ConnectOptions& options,
                                                                   ConnectionHandler handler) {
  if (asked_ == nullptr) return absl::FailedPreconditionError("this request has been answered");
  if (absl::Status status = CheckConnectOptions(options, max_private_data_); !status.ok()) return status;
  auto held = HoldQueuePair(queue_pair);
  if (!held.ok()) return held.status();
  return std::make_unique<OffLoopConnection>(
      calls_, *std::move(held), OffLoopConnection::Side::kPassive, peer_, options,
      [asked = Answer()](QueuePair& there, const ConnectOptions& agreed, ConnectionHandler hears) {
        return asked->Accept(there, agreed, std::move(hears));
      },
      std::move(handler));
}

void OffLoopRequest::Reject(absl::Span<const uint8_t> private_data) {
  if (asked_ == nullptr) return;
  CHECK_LE(private_data.size(), max_private_data_);
  calls_->Post([asked = Answer(), bytes = std::vector<uint8_t>(private_data.begin(), private_data.end())] {
    asked->Reject(bytes);
  });
}

absl::StatusOr<std::unique_ptr<OffLoopListener>> OffLoopListener::Listen(std::shared_ptr<CallThread> calls,
                                                                         ConnectionManager& manager,
                                                                         base::EventLoop& loop, const Address& address,
                                                                         size_t max_private_data,
                                                                         RequestHandler handler) {
  std::unique_ptr<OffLoopListener> listener(
      new OffLoopListener(std::move(calls), loop, max_private_data, std::move(handler)));
  absl::Status status;
  listener->calls_->CallOn([&] {
    auto there = manager.Listen(
        listener->calls_->loop(), address,
        [self = listener.get(), to = listener->inbox_.sender()](std::unique_ptr<ConnectionRequest> request) {
          to.Send([self, asked = std::shared_ptr<ConnectionRequest>(std::move(request))] { self->Present(asked); });
        });
    status = there.status();
    if (!there.ok()) return;
    listener->there_ = *std::move(there);
    listener->address_ = listener->there_->address();
  });
  if (!status.ok()) return status;
  return listener;
}

OffLoopListener::OffLoopListener(std::shared_ptr<CallThread> calls, base::EventLoop& loop, size_t max_private_data,
                                 RequestHandler handler)
    : calls_(std::move(calls)), max_private_data_(max_private_data), handler_(std::move(handler)), inbox_(loop) {}

OffLoopListener::~OffLoopListener() {
  calls_->CallOn([this] { there_.reset(); });
}

void OffLoopListener::Present(std::shared_ptr<ConnectionRequest> asked) {
  const base::Lifetime::Watch watch = lifetime_.Watched();
  RequestHandler handler = std::move(handler_);  // it may drop this
  handler(std::make_unique<OffLoopRequest>(calls_, std::move(asked), max_private_data_));
  if (watch.over()) return;
  handler_ = std::move(handler);
}

}  // namespace tokamak::verbs::ibv
