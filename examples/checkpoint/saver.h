// Saver brings a run's snapshots from the trainer's node to a disk of this one.
//
// It waits for a head, pulls the pieces over RDMA, several at once, compares each with its hash,
// writes it, and commits the checkpoint. Then it puts the object for which the trainer waits. Its
// progress when it was killed does not matter: a committed checkpoint is announced again, and any
// other is saved anew.
//
// Moments, S being the step: "found S", "piece S PIECE" (written), those of CheckpointFolder, "told
// S". Thread rule: one thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "examples/checkpoint/folder.h"
#include "examples/checkpoint/manifest.h"
#include "examples/checkpoint/session.h"
#include "examples/moments.h"
#include "examples/units.h"
#include "tokamak/client.h"
#include "tokamak/status.h"

namespace tokamak::example {

struct SaverOptions {
  std::string run;
  uint32_t pieces_under_way = 4;
  Seconds idle = Seconds(600);         // given up when no snapshot comes for this long
  Seconds piece_timeout = Seconds(3);  // the trainer's node may be away
  OnMoment on_moment;
};

class Saver final {
 public:
  // Both outlive this.
  Saver(Client& client, CheckpointFolder& folder, const SaverOptions& options);

  // Saves until the final snapshot is on disk and the trainer has ended the run. kDeadlineExceeded:
  // none came for as long as `idle`. kFailedPrecondition: the folder has checkpoints that the
  // trainer did not want to continue.
  Status Run();

  uint64_t saved() const { return saved_; }  // checkpoints that this has committed
  uint64_t bytes() const { return bytes_; }  // of these

 private:
  struct Found {
    Session session;
    Manifest manifest;
  };

  Result<std::optional<Found>> Look();
  Status Check(const Manifest& manifest) const;
  bool Has(const Manifest& manifest) const;
  Status Save(const Found& found);
  Status PullInto(const Found& found, CheckpointFolder::Writer& writer);
  Status TellSaved(const Found& found);
  Status TakeBack();
  void Tell(const std::string& moment) const;

  Client& client_;
  CheckpointFolder& folder_;
  const SaverOptions options_;
  uint64_t saved_ = 0;
  uint64_t bytes_ = 0;

  // The last checkpoint announced to the trainer: its head may still be there.
  std::optional<Found> told_;
  bool taken_back_ = false;  // the object that told it is deleted
  bool over_ = false;        // that was the final one, and the run has no trainer any more
};

}  // namespace tokamak::example
