// ControlChannel carries messages over one queue pair: control messages in order, and between them,
// in turns, the chunks of eager transfers.
//
// Receives are posted before the queue pair is connected and posted again as they are drained; a
// message leaves only with a credit (credits.h), so the peer never has to answer "receiver not
// ready". Messages that cannot leave wait here, bounded.
//
// Slots come from the engine's pool. An idle connection has `first_slots` receives; a peer whose
// messages wait for credits says so, and the window grows, up to `receive_slots`. A side that holds
// credits and has been idle for a while gives them up with one empty message for each, as only a
// message frees a posted receive. A message has a slot until its completion is known; an inline one
// only while it is posted.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "lib/base/containers/intrusive_list.h"
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
  // An object that leaves in chunks, as slots and credits allow.
  class Stream {
   public:
    virtual ~Stream() = default;
    // Fills the next chunk: its header, and at most `room` bytes of body. Returns the body's size.
    virtual size_t Next(Header* header, uint8_t* body, size_t room, CopyBudget& budget) = 0;
    virtual bool over() const = 0;
    // The last chunk was taken; the channel has forgotten the stream, which may go.
    virtual void OnOver() = 0;
    base::Link<Stream> link;
  };

  static constexpr uint32_t kMaxSendSlots = 64;
  static constexpr uint32_t kMaxInline = 256;  // bytes; the most that is asked of a device

  ~ControlChannel();

  // Makes the queue pair and posts its receives.
  static absl::StatusOr<std::unique_ptr<ControlChannel>> Create(Context& context, uint32_t rail,
                                                                SharedCompletions::User& user);
  // Most completions at once, of a window that has grown.
  static uint32_t CompletionsFor(const EndpointOptions& options);

  verbs::QueuePair& queue_pair() { return *queue_pair_; }

  // Applies the peer's hello, before its first message.
  void OnPeerHello(const Hello& peer);
  // The queue pair is ReadyToSend.
  void Enable() { enabled_ = true; }

  // Queues a message. kResourceExhausted: the peer has let too many wait.
  absl::Status Send(const Header& header, std::vector<uint8_t> body = {});
  // Messages that wait for the peer's slots, or for Pump.
  size_t queued() const { return queue_.size(); }
  void Add(Stream* stream) { streams_.PushBack(stream); }
  void Remove(Stream* stream) {
    if (streams_.Listed(stream)) streams_.Remove(stream);
  }
  // Requests a completion as a sign of life of the peer's device, with the next message or one of
  // its own.
  void Probe();
  bool starved() const { return enabled_ && more_waits() && !credits_.can_take(); }
  // Requests a completion with the next message; most need none.
  void AskCompletion() { completion_asked_ = true; }
  // True if the device owes a completion; the number of those that came.
  bool completion_owed() const { return completed_ < signaled_; }
  uint64_t completions() const { return completed_; }

  // Most bytes of a body: it fits the peer's slots, and ours.
  uint32_t max_body() const { return max_message_ - static_cast<uint32_t>(kHeaderSize); }

  // Sends what may leave. `*more` is set when only the budget held it back.
  absl::Status Pump(CopyBudget& budget, bool* more);

  // A send was done. kInternal: the device completed a send that was not posted.
  absl::Status OnSent(uint32_t entry);
  // A message came: takes its credits. It lies in `slot` until Release. kInvalidArgument:
  // malformed.
  absl::StatusOr<Message> OnReceived(uint32_t slot, uint32_t byte_count);
  void Release(uint32_t slot);
  // Posts released receives again, and more if the window grows; the peer learns of it with Pump.
  absl::Status Repost();

  // True if no message waits, and the peer has all that were sent.
  bool drained() const { return !enabled_ || (queue_.empty() && streams_.empty() && ring_.taken() == 0); }
  // Requests a completion for all that was sent: drained() will come true, if the peer lives.
  void Drain();

  uint64_t received() const { return received_; }

  // True if one of the two windows is larger than an idle connection needs, and we can shrink it.
  bool may_rest() const { return enabled_ && (credits_.spare() > 0 || OwesSpare()); }
  // Gives up surplus credits, as many as leave at once; and returns those that the peer is owed
  // though they are no batch yet, so that it can do the same.
  void Rest();

  uint32_t window() const { return window_; }  // receives

 private:
  static constexpr uint32_t kGrowth = 4;  // factor by which a small window grows
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
  void Stage(size_t size);
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
  std::vector<uint32_t> send_slots_;     // by the ring's entry
  uint32_t slot_ = kNoSlot;              // of the message being made
  std::unique_ptr<SharedCompletions::Share> completions_;
  std::unique_ptr<verbs::QueuePair> queue_pair_;  // after the slots and completions: dropped before them
  uint32_t max_inline_ = 0;
  uint32_t max_message_ = kMinSlotSize;
  size_t max_queued_ = 0;
  Credits credits_;
  SendRing ring_;
  Fifo<Outgoing> queue_;
  base::IntrusiveList<Stream, &Stream::link> streams_;
  std::vector<uint32_t> released_;
  uint64_t received_ = 0;
  bool enabled_ = false;
  bool stalled_ = false;
  bool draining_ = false;
  bool completion_asked_ = false;
  bool grow_ = false;        // the peer needs a larger window
  uint32_t unanswered_ = 0;  // messages that came since one left, except those that carry credits alone
  bool given_up_ = false;    // the current message gives its slot up
  bool resting_ = false;     // credits are returned, batch or not
  bool probe_ = false;       // a probe is due
  uint32_t timed_ = kNone;   // ring entry of the message whose time to completion is measured
  base::Time timed_at_;      // when it was posted
  uint64_t signaled_ = 0;    // messages
  uint64_t completed_ = 0;

  std::array<verbs::SendRequest, kPostBatch> staged_;
  std::array<verbs::Sge, kPostBatch> pieces_;
  std::array<uint32_t, kPostBatch> inline_slots_;  // free once they are posted
  size_t inline_count_ = 0;
  size_t staged_count_ = 0;
  absl::Status post_status_;
};

}  // namespace tokamak::transport
