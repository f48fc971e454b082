// Manifest says what a snapshot consists of: its run and step, how long its pieces are, and the
// hash of each.
//
// As JSON it is the object that the trainer puts last, and the file that the saver writes last:
// where a manifest is, the whole is. It comes from another program or from a disk, and so Parse
// takes nothing for granted.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "tokamak/span.h"
#include "tokamak/status.h"

namespace tokamak::example {

struct Manifest {
  static constexpr uint64_t kMaxPieces = 4096;
  static constexpr uint64_t kMaxBytes = 256 * 1024;  // of the manifest as text
  static_assert(kMaxPieces * 24 < kMaxBytes, "the hashes of all pieces fit");

  std::string run;
  uint64_t life = 0;     // of the trainer: drawn when it started
  uint64_t number = 0;   // of this life's snapshots, from 0
  bool resumed = false;  // the life was to begin from the newest checkpoint, if there was one
  uint64_t step = 0;     // steps done
  bool final = false;    // the last one of the run
  uint64_t bytes = 0;
  uint64_t piece_bytes = 0;      // of each but the last, which may be shorter
  std::vector<uint64_t> hashes;  // XXH64 of each piece

  uint64_t pieces() const { return hashes.size(); }
  uint64_t PieceBegin(uint64_t piece) const { return piece * piece_bytes; }
  uint64_t PieceSize(uint64_t piece) const { return std::min(piece_bytes, bytes - PieceBegin(piece)); }

  std::string ToJson() const;
  // kInvalidArgument: the text begins with `what`.
  static Result<Manifest> Parse(absl::string_view text, absl::string_view what);
};

// How many pieces `bytes` take. kInvalidArgument: more than kMaxPieces, or none.
Result<uint64_t> CountPieces(uint64_t bytes, uint64_t piece_bytes);

uint64_t HashOfPiece(Span<const uint8_t> piece);

// 16 hexadecimal digits, since not every reader of JSON has integers of 64 bits.
std::string ToHex(uint64_t number);
Result<uint64_t> FromHex(absl::string_view text);

}  // namespace tokamak::example
