// Comparison finds where the directory and this node's store differ: objects here that the
// directory does not know, and objects that it takes this node to hold and are not here.
//
//   Begin --> pages of the store, which the directory verifies
//         --> pages of what the directory takes this node to hold --> ended
//
// A thorough round goes over all of both. Another goes over the whole store, and over at most as
// many pages of the directory's from where the last round ended: a directory of many nodes looks
// through everybody's objects for that.
//
// Law: a difference that lasts from the beginning of a thorough round to its end is reported.
// Law: no question is asked without room for the differences it may find.
// Bound: one question is under way. Thread rule: the node's control loop.
#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "lib/base/event_loop.h"
#include "lib/base/generation.h"
#include "lib/base/handle.h"
#include "lib/directory/directory.h"
#include "lib/store/store.h"

namespace tokamak::node {

class Comparison final {
 public:
  // References must outlive it.
  struct Needs {
    base::EventLoop& loop;
    store::Store& store;
    directory::Directory& directory;
    directory::NodeId self;
    base::Duration deadline;  // of each question
  };
  struct Callbacks {
    // The number of differences there is room for. 0: Continue follows when there is room.
    std::function<size_t()> room;
    // True if the directory is being told of it anyhow.
    std::function<bool(const base::ObjectVersion&)> is_told;
    // Reports an object that is here (or not), contrary to the directory.
    std::function<void(const base::ObjectVersion&, bool here)> differs;
    // The round has ended; an error: early, because the directory did not answer.
    std::function<void(const absl::Status&)> ended;
  };

  Comparison(Needs needs, Callbacks callbacks) : needs_(std::move(needs)), callbacks_(std::move(callbacks)) {}
  Comparison(const Comparison&) = delete;
  Comparison& operator=(const Comparison&) = delete;

  // Begins a round, replacing one under way.
  void Begin(bool thorough);
  // Goes on when there may be room again.
  void Continue();
  void Stop();
  bool running() const { return running_; }

 private:
  void NextSoon();
  void Next();
  void AskAboutThese(const std::vector<store::StoredObject>& page);
  void Verified(const std::vector<base::ObjectVersion>& versions, const absl::StatusOr<std::vector<uint32_t>>& unknown);
  void AskWhatIsHeld();
  void Held(const absl::StatusOr<directory::HeldReply>& held);
  void End(const absl::Status& status);

  const Needs needs_;
  const Callbacks callbacks_;
  bool running_ = false;
  bool thorough_ = false;
  bool waits_for_room_ = false;
  bool store_is_done_ = false;
  std::optional<base::ObjectId> verified_to_;
  size_t pages_left_ = 0;  // of the directory's, in a round that is not thorough
  std::string held_after_;
  base::Pending asking_;
  base::Timer next_;
};

}  // namespace tokamak::node
