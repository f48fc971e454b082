// BlockingCheckpoints write the state to a folder while the training loop waits: the plain way, to
// compare with.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "examples/checkpoint/checkpoints.h"
#include "examples/checkpoint/folder.h"
#include "examples/checkpoint/manifest.h"
#include "tokamak/span.h"
#include "tokamak/status.h"

namespace tokamak::example {

class BlockingCheckpoints final : public Checkpoints {
 public:
  // `manifest` is that of each except number, step, final and hashes. `folder` outlives this.
  BlockingCheckpoints(CheckpointFolder& folder, Manifest manifest) : folder_(folder), manifest_(std::move(manifest)) {}

  bool ready() override { return true; }

  Status Take(uint64_t step, Span<const uint8_t> state, bool final) override {
    Manifest manifest = manifest_;
    manifest.number = number_++;
    manifest.step = step;
    manifest.final = final;
    const auto pieces = CountPieces(manifest.bytes, manifest.piece_bytes);
    if (!pieces.ok()) return pieces.status();
    auto writer = folder_.Begin(manifest.bytes, manifest.piece_bytes);
    if (!writer.ok()) return writer.status();
    for (uint64_t piece = 0; piece < *pieces; ++piece) {
      const auto bytes = state.subspan(manifest.PieceBegin(piece), manifest.PieceSize(piece));
      manifest.hashes.push_back(HashOfPiece(bytes));
      if (Status s = writer->Write(piece, bytes); !s.ok()) return s;
    }
    return writer->Commit(manifest);
  }

  Status Finish() override { return Status(); }
  Status status() override { return Status(); }

 private:
  CheckpointFolder& folder_;
  const Manifest manifest_;
  uint64_t number_ = 0;
};

}  // namespace tokamak::example
