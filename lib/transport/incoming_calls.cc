#include "lib/transport/incoming_calls.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"

namespace tokamak::transport {

// The right to answer one call. Dropped unused, the peer is told.
class IncomingCalls::Ticket final {
 public:
  Ticket(std::shared_ptr<IncomingCalls*> calls, uint64_t number) : calls_(std::move(calls)), number_(number) {}
  Ticket(const Ticket&) = delete;
  Ticket& operator=(const Ticket&) = delete;
  ~Ticket() {
    if (*calls_ != nullptr)
      (*calls_)->Refuse(number_, absl::UnavailableError("the call was dropped without an answer"));
  }
  void Answer(absl::Span<const uint8_t> reply) {
    if (*calls_ != nullptr) (*calls_)->Answer(number_, reply);
  }

 private:
  const std::shared_ptr<IncomingCalls*> calls_;
  const uint64_t number_;
};

absl::Status IncomingCalls::OnCall(const Message& message) {
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
  const auto ticket = std::make_shared<Ticket>(self_, number);
  context_.call_handler(message.body, [ticket](absl::Span<const uint8_t> reply) { ticket->Answer(reply); });
  return absl::OkStatus();
}

void IncomingCalls::Answer(uint64_t number, absl::Span<const uint8_t> reply) {
  const uint32_t room = connection_->broken() ? 0 : connection_->control().max_body();
  if (reply.size() > room) {
    return Refuse(number,
                  absl::InternalError(absl::StrCat("a reply of ", reply.size(), " bytes, possible are ", room)));
  }
  if (!Forget(number)) return;
  Header header;
  header.kind = MessageKind::kReply;
  header.transfer = number;
  connection_->Send(header, std::vector<uint8_t>(reply.begin(), reply.end()));
}

void IncomingCalls::Refuse(uint64_t number, const absl::Status& status) {
  if (!Forget(number)) return;
  Header header;
  header.kind = MessageKind::kFail;
  header.status = status.code();
  header.transfer = number;
  const absl::string_view text = status.message().substr(0, kMaxFailText);
  connection_->Send(header, std::vector<uint8_t>(text.begin(), text.end()));
}

// False: it has been answered.
bool IncomingCalls::Forget(uint64_t number) {
  OneCall* call = calls_.Find(number);
  if (call == nullptr) return false;
  calls_.Unbind(number);
  calls_.Release(call);
  return true;
}

}  // namespace tokamak::transport
