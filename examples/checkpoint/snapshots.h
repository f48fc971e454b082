// Snapshots are checkpoints that a training loop puts into its node's store, from where a saver on
// another node pulls them: the loop waits for a copy of its state in memory, and for nothing else.
//
// A thread of this does the rest. It claims room for the next snapshot before that is due, and once
// it was filled, hashes and seals the pieces, puts the manifest behind them, waits until the saver
// says that it has all, and deletes it. One snapshot is under way; one that comes due meanwhile may
// be left out (ready()). The store keeps room for one state.
//
// A trainer that is started again takes its run over: it deletes the objects of the last one,
// wherever that was killed. A trainer that still lives gets an error at its next snapshot.
//
// Moments, S being the step: "copied S", "sealed S PIECE", "head S", "saved S", "deleted S".
// Thread rule: one thread, the loop's.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "examples/checkpoint/checkpoints.h"
#include "examples/checkpoint/manifest.h"
#include "examples/checkpoint/session.h"
#include "examples/moments.h"
#include "examples/units.h"
#include "tokamak/client.h"
#include "tokamak/span.h"
#include "tokamak/status.h"

namespace tokamak::example {

struct SnapshotOptions {
  std::string run;
  uint64_t state_bytes = 0;
  uint64_t piece_bytes = 4 << 20;
  bool resumed = false;  // as the manifest says it

  // For what the loop waits for: taking the run over, room for the first snapshot, and in the end
  // the saver.
  Seconds deadline = Seconds(30);
  OnMoment on_moment;
};

class Snapshots final : public Checkpoints {
 public:
  // Takes over the run. `client` outlives this. kUnavailable: a node that may hold something of the
  // run's last trainer cannot be asked. kResourceExhausted: the store has no room for a snapshot.
  static Result<std::unique_ptr<Snapshots>> Begin(Client& client, const SnapshotOptions& options);

  // Leaves its objects in the store, as if the process were killed.
  ~Snapshots() override;

  bool ready() override;

  // Copies the state. Waits for the one before, up to the deadline.
  Status Take(uint64_t step, Span<const uint8_t> state, bool final) override;

  // Waits for the saver, up to the deadline, and deletes all that the run has in the store.
  Status Finish() override;

  Status status() override;

 private:
  enum class State {
    kPreparing,  // the thread claims room
    kReady,      // the loop may fill it
    kTaken,      // the thread has it on its way to the saver
    kEnded,      // the thread is done: after the final one, because of an error, or on request
  };

  Snapshots(Client& client, const SnapshotOptions& options, uint64_t life, uint64_t pieces);

  Status TakeOver();
  Status DeleteEarlier();
  Status Delete(const ObjectId& id);
  Status DeleteSlot(const Session& session, uint64_t slot);
  Status StillOurs();
  bool Pause();

  void Work();
  Status OneAfterTheOther();
  Status Prepare();
  bool AwaitTaken();
  Status Publish();
  Status AwaitSaved();
  Status AwaitState(State state, Seconds deadline);
  void Enter(State state);
  void Tell(const std::string& moment) const;

  Client& client_;
  const SnapshotOptions options_;
  const Session session_;

  std::mutex mutex_;  // for what follows
  std::condition_variable changed_;
  State state_ = State::kPreparing;
  bool stop_ = false;
  Status status_;

  // The loop's while kReady, else the thread's.
  std::vector<MutableBuffer> pieces_;
  Manifest manifest_;

  std::thread thread_;
};

}  // namespace tokamak::example
