// ControlChannel carries messages over one queue pair: control messages in order, and between them
// the chunks of eager transfers, in turns.
//
// Receives are posted before the queue pair is connected and posted again as they are drained; a
// message leaves only with a credit (credits.h), so the peer's queue pair never has to say "not
// ready". What cannot leave waits here, bounded.
//
// Slots come from the engine's pool. An idle connection has `first_slots` receives; a peer whose
// messages wait for credits says so, and the window grows, up to `receive_slots`. Whoever holds
// credits and has been idle for a while gives them up, one empty message for each, as a receive
// that is posted comes back only by a message. A message has a slot until its completion is known,
// one that goes inline only while it is posted.
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
  // An object that leaves in chunks. The channel takes chunks as slots and credits allow.
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
  static constexpr uint32_t kMaxInline = 256;  // bytes; more is not asked of a device

  ~ControlChannel();

  // Makes the queue pair and posts its receives.
  static absl::StatusOr<std::unique_ptr<ControlChannel>> Create(Context& context, uint32_t rail,
                                                                SharedCompletions::User& user);
  // Completions that may be there at once, of a window that has grown.
  static uint32_t CompletionsFor(const EndpointOptions& options);

  verbs::QueuePair& queue_pair() { return *queue_pair_; }

  // What the peer said of itself, before its first message is looked at.
  void OnPeerHello(const Hello& peer);
  // The queue pair is ReadyToSend.
  void Enable() { enabled_ = true; }

  // Queues a message. kResourceExhausted: the peer has let too many wait.
  absl::Status Send(const Header& header, std::vector<uint8_t> body = {});
  // Messages that wait for the peer's slots, or to be pumped.
  size_t queued() const { return queue_.size(); }
  void Add(Stream* stream) { streams_.PushBack(stream); }
  void Remove(Stream* stream) {
    if (streams_.Listed(stream)) streams_.Remove(stream);
  }
  // Asks the peer's device for a sign of life, with what leaves next or with a message of its own.
  void Probe();
  // Messages wait for credits.
  bool starved() const { return enabled_ && more_waits() && !credits_.can_take(); }
  // Most messages need no completion of their own: the next has one.
  void AskCompletion() { completion_asked_ = true; }
  // Completions that the device owes, and those that it has given.
  bool completion_owed() const { return completed_ < signaled_; }
  uint64_t completions() const { return completed_; }

  // Bytes of body that the peer's slots, and ours, hold.
  uint32_t max_body() const { return max_message_ - static_cast<uint32_t>(kHeaderSize); }

  // Lets out what may leave. `*more` is set when only the budget held it back.
  absl::Status Pump(CopyBudget& budget, bool* more);

  // A send was done. kInternal: the device completed what was not posted.
  absl::Status OnSent(uint32_t entry);
  // A message came: its credits are taken. It lies in `slot` until Release. kInvalidArgument:
  // malformed.
  absl::StatusOr<Message> OnReceived(uint32_t slot, uint32_t byte_count);
  void Release(uint32_t slot);
  // Posts what was released, and more where the window grows; the peer learns of it with Pump.
  absl::Status Repost();

  // Nothing waits to be sent, and the peer has all that was.
  bool drained() const { return !enabled_ || (queue_.empty() && streams_.empty() && ring_.taken() == 0); }
  // Has it known of all that was sent: drained() will come true, if the peer lives.
  void Drain();

  uint64_t received() const { return received_; }

  // One of the two windows is larger than an idle connection needs, and we can do something about
  // that.
  bool may_rest() const { return enabled_ && (credits_.spare() > 0 || OwesSpare()); }
  // Gives up the credits that are too many, as many as leave at once; and lets the peer do so with
  // those that it is owed, and which are no batch yet.
  void Rest();

  uint32_t window() const { return window_; }  // receives

 private:
  static constexpr uint32_t kGrowth = 4;  // a window that is too small grows to this many times its size
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
  uint32_t window_ = 0;                  // receives: posted, with a message in it, or about to be posted
  std::vector<uint32_t> receive_slots_;  // of these
  std::vector<uint32_t> send_slots_;     // by the ring's entry
  uint32_t slot_ = kNoSlot;              // of the message that is being made
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
  uint32_t unanswered_ = 0;  // messages that came since one left, but for those that carry credits alone
  bool given_up_ = false;    // the message that is being looked at gives its slot up
  bool resting_ = false;     // credits are returned, batch or not
  bool probe_ = false;       // is to be sent
  uint32_t timed_ = kNone;   // the ring's entry of the message whose completion is waited for, to measure
  base::Time timed_at_;      // when it was posted
  uint64_t signaled_ = 0;    // messages
  uint64_t completed_ = 0;

  std::array<verbs::SendRequest, kPostBatch> staged_;
  std::array<verbs::Sge, kPostBatch> pieces_;
  std::array<uint32_t, kPostBatch> inline_slots_;  // free when they are posted
  size_t inline_count_ = 0;
  size_t staged_count_ = 0;
  absl::Status post_status_;
};

}  // namespace tokamak::transport
