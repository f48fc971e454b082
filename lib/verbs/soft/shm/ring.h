// A ring of records in shared memory: one process writes, another reads, without system calls while
// both are busy.
//
// RingControl is in the first page, kRingBytes of records follow. Both sides count bytes ever. A
// record lies in one piece, after one that skips the end of the ring where it does not fit. An idle
// side says that it waits, looks once more, and is woken once.
//
// Neither trusts the other: the reader checks each length first; a broken ring stays broken; a
// record's bytes may change while they are read.
// Thread rule: a writer, and a reader, one thread at a time.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <utility>

#include "absl/types/span.h"
#include "lib/os/shared_memory.h"

namespace tokamak::verbs::soft {

constexpr uint32_t kRingBytes = 1 << 20;
constexpr size_t kRingControlBytes = 4096;
constexpr uint64_t kRingMemory = kRingControlBytes + kRingBytes;

struct RingControl {
  alignas(64) std::atomic<uint64_t> written{0};       // bytes, the writer's
  alignas(64) std::atomic<uint64_t> read{0};          // bytes, the reader's
  alignas(64) std::atomic<uint32_t> reader_waits{0};  // for a record
  alignas(64) std::atomic<uint32_t> writer_waits{0};  // for half of the ring
};
static_assert(sizeof(RingControl) <= kRingControlBytes);
static_assert(std::atomic<uint64_t>::is_always_lock_free, "two processes use them");

class RingWriter final {
 public:
  // `memory`: kRingMemory bytes, zero, writable.
  explicit RingWriter(os::MemoryMapping memory);

  // Returns memory for a record of `bytes`, at most kRingBytes / 4; null: full.
  uint8_t* Reserve(uint32_t bytes);
  // Adds the record at the last Reserve, or less of it.
  void Add(uint32_t bytes);

  // Shows records to the reader. Returns true if it waits, and must be woken.
  bool Publish();

  // Asks for a wake-up when half of the ring is free. Returns false if there is room.
  bool WaitForRoom();
  bool has_room() const;

 private:
  uint32_t Free();

  os::MemoryMapping memory_;
  RingControl& control_;
  uint8_t* const records_;
  uint64_t written_ = 0;
  uint64_t read_ = 0;  // as far as known
};

class RingReader final {
 public:
  // `memory`: kRingMemory bytes, writable.
  explicit RingReader(os::MemoryMapping memory);

  // Returns a record, which lives until Release; empty: none, or broken. Between Releases at most
  // what the ring holds.
  absl::Span<const uint8_t> Next();

  // Ends the ring: the writer is gone and has published all, even if somebody still has the memory.
  void End();

  // Gives back the room of Next's records. Returns true if the writer waits, and must be woken.
  bool Release();

  // Asks for a wake-up at new records; earlier ones may be there.
  void Arm() { control_.reader_waits.store(1, std::memory_order_seq_cst); }

  // True if the writer broke the rules: no more records.
  bool broken() const { return broken_; }

 private:
  void Look();

  os::MemoryMapping memory_;
  RingControl& control_;
  const uint8_t* const records_;
  uint64_t read_ = 0;
  uint64_t released_ = 0;
  uint64_t written_ = 0;  // as far as known
  bool broken_ = false;
  bool ended_ = false;
};

}  // namespace tokamak::verbs::soft
