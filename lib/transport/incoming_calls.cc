#include "lib/transport/incoming_calls.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"

namespace tokamak::transport {

// The right to answer one call; dropped unused, it refuses the call.
class IncomingCalls::Ticket final {
 public:
  Ticket(IncomingCalls& calls, uint64_t number) : calls_(calls), watch_(calls.lifetime_.Watched()), number_(number) {}
  Ticket(const Ticket&) = delete;
  Ticket& operator=(const Ticket&) = delete;
  ~Ticket() {
    if (!watch_.over()) calls_.Refuse(number_, absl::UnavailableError("the call was dropped without an answer"));
  }
  void Answer(absl::Span<const uint8_t> reply) {
    if (!watch_.over()) calls_.Answer(number_, reply);
  }

 private:
  IncomingCalls& calls_;
  const base::Lifetime::Watch watch_;
  const uint64_t number_;
};

absl::Status IncomingCalls::OnCall(const Message& message, uint32_t nth) {
  if (calls_.size() >= kMaxCallsServed) {
    return absl::InvalidArgumentError(absl::StrCat("more than ", kMaxCallsServed, " calls at once"));
  }
  const uint64_t number = message.header.transfer;
  OneCall* call = calls_.Claim();
  calls_.Bind(number, call);
  const base::Duration deadline =
      std::min(base::Milliseconds(message.header.deadline_ms), context_.options.serve_deadline);
  call->deadline = context_.loop.RunAfter(deadline, [this, number] {
    Refuse(number, absl::DeadlineExceededError("the call's deadline has passed at the peer"));
  });
  if (context_.call_handler == nullptr) {
    Refuse(number, absl::UnimplementedError("nobody answers calls here"));
    return absl::OkStatus();
  }
  base::Pending work;
  {
    const auto ticket = std::make_shared<Ticket>(*this, number);
    const auto answer = [ticket](absl::Span<const uint8_t> reply) {
      const std::shared_ptr<Ticket> self = ticket;  // the reply may be part of the work, and end with it
      self->Answer(reply);
    };
    work = context_.call_handler(message.body, Reply(answer, connection_.peer(), nth));
  }
  if (OneCall* open = calls_.Find(number)) open->work = std::move(work);
  return absl::OkStatus();
}

bool IncomingCalls::OnCancel(uint64_t number) {
  if (calls_.Find(number) == nullptr) return false;
  Refuse(number, absl::CancelledError("cancelled by the caller"));
  return true;
}

void IncomingCalls::Answer(uint64_t number, absl::Span<const uint8_t> reply) {
  const uint32_t room = connection_.broken() ? 0 : connection_.control().max_body();
  if (reply.size() > room) {
    return Refuse(number,
                  absl::InternalError(absl::StrCat("a reply of ", reply.size(), " bytes, possible are ", room)));
  }
  if (calls_.Find(number) == nullptr) return;
  Header header;
  header.kind = MessageKind::kReply;
  header.transfer = number;
  connection_.Send(header, std::vector<uint8_t>(reply.begin(), reply.end()));
  Forget(number);
}

void IncomingCalls::Refuse(uint64_t number, const absl::Status& status) {
  if (!Forget(number)) return;
  Header header;
  header.kind = MessageKind::kFail;
  header.status = status.code();
  header.transfer = number;
  const absl::string_view text = status.message().substr(0, kMaxFailText);
  connection_.Send(header, std::vector<uint8_t>(text.begin(), text.end()));
}

// Drops the call's work in a task of its own, as we may be inside the drop of the reply, a part of
// it. Returns false if the call was answered.
bool IncomingCalls::Forget(uint64_t number) {
  OneCall* call = calls_.Find(number);
  if (call == nullptr) return false;
  if (call->work != nullptr) {
    ended_.push_back(std::move(call->work));
    if (!dropping_.armed()) dropping_ = context_.loop.Post([this] { DropEnded(); });
  }
  calls_.Unbind(number);
  calls_.Release(call);
  return true;
}

// The dropped work may end further calls.
void IncomingCalls::DropEnded() { const std::vector<base::Pending> ended = std::exchange(ended_, {}); }

}  // namespace tokamak::transport
