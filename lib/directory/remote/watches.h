// Watches sends the Locates of one node that may wait to the server together.
//
// The server gets the begins and ends of waits in order, and holds one poll until an object
// appears, or for a turn. Its state for us is one session; when that is lost (a restart, a failed
// call) everything is watched again under a new one.
//
//   asked --> sent to the server --> found, at once or with the poll
//                 | its wait is over
//                 v
//             sent once more, to be answered at once
//
// So kNotFound is the server's answer, not ours.
// Bound: kMaxWaitsOfPeer Locates; kMaxCalls requests beside the poll, kMaxBegins of which begin
//      watches: later ones go with the next.
// Thread rule: the loop of the Caller.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <vector>

#include "absl/status/status.h"
#include "lib/base/answers.h"
#include "lib/base/codec.h"
#include "lib/base/containers/intrusive_list.h"
#include "lib/base/event_loop.h"
#include "lib/base/handle.h"
#include "lib/base/random.h"
#include "lib/directory/directory.h"
#include "lib/directory/remote/messages.h"

namespace tokamak::directory {

class Watches final {
 public:
  static constexpr size_t kMaxCalls = 24;
  static constexpr size_t kMaxBegins = 8;
  static_assert(kMaxBegins < kMaxCalls, "the server hears what is not waited for any more all the same");

  // `read` gets the status and, if OK, the rest of the reply.
  using Read = std::function<void(const absl::Status&, base::Reader&)>;
  using Ask = std::function<base::Pending(const base::Writer& request, base::Duration deadline, Read read)>;

  // `loop` must outlive it. `max_request`: bytes.
  Watches(base::EventLoop& loop, size_t max_request, base::Random random, Ask ask);
  Watches(const Watches&) = delete;
  Watches& operator=(const Watches&) = delete;
  ~Watches();

  // See Directory::Locate; its wait is more than zero.
  [[nodiscard]] base::Pending Locate(const LocateRequest& request, Directory::LocateCallback done);

  // Sends ends and begins of waits, as far as the bounds allow, ahead of later requests. During an
  // outage sends only the session's end, if a wait of it was dropped: the server must no longer
  // enter its puller as coming.
  void Flush();

  size_t waiting() const { return locates_.size(); }

 private:
  struct Locating final : base::Handle {
    ~Locating() override {
      if (watches != nullptr) watches->Drop(*this);
    }

    Watches* watches = nullptr;  // null: answered
    WatchRequest request;
    NodeId puller;
    bool told = false;  // the server has it; else queued
    base::Time deadline;
    base::Timer next;  // end of its wait, then its deadline
    Directory::LocateCallback done;
    base::Pending answer;
    base::Link<Locating> queue_link;
  };
  enum class Session {
    kNone,  // the server keeps nothing for us
    kOpen,
    kLost,  // the server may keep something: the next one ends it
  };

  void FlushSoon();
  void Queue(Locating& locating);
  void Drop(Locating& locating);
  void Forget(Locating& locating);
  void Answer(Locating& locating, absl::StatusOr<LocatedObject> result);
  void WaitOver(Locating& locating);

  void SendWhatMayBe();
  void SendBatch(size_t most_begun);
  void OnWatched(const absl::Status& status, base::Reader& reader);
  void OnPolled(const absl::Status& status, base::Reader& reader);
  // False: the session was lost.
  bool TakeResults(const absl::Status& status, base::Reader& reader);
  void Continue();
  void LoseSession(const absl::Status& status);
  void WatchAnew();

  base::EventLoop& loop_;
  const size_t most_begun_;
  const Ask ask_;
  base::Answers answers_;
  SessionName session_;
  Session state_ = Session::kNone;
  bool must_end_ = false;  // a wait was dropped that the lost session may know
  uint64_t last_number_ = 0;
  std::map<uint64_t, Locating*> locates_;                       // by number, in the order asked
  base::IntrusiveList<Locating, &Locating::queue_link> queue_;  // unsent
  std::vector<uint64_t> dropped_;                               // unsent
  uint64_t last_call_ = 0;
  std::map<uint64_t, base::Pending> calls_;  // watch requests under way
  base::Pending poll_;                       // null: none is held
  base::Timer flushing_;
  base::Timer outage_;  // armed: nothing is sent
};

}  // namespace tokamak::directory
