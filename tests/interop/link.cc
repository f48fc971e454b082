#include "tests/interop/link.h"

#include <utility>

#include "absl/strings/str_cat.h"

namespace tokamak::interop {
namespace {

constexpr uint64_t kReceiveId = 1;
constexpr uint64_t kSendId = 2;

template <typename T>
absl::Status Take(absl::StatusOr<T> made, T* out) {
  if (made.ok()) *out = *std::move(made);
  return made.status();
}

absl::Status Late(const char* what, base::Duration patience) {
  return absl::DeadlineExceededError(absl::StrCat(what, " within ", patience.milliseconds(), " ms"));
}

}  // namespace

absl::StatusOr<std::unique_ptr<Service>> Service::Listen(os::EpollLoop& loop, verbs::Device& device, uint16_t port) {
  std::unique_ptr<Service> service(new Service(loop));
  verbs::Address address = device.address();
  address.port = port;
  auto listener = device.connection_manager().Listen(
      loop, address, [self = service.get()](std::unique_ptr<verbs::ConnectionRequest> request) {
        self->requests_.push_back(std::move(request));
      });
  if (auto s = Take(std::move(listener), &service->listener_); !s.ok()) return s;
  return service;
}

absl::StatusOr<std::unique_ptr<verbs::ConnectionRequest>> Service::Await(base::Duration patience) {
  if (!loop_.RunUntil([this] { return !requests_.empty(); }, loop_.Now() + patience)) {
    return Late("nobody asked for a connection", patience);
  }
  auto request = std::move(requests_.front());
  requests_.pop_front();
  return request;
}

absl::StatusOr<std::unique_ptr<Link>> Link::Open(os::EpollLoop& loop, verbs::Device& device,
                                                 const LinkOptions& options) {
  std::unique_ptr<Link> link(new Link(loop, device, options));
  if (auto s = Take(device.CreateProtectionDomain(), &link->domain_); !s.ok()) return s;
  // The event only has to wake the loop: whoever waits drains.
  auto completions = device.CreateCompletionQueue(loop, 2 * options.depth, [] {});
  if (auto s = Take(std::move(completions), &link->completions_); !s.ok()) return s;
  verbs::QueuePairOptions terms;
  terms.send_queue = terms.receive_queue = link->completions_.get();
  terms.max_send_requests = terms.max_receive_requests = options.depth;
  terms.remote_access = verbs::kRemoteWrite | verbs::kRemoteRead;
  if (device.limits().atomics) terms.remote_access = terms.remote_access | verbs::kRemoteAtomic;
  if (auto s = Take(link->domain_->CreateQueuePair(terms), &link->queue_pair_); !s.ok()) return s;
  return link;
}

absl::StatusOr<std::unique_ptr<verbs::MemoryRegion>> Link::Register(absl::Span<uint8_t> memory) {
  verbs::Access access = verbs::kLocalWrite | verbs::kRemoteWrite | verbs::kRemoteRead;
  if (device_.limits().atomics) access = access | verbs::kRemoteAtomic;
  return domain_->RegisterMemory(memory, access);
}

verbs::ConnectOptions Link::Terms() const {
  verbs::ConnectOptions terms;
  terms.reliability = options_.reliability;
  terms.deadline = options_.patience;
  return terms;
}

absl::Status Link::Connect(const verbs::Address& service) {
  return AwaitEstablished(device_.connection_manager().Connect(
      *queue_pair_, service, Terms(), [this](const verbs::ConnectionEvent& event) { OnConnection(event); }));
}

absl::Status Link::Accept(verbs::ConnectionRequest& request) {
  return AwaitEstablished(
      request.Accept(*queue_pair_, Terms(), [this](const verbs::ConnectionEvent& event) { OnConnection(event); }));
}

absl::Status Link::WalkByHand(const verbs::QueuePairAttributes& attributes) {
  path_mtu_ = attributes.path_mtu;
  verbs::QueuePairAttributes terms = attributes;
  terms.reliability = options_.reliability;
  if (auto s = queue_pair_->Modify(verbs::QueuePairState::kReadyToReceive, terms); !s.ok()) return s;
  return queue_pair_->Modify(verbs::QueuePairState::kReadyToSend, terms);
}

absl::Status Link::AwaitEstablished(absl::StatusOr<std::unique_ptr<verbs::Connection>> begun) {
  if (auto s = Take(std::move(begun), &connection_); !s.ok()) return s;
  return Await([this] { return established_; }, "the connection was not established");
}

void Link::OnConnection(const verbs::ConnectionEvent& event) {
  switch (event.kind) {
    case verbs::ConnectionEvent::Kind::kEstablished:
      established_ = true;
      path_mtu_ = event.path_mtu;
      break;
    case verbs::ConnectionEvent::Kind::kDisconnected:
      disconnected_ = true;
      break;
    case verbs::ConnectionEvent::Kind::kRejected:
    case verbs::ConnectionEvent::Kind::kUnreachable:
      failure_.Update(event.status);
      break;
  }
}

absl::Status Link::PostReceive(const verbs::Sge& piece) {
  const verbs::ReceiveRequest request = {kReceiveId, absl::MakeConstSpan(&piece, 1)};
  return queue_pair_->PostReceive(absl::MakeConstSpan(&request, 1)).status;
}

absl::Status Link::PostSend(verbs::SendRequest request, const verbs::Sge& piece) {
  request.id = kSendId;
  request.flags = verbs::kSignaled;
  request.sges = absl::MakeConstSpan(&piece, 1);
  const verbs::PostResult posted = queue_pair_->PostSend(absl::MakeConstSpan(&request, 1));
  if (posted.ok()) ++sends_out_;
  return posted.status;
}

// Arm, then drain: what comes in between ends the loop's sleep.
void Link::Drain() {
  completions_->RequestNotify();
  verbs::Completion completion;
  while (completions_->Poll(absl::MakeSpan(&completion, 1)) == 1) {
    if (completion.id == kSendId) --sends_out_;
    if (completion.status == verbs::CompletionStatus::kFlushed) continue;
    if (completion.status != verbs::CompletionStatus::kSuccess) {
      failure_.Update(absl::InternalError(absl::StrCat(completion.id == kSendId ? "a request" : "a receive",
                                                       " failed: ", verbs::ToString(completion.status),
                                                       ", provider code ", completion.provider_code)));
    } else if (completion.id == kReceiveId) {
      received_.push_back(completion);
    }
  }
}

template <typename Done>
absl::Status Link::Await(const Done& done, const char* what) {
  const auto look = [&] {
    Drain();
    return done() || !failure_.ok() || disconnected_;
  };
  const bool seen = loop_.RunUntil(look, loop_.Now() + options_.patience);
  if (!failure_.ok()) return failure_;
  if (!seen) return Late(what, options_.patience);
  return done() ? absl::OkStatus() : absl::AbortedError(absl::StrCat(what, ": the peer disconnected"));
}

absl::StatusOr<verbs::Completion> Link::AwaitReceive() {
  if (auto s = Await([this] { return !received_.empty(); }, "no message came"); !s.ok()) return s;
  const verbs::Completion completion = received_.front();
  received_.pop_front();
  return completion;
}

absl::Status Link::AwaitSends() {
  return Await([this] { return sends_out_ == 0; }, "what was sent did not complete");
}

absl::Status Link::AwaitDisconnection() {
  return Await([this] { return disconnected_; }, "the peer did not disconnect");
}

}  // namespace tokamak::interop
