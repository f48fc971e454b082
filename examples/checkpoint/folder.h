// CheckpointFolder keeps the latest two checkpoints of a run on disk.
//
//   000017.data    the state
//   000017.json    its manifest
//
// Numbers count up; the highest is the newest. Data and manifest are each written under another
// name, synced, and renamed, the manifest last: whenever the process or the machine is stopped, a
// manifest has all of its data beside it. Hashes are compared when a checkpoint is loaded, so a
// loss on the disk is noticed, and the checkpoint before is taken. Thread rule: one thread. One
// process may write a folder, any number may load from it.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "examples/checkpoint/manifest.h"
#include "examples/moments.h"
#include "tokamak/span.h"
#include "tokamak/status.h"

namespace tokamak::example {

// A descriptor that is closed with this.
class File final {
 public:
  File() = default;
  explicit File(int descriptor) : descriptor_(descriptor) {}
  File(File&& other) noexcept : descriptor_(std::exchange(other.descriptor_, -1)) {}
  File& operator=(File&& other) noexcept {
    std::swap(descriptor_, other.descriptor_);
    return *this;
  }
  ~File();

  int get() const { return descriptor_; }
  bool valid() const { return descriptor_ >= 0; }

 private:
  int descriptor_ = -1;
};

class CheckpointFolder final {
 public:
  static constexpr size_t kKept = 2;

  // One checkpoint while it is written. Dropping it before Commit leaves nothing.
  class Writer final {
   public:
    Writer(Writer&&) = default;
    ~Writer();

    // Each piece once, in any order, `bytes` as long as the manifest says.
    Status Write(uint64_t piece, Span<const uint8_t> bytes);

    // Makes it the newest, on disk for good, and removes what is older than the latest two.
    // `manifest` has the hashes by now.
    Status Commit(const Manifest& manifest);

   private:
    friend class CheckpointFolder;
    Writer(CheckpointFolder& folder, std::string name, uint64_t bytes, uint64_t piece_bytes, File file)
        : folder_(&folder), name_(std::move(name)), bytes_(bytes), piece_bytes_(piece_bytes), file_(std::move(file)) {}

    CheckpointFolder* folder_;
    std::string name_;
    uint64_t bytes_;
    uint64_t piece_bytes_;
    File file_;
  };

  // For writing: makes the folder where there is none, and removes what was half written.
  // kFailedPrecondition: another process writes it, or it has the checkpoints of another run.
  // Moments "data STEP" and "manifest STEP": each is on disk from then on.
  static Result<std::unique_ptr<CheckpointFolder>> Open(const std::string& path, const std::string& run,
                                                        OnMoment on_moment);

  // Reads the newest whole checkpoint of a run into `state`, and returns its manifest; nullopt if
  // there is none, or no folder. `skipped` gets a line for each newer one that is not whole.
  // kDataLoss: there are checkpoints, and none is whole. kFailedPrecondition: it is another run's,
  // or its state has another size.
  static Result<std::optional<Manifest>> LoadNewest(const std::string& path, const std::string& run,
                                                    Span<uint8_t> state, std::vector<std::string>& skipped);

  CheckpointFolder(const CheckpointFolder&) = delete;
  CheckpointFolder& operator=(const CheckpointFolder&) = delete;

  // Begins a checkpoint; one at a time. The writer does not outlive this.
  Result<Writer> Begin(uint64_t bytes, uint64_t piece_bytes);

  // The last that was committed, by this or by an earlier process.
  const std::optional<Manifest>& newest() const { return newest_; }

 private:
  CheckpointFolder(std::string path, OnMoment on_moment, File folder)
      : path_(std::move(path)), on_moment_(std::move(on_moment)), folder_(std::move(folder)) {}

  Status Recover(const std::string& run);
  std::string PathOf(const std::string& file) const { return path_ + "/" + file; }
  Status Sync() const;
  Status RemoveOld() const;
  void Tell(const char* what, uint64_t step) const;

  const std::string path_;
  const OnMoment on_moment_;
  const File folder_;  // locked
  uint64_t next_ = 1;
  std::optional<Manifest> newest_;
};

}  // namespace tokamak::example
