// Pull is one transfer on the side that wants the object: it asks, and runs the puller's half of a
// protocol.
//
//   waiting --> opening --> asked --> moving --> closing --> over
//      |           |          |          |          ^
//      +-----------+----------+----------+-> stopping
//
// Waiting: for the connection, and by write for a turn. Opening, closing: by write, of the memory
// to the owner (write_target.h). Stopping: until the owner and our own requests are done with the
// memory.
//
// Law: memory goes back to the sink (Done) only when no READ of ours is in flight into it and no
// key of the peer's opens it. Done runs in a task of its own.
//
// A pull without progress for `patience` is given up, long before the deadline. READs and WRITEs
// take turns on a connection: while others move there, the pull only waits.
#pragma once

#include <cstdint>
#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "lib/base/containers/intrusive_list.h"
#include "lib/transport/channels/bulk_channel.h"
#include "lib/transport/channels/context.h"
#include "lib/transport/messages/message.h"
#include "lib/transport/peer_connection.h"
#include "lib/transport/policy/adaptive_policy.h"
#include "lib/transport/protocols/eager.h"
#include "lib/transport/protocols/read.h"
#include "lib/transport/protocols/write.h"

namespace tokamak::transport {

class Pull final : public BulkJob::Owner, private WriteTarget::Owner {
 public:
  // It owns the pulls, and holds what they share.
  class Host {
   public:
    virtual ~Host() = default;
    virtual PeerConnection& connection() = 0;
    virtual bool peer_has_room() const = 0;
    virtual bool write_has_turn() const = 0;
    // Counts a pull that is about to be asked for.
    virtual void TakeTurn(bool by_write) = 0;
    virtual void GiveTurn(bool by_write) = 0;
    // Gives it a number; it must be asked for in this very call.
    virtual uint64_t Bind(Pull* pull, bool by_write) = 0;
    virtual void NotByWrite(uint64_t number) = 0;
    virtual void Unbind(uint64_t number, bool by_write) = 0;
    virtual void Forget(Pull* pull) = 0;
    // Time of any pull's last READ completion or progress report.
    virtual base::Time bulk_moved_at() const = 0;
    virtual void BulkMovedAt(base::Time now) = 0;
  };

  Pull(Context& context, Host& host, PullId id, const PullRequest& request, std::unique_ptr<Sink> sink);
  ~Pull() override;

  // Needs a connection that is up. By write it may need a turn: another Start follows.
  void Start();

  // Messages of the owner. Errors: a protocol violation.
  absl::Status OnData(const Header& header);
  absl::Status OnChunk(const Message& message, CopyBudget& budget);
  absl::Status OnDone(const Header& header);
  absl::Status OnNote(const Note& note);
  absl::Status OnProgress(const Header& header);
  void OnFail(const Header& header, const absl::Status& status);

  // Nothing can touch the memory any more. May delete this.
  void OnBroken(const absl::Status& status);

  void Cancel();
  void OnBulkFailed(const absl::Status& status) { Stop(status); }

  void OnJobProgress() override {
    BulkMoves();
    sink_->Moved(request_.arrived + read_.job().bytes_done);
  }
  void OnJobOver() override;

  bool waits_for_notes() const { return state_ >= State::kAsked && state_ < State::kStopping && key_is_out(); }
  WantedWrite wanted() const { return {number_, write_.shares_seen()}; }

  bool wants_bulk() const { return asked_ != Protocol::kEager && !memory_.empty(); }

  bool waiting() const { return state_ == State::kWaiting; }

  base::Link<Pull> table_link;

 private:
  enum class State { kWaiting, kOpening, kAsked, kMoving, kStopping, kClosing, kOver };
  void Enter(State state);
  void Record(base::Phase phase) { context_.RecordPhase(request_.activity, phase); }

  void Ask();
  void StartReading(const RemoteRange& source);
  void EndIfComplete();

  void Stop(absl::Status status);
  void OnGrace();
  void SendCancel();
  void Finish(absl::Status status);
  void End();
  void Conclude();

  // WriteTarget::Owner
  void OnTarget() override;

  uint64_t Arrived() const;
  absl::Status CheckSize(const ObjectSize& actual) const;
  void LimitTo(base::Duration left);
  void ArmLimit();
  void OnLimit();
  void Moves() { moved_at_ = context_.loop.Now(); }
  void BulkMoves();
  Protocol AskedProtocol() const { return choice_.protocol != Protocol::kAuto ? choice_.protocol : GivenProtocol(); }
  Protocol GivenProtocol() const;
  AdaptivePolicy::Choice ChooseByExperience();
  void TellHowItEnded();
  uint32_t MillisecondsLeft() const;
  bool by_write() const { return asked_ == Protocol::kWrite && !downgraded_; }
  // True if its chunks take turns with others on the connection, whose progress then counts.
  bool takes_bulk_turns() const {
    if (by_write()) return state_ == State::kAsked || state_ == State::kMoving;
    return state_ == State::kMoving && moved_by_ == Protocol::kRead;
  }
  // True from asking on.
  bool key_is_out() const { return by_write() && !memory_.empty(); }

  Context& context_;
  Host& host_;
  const PullId id_;
  const PullRequest request_;
  std::unique_ptr<Sink> sink_;
  const base::Time started_;
  const absl::Span<uint8_t> memory_;
  const AdaptivePolicy::Choice choice_;  // kAuto: the policy was not asked
  const Protocol asked_;
  State state_ = State::kWaiting;
  bool has_turn_ = false;
  uint64_t number_ = 0;  // on the wire; 0: not asked for yet
  Protocol moved_by_ = Protocol::kAuto;
  bool downgraded_ = false;

  EagerPuller eager_;
  ReadPuller read_;
  WritePuller write_;

  uint64_t written_ = 0;  // by write, last reported by the owner
  uint64_t arrived_;      // bytes from the start, by the owner or an earlier pull
  base::Time moved_at_;   // of the last progress
  base::Time began_;      // waits for nothing else of the connection since
  bool typical_ = false;  // true if that is typical of such pulls
  base::Time deadline_time_;
  base::Timer limit_;  // deadline or patience
  base::Timer next_;   // grace of stopping or closing; then the end
  absl::Status outcome_;
};

}  // namespace tokamak::transport
