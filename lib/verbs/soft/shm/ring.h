// A ring of records in shared memory: one process writes, another reads, without system calls while
// both are busy.
//
// RingControl is in the first page, and kRingBytes of records follow. Both sides count all bytes
// ever. A record lies in one piece: one that does not fit the end of the ring follows a record that
// skips it. A side without work says that it waits, looks once more, and is then woken by the other
// side, once.
//
// Neither trusts the other: the reader checks each length before it looks at a record, a broken
// ring stays broken, and a record's bytes may change while they are read.
// Thread rule: a writer is used by one thread at a time, and so is a reader.
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
  alignas(64) std::atomic<uint64_t> written{0};       // bytes, by the writer
  alignas(64) std::atomic<uint64_t> read{0};          // bytes, by the reader
  alignas(64) std::atomic<uint32_t> reader_waits{0};  // for a record
  alignas(64) std::atomic<uint32_t> writer_waits{0};  // for half of the ring to be free
};
static_assert(sizeof(RingControl) <= kRingControlBytes);
static_assert(std::atomic<uint64_t>::is_always_lock_free, "two processes use them");

class RingWriter final {
 public:
  // `memory` has kRingMemory bytes, all zero, and is writable.
  explicit RingWriter(os::MemoryMapping memory);

  // Returns memory for a record of `bytes`, at most kRingBytes / 4. Null: the ring is full.
  uint8_t* Reserve(uint32_t bytes);
  // Adds the record at the last Reserve, of that many bytes or fewer.
  void Add(uint32_t bytes);

  // Shows the reader what was added. Returns true if it waits, and must be woken.
  bool Publish();

  // Asks for a wake-up when half of the ring is free. Returns false if there is room already.
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
  // `memory` has kRingMemory bytes and is writable.
  explicit RingReader(os::MemoryMapping memory);

  // Returns the next record, which lives until Release; an empty one if there is none, or the ring
  // is broken. Between two Releases it returns no more than the ring holds.
  absl::Span<const uint8_t> Next();

  // Ends the ring: the writer is gone and has published all, even if somebody still has the memory.
  void End();

  // Gives the writer the room of all that Next returned. Returns true if it waits, and must be
  // woken.
  bool Release();

  // Asks for a wake-up when a record is added. Earlier ones may still be there.
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
