// ControlChannel carries messages over one queue pair: control messages in order, and between them,
// in turns, the chunks of eager transfers.
//
// A message leaves only with a credit (credits.h), so the peer never answers RNR NAK; others wait
// here, bounded. Receive windows grow for peers that wait, up to `receive_slots`, and shrink to
// `first_slots` by RELEASE when idle (docs/transport.md, "Windows"). A message keeps its slot, of
// the engine's pool, until its completion is known; an inline one only while it is posted.
//
// Where peers are authenticated, messages of a handshake come first (peer_handshake.h), and all
// others are sealed and opened where they lie, if one of the sides wants it.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "lib/base/containers/intrusive_list.h"
#include "lib/security/sealed_channel.h"
#include "lib/transport/channels/context.h"
#include "lib/transport/channels/credits.h"
#include "lib/transport/channels/fifo.h"
#include "lib/transport/channels/shared_completions.h"
#include "lib/transport/channels/slots.h"
#include "lib/transport/memory/slot_pool.h"
#include "lib/transport/messages/hello.h"
#include "lib/transport/messages/message.h"
#include "lib/transport/messages/request_id.h"
#include "lib/verbs/verbs.h"

namespace tokamak::transport {

class ControlChannel final {
 public:
  class Stream {
   public:
    virtual ~Stream() = default;
    // Fills the next chunk's header, and at most `room` bytes of body. Returns the body's size.
    virtual size_t Next(Header* header, uint8_t* body, size_t room, CopyBudget& budget) = 0;
    virtual bool over() const = 0;
    // The last chunk was taken, and the stream forgotten: it may go.
    virtual void OnOver() = 0;
    base::Link<Stream> link;
  };

  static constexpr uint32_t kMaxSendSlots = 64;
  static constexpr uint32_t kMaxInline = 256;  // bytes; asked of a device

  ~ControlChannel();

  // Makes the queue pair and posts its receives, before it is connected.
  static absl::StatusOr<std::unique_ptr<ControlChannel>> Create(Context& context, uint32_t rail,
                                                                SharedCompletions::User& user);
  // Completions at once, with a grown window.
  static uint32_t CompletionsFor(const EndpointOptions& options);

  verbs::QueuePair& queue_pair() { return *queue_pair_; }

  // Runs before the peer's first message.
  void OnPeerHello(const Hello& peer);
  // The queue pair is ReadyToSend, and the handshake, if there is one, is over.
  void Enable() { enabled_ = true; }

  // Sends a message of the handshake, before Enable. It has no header; it gives back the credits of
  // those that were received and released.
  absl::Status SendHandshake(absl::Span<const uint8_t> message);
  // Takes one, of at most `byte_count` bytes; it lies in `slot` until Release. kInvalidArgument:
  // the peer gives back credits that it was not given.
  absl::StatusOr<absl::Span<const uint8_t>> OnHandshake(uint32_t slot, uint32_t byte_count);
  // Seals messages from now on, before Enable.
  void Seal(security::SealedChannel channel);

  // kResourceExhausted: the peer has let too many wait.
  absl::Status Send(const Header& header, std::vector<uint8_t> body = {});
  size_t queued() const { return queue_.size(); }
  void Add(Stream* stream) { streams_.PushBack(stream); }
  void Remove(Stream* stream) {
    if (streams_.Listed(stream)) streams_.Remove(stream);
  }
  // Requests a completion as a sign of life of the peer's device, with the next message or an empty
  // one.
  void Probe();
  bool starved() const { return enabled_ && more_waits() && !credits_.can_take(); }
  // Requests a completion with the next message; most need none.
  void AskCompletion() { completion_asked_ = true; }
  bool completion_owed() const { return completed_ < signaled_; }
  uint64_t completions() const { return completed_; }

  // Fits the peer's slots and ours.
  uint32_t max_body() const { return max_message_ - static_cast<uint32_t>(kHeaderSize); }

  // Sends what may leave. `*more`: only the budget held something back.
  absl::Status Pump(CopyBudget& budget, bool* more);

  // kInternal: a completion without a send.
  absl::Status OnSent(uint32_t entry);
  // Takes a message and its credits; it lies in `slot` until Release. kInvalidArgument: malformed.
  // kDataLoss: it is sealed, and not the peer's next one.
  absl::StatusOr<Message> OnReceived(uint32_t slot, uint32_t byte_count);
  void Release(uint32_t slot);
  // Posts released receives, and more if the window grows; Pump reports it to the peer.
  absl::Status Repost();

  // True if the peer has all messages.
  bool drained() const { return !enabled_ || (queue_.empty() && streams_.empty() && ring_.taken() == 0); }
  // Requests a completion for all that was sent: drained() comes true, if the peer lives.
  void Drain();

  uint64_t received() const { return received_; }

  // True if a window, ours or the peer's, is larger than an idle connection needs.
  bool may_rest() const { return enabled_ && (credits_.spare() > 0 || OwesSpare()); }
  // Gives up surplus credits, as many as leave at once, and returns those owed, batch or not, so
  // that the peer can do the same.
  void Rest();

  uint32_t window() const { return window_; }  // receives

 private:
  static constexpr uint32_t kGrowth = 4;  // of a small window
  static constexpr uint32_t kNoSlot = UINT32_MAX;
  static constexpr uint32_t kNone = UINT32_MAX;  // entry

  struct Outgoing {
    Header header;
    std::vector<uint8_t> body;
  };

  ControlChannel(Context& context, uint32_t rail);
  absl::Status Open(uint32_t rail, SharedCompletions::User& user);
  bool SendNext(CopyBudget& budget, bool* more);
  bool Claim();
  void SendProbe();
  bool OwesSpare() const;
  bool TakeSlot();
  void ReturnCredits();
  // `size`: in the slot that was taken, without what sealing adds.
  void Stage(size_t size);
  void Post(size_t size);
  bool more_waits() const { return !queue_.empty() || !streams_.empty(); }
  void AddReceive(uint32_t slot);
  void GrowWindow();
  void Flush();

  Context& context_;
  SlotPool& slots_;
  AckTimes& ack_times_;
  const uint32_t most_;                  // receives
  uint32_t window_ = 0;                  // receives: posted, holding a message, or about to be posted
  std::vector<uint32_t> receive_slots_;  // of the receives
  std::vector<uint32_t> send_slots_;     // by ring entry
  uint32_t slot_ = kNoSlot;              // of the current message
  std::unique_ptr<SharedCompletions::Share> completions_;
  std::unique_ptr<verbs::QueuePair> queue_pair_;  // dropped before its slots and completions
  uint32_t max_inline_ = 0;
  uint32_t max_message_ = kMinSlotSize;
  size_t max_queued_ = 0;
  Credits credits_;
  uint32_t handshake_credits_ = 0;  // taken by our messages of the handshake, and not given back
  std::optional<security::SealedChannel> seal_;
  SendRing ring_;
  Fifo<Outgoing> queue_;
  base::IntrusiveList<Stream, &Stream::link> streams_;
  std::vector<uint32_t> released_;
  uint64_t received_ = 0;
  bool enabled_ = false;
  bool stalled_ = false;
  bool draining_ = false;
  bool completion_asked_ = false;
  bool grow_ = false;
  uint32_t unanswered_ = 0;  // messages since one left, without those of credits alone
  bool given_up_ = false;    // of the current message
  bool resting_ = false;     // credits are returned, batch or not
  bool probe_ = false;       // due
  uint32_t timed_ = kNone;   // ring entry whose time to completion is measured
  base::Time timed_at_;      // when posted
  uint64_t signaled_ = 0;    // messages
  uint64_t completed_ = 0;

  std::array<verbs::SendRequest, kPostBatch> staged_;
  std::array<verbs::Sge, kPostBatch> pieces_;
  std::array<uint32_t, kPostBatch> inline_slots_;  // free once posted
  size_t inline_count_ = 0;
  size_t staged_count_ = 0;
  absl::Status post_status_;
};

}  // namespace tokamak::transport
