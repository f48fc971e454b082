// Locates sends the Locates of one node that do not wait to the server in batches: those of one
// task, or that come before the next, go in one request.
//
// A reply answers as many as it has room for; the rest is sent again at once. A request has one
// puller and one deadline.
// Bound: kMaxWaitsOfPeer Locates, in kMaxCalls requests; later ones gather meanwhile.
// Thread rule: the loop of the Caller.
#pragma once

#include <cstddef>
#include <deque>
#include <functional>
#include <memory>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "absl/status/status.h"
#include "lib/base/answers.h"
#include "lib/base/codec.h"
#include "lib/base/event_loop.h"
#include "lib/base/handle.h"
#include "lib/directory/directory.h"
#include "lib/directory/remote/messages.h"

namespace tokamak::directory {

class Locates final {
 public:
  static constexpr size_t kMaxCalls = 32;

  // As in watches.h.
  using Read = std::function<void(const absl::Status&, base::Reader&)>;
  using Ask = std::function<base::Pending(const base::Writer& request, base::Duration deadline, Read read)>;

  // `loop` must outlive it. `max_request`: bytes.
  Locates(base::EventLoop& loop, size_t max_request, Ask ask);
  Locates(const Locates&) = delete;
  Locates& operator=(const Locates&) = delete;
  ~Locates();

  // See Directory::Locate; its wait is zero.
  [[nodiscard]] base::Pending Locate(const LocateRequest& request, Directory::LocateCallback done);

  // Sends them, as far as the bounds allow, ahead of later requests.
  void Flush();

 private:
  struct Call;
  struct Locating final : base::Handle {
    ~Locating() override {
      if (locates != nullptr) locates->Drop(*this);
    }

    Locates* locates = nullptr;  // null: answered
    base::ObjectId id;
    bool may_bring = false;
    Directory::LocateCallback done;
    Call* call = nullptr;
    size_t place = 0;  // in the call
  };
  struct Call {
    NodeId puller;
    base::Time deadline;
    absl::InlinedVector<Locating*, 1> asked;  // null: dropped
    size_t live = 0;                          // not dropped
    base::Pending under_way;                  // null: not sent yet
    base::Timer overdue;                      // while unsent
  };

  void Add(Locating& locating, const NodeId& puller, base::Time deadline);
  void Drop(Locating& locating);
  std::unique_ptr<Call> Take(const Call& call);
  void SendWaiting();
  void Send(Call& call);
  void OnReply(const Call& ended, const absl::Status& status, base::Reader& reader);
  static void Orphan(const Call& call);
  static void Answer(Locating& locating, absl::StatusOr<LocatedObject> result);

  base::EventLoop& loop_;
  const size_t most_asked_;
  const Ask ask_;
  base::Answers answers_;
  size_t under_way_ = 0;
  std::vector<std::unique_ptr<Call>> calls_;
  std::deque<Call*> waiting_;  // full, unsent
  size_t sent_ = 0;            // of calls_
  Call* gathering_ = nullptr;  // unsent; of calls_
  base::Timer flushing_;
  base::Timer sending_;
  const base::Lifetime lifetime_;
};

}  // namespace tokamak::directory
