// RemoteWaits are the Locates of one node that wait for their objects, asked of the server together.
//
// The server holds few calls for each peer, and a node's lease is renewed the same way. So all that waits shares a few held
// calls, each for up to kMaxIdsAsked objects. A held call ends when one of its objects appears, or after its turn; what it did
// not answer goes into the next. What is new goes into one call with a short turn, and from there, with what else is between
// calls, into one with a long turn: so many small waits come together in few calls, and nothing new waits for a long turn.
// Where a wait ends in vain the server is asked once more, for all that end then together: "nobody has it" is its word, not
// ours.
//
//   fresh --> in the short call --> seasoned <--> in a long call --> found
//
// Thread rule: the loop of the Caller.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <vector>

#include "absl/status/status.h"
#include "lib/base/codec.h"
#include "lib/base/event_loop.h"
#include "lib/base/object_id.h"
#include "lib/directory/answers.h"
#include "lib/directory/directory.h"

namespace tokamak::directory {

class RemoteWaits final {
 public:
  static constexpr uint32_t kLongCalls = 7;     // and a short one
  static constexpr size_t kMaxWaiting = 65536;  // Locates; more are refused (kResourceExhausted)

  // Sends a request; `read` gets the status and, where that is ok, what follows it in the reply. It does not run any more when
  // this was dropped.
  using Read = std::function<void(const absl::Status&, base::Reader&)>;
  using Ask = std::function<void(const base::Writer& request, base::Duration deadline, Read read)>;

  // `loop` must outlive it. Requests have at most `max_request` bytes.
  RemoteWaits(base::EventLoop& loop, size_t max_request, Ask ask);
  RemoteWaits(const RemoteWaits&) = delete;
  RemoteWaits& operator=(const RemoteWaits&) = delete;

  // See Directory::Locate; `wait` is more than zero.
  void Locate(const base::ObjectId& id, base::Duration wait, base::Duration deadline, Directory::LocateCallback done);

  size_t waiting() const { return waiting_; }

 private:
  struct Locating {
    Directory::LocateCallback done;
    base::Time deadline;
    base::Timer wait_end;
  };
  // All who wait for one object.
  struct Awaited {
    std::map<uint64_t, Locating> locating;
    bool asked = false;  // in a held call; else fresh or seasoned
  };
  enum class Turn { kShort, kLong };
  struct LastChance {
    base::ObjectId id;
    base::Time deadline;
    Directory::LocateCallback done;
  };

  void AskSoon();
  void AskNow();
  void HoldCall(Turn turn);
  void TakeInto(std::vector<base::ObjectId>& ids, std::set<base::ObjectId>& from);
  void HeldCallEnded(const std::vector<base::ObjectId>& ids, const absl::Status& status, base::Reader& reader);
  void WaitOver(const base::ObjectId& id, uint64_t number);
  void AskLast();
  void LastAnswered(const std::vector<LastChance>& chances, const absl::Status& status, base::Reader& reader);
  void Appeared(const base::ObjectId& id, const ObjectInfo& object);
  void Answer(Directory::LocateCallback done, absl::StatusOr<ObjectInfo> result);
  base::Writer Request(const std::vector<base::ObjectId>& ids, base::Duration wait) const;

  base::EventLoop& loop_;
  const size_t ids_per_call_;
  const Ask ask_;
  uint64_t last_number_ = 0;
  size_t waiting_ = 0;
  std::map<base::ObjectId, Awaited> awaited_;
  std::set<base::ObjectId> fresh_;     // awaited, and in no call yet
  std::set<base::ObjectId> seasoned_;  // awaited, and between calls
  std::vector<LastChance> last_chances_;
  bool short_call_ = false;  // is held
  uint32_t long_calls_ = 0;
  base::Timer asking_;
  base::Timer retry_;
  Answers answers_;
};

}  // namespace tokamak::directory
