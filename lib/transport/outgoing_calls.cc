#include "lib/transport/outgoing_calls.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "lib/base/check.h"

namespace tokamak::transport {

// The caller's handle; detached once the caller has its answer.
class OutgoingCalls::CallHandle final : public base::Handle {
 public:
  CallHandle(OutgoingCalls& calls, OneCall* call) : calls_(calls), call_(call) { call->handle = this; }
  ~CallHandle() override {
    if (call_ != nullptr) calls_.Cancel(call_);
  }
  void Detach() { call_ = nullptr; }

 private:
  OutgoingCalls& calls_;
  OneCall* call_;
};

OutgoingCalls::~OutgoingCalls() {
  for (OneCall* call = calls_.first(); call != nullptr; call = base::NumberedTable<OneCall>::Next(call)) {
    if (call->handle != nullptr) call->handle->Detach();
  }
  while (!waiting_.empty()) waiting_.PopFront();
  while (!urgent_.empty()) urgent_.PopFront();
}

base::Pending OutgoingCalls::Add(absl::Span<const uint8_t> request, base::Duration deadline, Urgency urgency,
                                 Caller::CallCallback done) {
  CHECK(!full());
  OneCall* call = calls_.Claim();
  call->request.assign(request.begin(), request.end());
  call->deadline_time = context_.loop.Now() + deadline;
  call->deadline = context_.loop.RunAt(call->deadline_time, [this, call] { OnDeadline(call); });
  call->done = std::move(done);
  call->urgency = urgency;
  ListOf(*call).PushBack(call);
  return std::make_unique<CallHandle>(*this, call);
}

OutgoingCalls::OneCall* OutgoingCalls::TakeNext() {
  if (asked_ >= connection_.peer_hello().max_calls) return nullptr;  // a reply brings the next turn
  if (!urgent_.empty()) return urgent_.PopFront();
  if (waiting_.empty()) return nullptr;
  if (connection_.control().queued() < kMostQueued) return waiting_.PopFront();
  if (!looking_again_.armed()) looking_again_ = context_.loop.RunAfter(kLookAgain, [this] { SendWaiting(); });
  return nullptr;
}

void OutgoingCalls::SendWaiting() {
  while (OneCall* const call = TakeNext()) {
    if (call->request.size() > connection_.control().max_body()) {
      call->deadline = context_.loop.Post([this, call] { Refuse(call); });
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
    connection_.Send(header, std::move(call->request));
  }
}

bool OutgoingCalls::OnReply(uint64_t number, absl::StatusOr<absl::Span<const uint8_t>> reply) {
  OneCall* call = calls_.Find(number);
  if (call == nullptr) return false;
  const Caller::CallCallback done = TakeCallback(call);
  Forget(call);
  if (done == nullptr) {
    ++context_.counters.late_messages;
  } else {
    done(std::move(reply));
  }
  SendWaiting();
  return true;
}

void OutgoingCalls::Refuse(OneCall* call) {
  const size_t size = call->request.size();
  const Caller::CallCallback done = TakeCallback(call);
  Forget(call);
  done(absl::InvalidArgumentError(absl::StrCat("a request of ", size, " bytes is more than this peer takes")));
}

// Ends it for the caller only: the peer has the same deadline, and answers.
void OutgoingCalls::OnDeadline(OneCall* call) {
  const Caller::CallCallback done = TakeCallback(call);
  if (call->number == 0) Forget(call);
  done(absl::DeadlineExceededError("the peer has not answered the call by its deadline"));
}

void OutgoingCalls::Cancel(OneCall* call) {
  TakeCallback(call);
  if (call->number == 0) return Forget(call);
  call->deadline.Cancel();
  Header header;
  header.kind = MessageKind::kCancel;
  header.transfer = call->number;
  connection_.Send(header);
}

// Returns null if the caller was not waiting.
Caller::CallCallback OutgoingCalls::TakeCallback(OneCall* call) {
  if (call->handle != nullptr) std::exchange(call->handle, nullptr)->Detach();
  return std::exchange(call->done, nullptr);
}

void OutgoingCalls::Forget(OneCall* call) {
  if (List::Listed(call)) ListOf(*call).Remove(call);
  if (call->number != 0) {
    calls_.Unbind(call->number);
    --asked_;
  }
  calls_.Release(call);
}

void OutgoingCalls::OnBroken(const absl::Status& status) {
  while (!calls_.empty()) {
    OneCall* call = calls_.first();
    const Caller::CallCallback done = TakeCallback(call);
    Forget(call);
    if (done != nullptr) done(status);
  }
}

}  // namespace tokamak::transport
