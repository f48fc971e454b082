// Serve is one transfer on the side that has the object: it pins, may choose eager, and runs the
// owner's half.
//
//   pinning --> eager | reading | writing --> (end)
//                                    |
//                                    +--> stopping --> (end): WRITEs in flight, no more are posted
//
// Law: the pin is given back only when nobody can READ the object through this transfer (DONE,
// CANCEL, or the connection is gone) and no WRITE of ours is in flight from it.
#pragma once

#include <cstdint>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "lib/base/containers/intrusive_list.h"
#include "lib/transport/channels/bulk_channel.h"
#include "lib/transport/channels/context.h"
#include "lib/transport/channels/peer_shares.h"
#include "lib/transport/messages/message.h"
#include "lib/transport/peer_connection.h"
#include "lib/transport/protocols/eager.h"
#include "lib/transport/protocols/read.h"
#include "lib/transport/protocols/write.h"

namespace tokamak::transport {

class Serve final : public BulkJob::Owner, public EagerOwner::Listener {
 public:
  class Host {
   public:
    virtual ~Host() = default;
    virtual PeerConnection& connection() = 0;
    virtual void Forget(Serve* serve, uint64_t number) = 0;
  };

  // `share` counts it, and outlives it.
  Serve(Context& context, Host& host, PeerShares::Share& share, const Header& transfer);
  ~Serve() override;

  void Start();

  // Messages of the puller. May delete this. Errors: a protocol violation.
  absl::Status OnDone(const Header& header);
  void OnCancel();

  void OnJobProgress() override {}
  void OnJobOver() override;
  void OnStreamOver() override;

  base::Link<Serve> table_link;

 private:
  enum class State { kPinning, kEager, kReading, kWriting, kStopping };

  void OnPinned(absl::StatusOr<PinnedObject> object);
  absl::Status CheckSize(const ObjectSize& actual) const;
  Protocol Choose(uint64_t size) const;
  uint64_t rest() const { return object_.size.total() - transfer_.arrived; }  // left to move
  uint64_t Arrived() const;
  void ServeEager();
  bool ServeRead();
  bool ServeWrite();
  void TellProgress();
  void OnDeadline();
  void StopWriting(absl::Status status);
  void StoppedWriting();
  void Fail(const absl::Status& status);
  void End(bool ok);

  Context& context_;
  Host& host_;
  PeerShares::Share& share_;
  const Header transfer_;
  const PinId pin_;
  State state_ = State::kPinning;
  bool pinned_ = true;  // or being pinned
  PinnedObject object_;
  EagerOwner eager_;
  ReadOwner read_;
  WriteOwner write_;
  const base::Time granted_until_;
  base::Timer deadline_;
  base::Timer progress_;  // writing: next report
  uint64_t told_ = 0;     // bytes reported
  uint64_t requests_told_ = 0;
  absl::Status outcome_;  // of stopping
};

}  // namespace tokamak::transport
