#include "lib/cli/doctor/ping_pong_side.h"

#include <algorithm>
#include <array>
#include <utility>

#include "lib/base/bytes.h"

namespace tokamak::cli::doctor {

namespace {

constexpr uint32_t kOfferMagic = 0x50504b54;  // "TKPP"
constexpr uint32_t kSendRequests = 2 * kTransfersInFlight;
static_assert(kSendRequests >= kTransfersInFlight + 1, "a message may leave beside a full window of transfers");

// Unpacks what a factory made.
template <typename T>
absl::Status Take(absl::StatusOr<T> made, T* out) {
  if (made.ok()) *out = *std::move(made);
  return made.status();
}

}  // namespace

void Offer::Encode(absl::Span<uint8_t> bytes) const {
  std::fill(bytes.begin(), bytes.end(), 0);
  base::StoreLittle<uint32_t>(bytes.data(), kOfferMagic);
  base::StoreLittle<uint32_t>(bytes.data() + 4, length);
  base::StoreLittle<uint64_t>(bytes.data() + 8, address);
  base::StoreLittle<uint32_t>(bytes.data() + 16, rkey);
}

absl::StatusOr<Offer> Offer::Decode(absl::Span<const uint8_t> bytes) {
  if (bytes.size() < kSize || base::LoadLittle<uint32_t>(bytes.data()) != kOfferMagic) {
    return absl::FailedPreconditionError("whoever accepted the connection is no tok doctor --listen of this version");
  }
  Offer offer;
  offer.length = base::LoadLittle<uint32_t>(bytes.data() + 4);
  offer.address = base::LoadLittle<uint64_t>(bytes.data() + 8);
  offer.rkey = base::LoadLittle<uint32_t>(bytes.data() + 16);
  if (offer.length < kTransferBytes) return absl::FailedPreconditionError("the peer lends too little memory");
  return offer;
}

PingPongSide::PingPongSide(verbs::Device& device, CompletionHandler on_completion)
    : device_(device), on_completion_(std::move(on_completion)), memory_(kMemory) {}

absl::StatusOr<std::unique_ptr<PingPongSide>> PingPongSide::Make(base::EventLoop& loop, verbs::Device& device,
                                                                 const StepHandler& on_step,
                                                                 CompletionHandler on_completion) {
  std::unique_ptr<PingPongSide> side(new PingPongSide(device, std::move(on_completion)));
  if (absl::Status status = side->Build(loop, on_step); !status.ok()) return status;
  return side;
}

absl::Status PingPongSide::Build(base::EventLoop& loop, const StepHandler& on_step) {
  on_step("domain");
  if (auto s = Take(device_.CreateProtectionDomain(), &domain_); !s.ok()) return s;
  on_step("completion queue");
  if (auto s = Take(device_.CreateCompletionQueue(loop, kSendRequests + kReceives, [this] { Drain(); }), &completions_);
      !s.ok()) {
    return s;
  }
  on_step("memory");
  const auto access = verbs::kLocalWrite | verbs::kRemoteWrite | verbs::kRemoteRead;
  if (auto s = Take(domain_->RegisterMemory(absl::MakeSpan(memory_), access), &region_); !s.ok()) return s;
  on_step("queue pair");
  verbs::QueuePairOptions options;
  options.send_queue = options.receive_queue = completions_.get();
  options.max_send_requests = kSendRequests;
  options.max_receive_requests = kReceives;
  inline_messages_ = device_.limits().max_inline >= kPingBytes;
  options.max_inline = inline_messages_ ? kPingBytes : 0;
  options.remote_access = verbs::kRemoteWrite | verbs::kRemoteRead;
  if (auto s = Take(domain_->CreateQueuePair(options), &queue_pair_); !s.ok()) return s;
  for (uint64_t slot = 0; slot < kReceives; ++slot) {
    if (auto s = Receive(slot); !s.ok()) return s;
  }
  return absl::OkStatus();
}

verbs::ReliabilityOptions PingPongSide::reliability() const {
  verbs::ReliabilityOptions options;
  const auto reads = static_cast<uint8_t>(std::min<uint32_t>(kTransfersInFlight, device_.limits().max_reads));
  options.reads_outstanding = reads;
  options.reads_served = reads;
  return options;
}

Offer PingPongSide::offer() const {
  Offer offer;
  offer.address = reinterpret_cast<uintptr_t>(memory_.data() + kOutAt);
  offer.rkey = region_->rkey();
  offer.length = kTransferBytes;
  return offer;
}

absl::Status PingPongSide::Receive(uint64_t slot) {
  const absl::Span<uint8_t> into = received(slot);
  const verbs::Sge piece = {into.data(), kPingBytes, region_->lkey()};
  verbs::ReceiveRequest receive;
  receive.id = slot;
  receive.sges = absl::MakeConstSpan(&piece, 1);
  return queue_pair_->PostReceive(absl::MakeConstSpan(&receive, 1)).status;
}

absl::Status PingPongSide::Send() {
  const auto flags = inline_messages_ ? verbs::kSignaled | verbs::kInline : verbs::kSignaled;
  return Post(verbs::Opcode::kSend, message(), {}, flags);
}

absl::Status PingPongSide::Transfer(verbs::Opcode opcode, absl::Span<uint8_t> local, const Offer& remote) {
  return Post(opcode, local, remote, verbs::kSignaled);
}

absl::Status PingPongSide::Post(verbs::Opcode opcode, absl::Span<uint8_t> local, const Offer& remote,
                                verbs::SendFlags flags) {
  const verbs::Sge piece = {local.data(), static_cast<uint32_t>(local.size()), region_->lkey()};
  verbs::SendRequest request;
  request.opcode = opcode;
  request.flags = flags;
  request.sges = absl::MakeConstSpan(&piece, 1);
  request.remote_address = remote.address;
  request.rkey = remote.rkey;
  return queue_pair_->PostSend(absl::MakeConstSpan(&request, 1)).status;
}

void PingPongSide::Drain() {
  completions_->RequestNotify();
  std::array<verbs::Completion, 16> batch;
  while (const size_t count = completions_->Poll(absl::MakeSpan(batch))) {
    for (size_t i = 0; i < count; ++i) on_completion_(batch[i]);
  }
}

}  // namespace tokamak::cli::doctor
