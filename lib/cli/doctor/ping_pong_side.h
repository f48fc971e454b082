// PingPongSide is what both ends of a ping-pong have: a queue pair with its memory, laid out alike.
//
//   kReceives receives of a message | one message to send | `out`: WRITE's source or target
//   | `in`: READ's target
//
// A message is kPingBytes. The caller WRITEs its `out` to the responder's `out`, and READs that
// back into its `in`.
// Thread rule: the loop's.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "lib/cli/doctor/ping_pong.h"
#include "lib/verbs/verbs.h"

namespace tokamak::cli::doctor {

// Where the responder's memory is, as its private data says it.
struct Offer {
  static constexpr size_t kSize = 24;
  uint64_t address = 0;
  uint32_t rkey = 0;
  uint32_t length = 0;

  void Encode(absl::Span<uint8_t> bytes) const;  // of kSize
  static absl::StatusOr<Offer> Decode(absl::Span<const uint8_t> bytes);
};

class PingPongSide final {
 public:
  using CompletionHandler = std::function<void(const verbs::Completion&)>;

  static constexpr uint32_t kReceives = 8;

  // Makes everything and posts the receives. `on_completion` runs on the loop and must not drop
  // this.
  static absl::StatusOr<std::unique_ptr<PingPongSide>> Make(base::EventLoop& loop, verbs::Device& device,
                                                            const StepHandler& on_step,
                                                            CompletionHandler on_completion);

  verbs::QueuePair& queue_pair() { return *queue_pair_; }
  std::unique_ptr<verbs::Connection>& connection() { return connection_; }
  verbs::ReliabilityOptions reliability() const;

  Offer offer() const;
  absl::Span<uint8_t> out() { return Part(kOutAt, kTransferBytes); }
  absl::Span<uint8_t> in() { return Part(kInAt, kTransferBytes); }
  // The message that receive `slot` was filled with, and the one to be sent.
  absl::Span<uint8_t> received(uint64_t slot) { return Part((slot % kReceives) * kPingBytes, kPingBytes); }
  absl::Span<uint8_t> message() { return Part(kMessageAt, kPingBytes); }

  // A receive's completion has its slot as id; it is posted again with Receive.
  absl::Status Receive(uint64_t slot);
  absl::Status Send();  // message()
  absl::Status Transfer(verbs::Opcode opcode, absl::Span<uint8_t> local, const Offer& remote);

  // Moves completions to the handler. Called by the queue's event, and once after connecting.
  void Drain();

 private:
  static constexpr size_t kMessageAt = kReceives * kPingBytes;
  static constexpr size_t kOutAt = 4096;
  static constexpr size_t kInAt = kOutAt + kTransferBytes;
  static constexpr size_t kMemory = kInAt + kTransferBytes;

  PingPongSide(verbs::Device& device, CompletionHandler on_completion);
  absl::Status Build(base::EventLoop& loop, const StepHandler& on_step);
  absl::Status Post(verbs::Opcode opcode, absl::Span<uint8_t> local, const Offer& remote, verbs::SendFlags flags);
  absl::Span<uint8_t> Part(size_t at, size_t size) { return absl::MakeSpan(memory_).subspan(at, size); }

  verbs::Device& device_;
  const CompletionHandler on_completion_;
  bool inline_messages_ = false;
  std::vector<uint8_t> memory_;
  std::unique_ptr<verbs::ProtectionDomain> domain_;
  std::unique_ptr<verbs::CompletionQueue> completions_;
  std::unique_ptr<verbs::MemoryRegion> region_;
  std::unique_ptr<verbs::QueuePair> queue_pair_;
  std::unique_ptr<verbs::Connection> connection_;  // behind the queue pair, so it goes first
};

}  // namespace tokamak::cli::doctor
