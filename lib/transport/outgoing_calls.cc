#include "lib/transport/outgoing_calls.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"

namespace tokamak::transport {

bool OutgoingCalls::Add(absl::Span<const uint8_t> request, base::Duration deadline, Caller::CallCallback* done) {
  if (calls_.size() >= kMaxCalls) return false;
  OneCall* call = calls_.Claim();
  call->request.assign(request.begin(), request.end());
  call->deadline_time = context_.loop.Now() + deadline;
  call->deadline = context_.loop.RunAt(call->deadline_time, [this, call] { OnDeadline(call); });
  call->done = std::move(*done);
  waiting_.Push(call);
  return true;
}

void OutgoingCalls::SendWaiting(Connection& connection) {
  while (!waiting_.empty() && asked_ < connection.peer_hello().max_calls) {
    OneCall* call = waiting_.Pop();
    if (call->done == nullptr) {  // its deadline passed here
      calls_.Release(call);
      continue;
    }
    const uint32_t room = connection.control().max_body();
    if (call->request.size() > room) {
      call->refused = true;
      call->deadline = context_.loop.Post([this, call] { OnDeadline(call); });
      continue;
    }
    call->number = ++last_number_;
    calls_.Bind(call->number, call);
    ++asked_;
    Header header;
    header.kind = MessageKind::kCall;
    header.transfer = call->number;
    const int64_t left = (call->deadline_time - context_.loop.Now()).milliseconds();
    header.deadline_ms = static_cast<uint32_t>(std::clamp<int64_t>(left, 1, UINT32_MAX));
    connection.Send(header, std::move(call->request));
  }
}

bool OutgoingCalls::OnReply(uint64_t number, absl::StatusOr<absl::Span<const uint8_t>> reply, Connection& connection) {
  OneCall* call = calls_.Find(number);
  if (call == nullptr) return false;
  const Caller::CallCallback done = std::move(call->done);
  calls_.Unbind(number);
  calls_.Release(call);
  --asked_;
  if (done == nullptr) {
    ++context_.counters.late_messages;
  } else {
    done(std::move(reply));
  }
  SendWaiting(connection);
  return true;
}

void OutgoingCalls::OnDeadline(OneCall* call) {
  const Caller::CallCallback done = std::exchange(call->done, nullptr);
  if (!call->refused) return done(absl::DeadlineExceededError("the peer has not answered the call by its deadline"));
  const size_t size = call->request.size();
  calls_.Release(call);
  done(absl::InvalidArgumentError(absl::StrCat("a request of ", size, " bytes is more than this peer takes")));
}

void OutgoingCalls::OnBroken(const absl::Status& status) {
  waiting_.Clear();
  while (!calls_.empty()) {
    OneCall* call = calls_.first();
    const Caller::CallCallback done = std::move(call->done);
    if (call->number != 0) calls_.Unbind(call->number);
    calls_.Release(call);
    if (done != nullptr) done(status);
  }
}

}  // namespace tokamak::transport
