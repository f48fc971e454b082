// A ring of records in shared memory: one process writes, another reads, and neither asks the
// kernel for anything while both are at it.
//
// The memory holds RingControl in its first page and kRingBytes of records after it. Both sides
// count bytes that ever went through; a record lies in one piece, so what is left at the end of
// the ring before one that does not fit is skipped by a record that says so. Who finds nothing to
// do says that it waits, looks once more, and is then woken by the other side, once.
//
// Neither believes the other: the reader checks each length before it looks at a record, and a
// ring that was broken stays broken. Bytes of a record may change while they are read.
// Thread rule: a writer, and likewise a reader, is used by one thread at a time.
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
  alignas(64) std::atomic<uint32_t> reader_waits{0};  // for something to read
  alignas(64) std::atomic<uint32_t> writer_waits{0};  // for half of the ring to be free
};
static_assert(sizeof(RingControl) <= kRingControlBytes);
static_assert(std::atomic<uint64_t>::is_always_lock_free, "two processes use them");

class RingWriter final {
 public:
  // `memory` has kRingMemory bytes, all zero, and is writable.
  explicit RingWriter(os::MemoryMapping memory);

  // Where the next record may be written, with room for `bytes` (at most kRingBytes / 4). Null: the
  // ring is full.
  uint8_t* Reserve(uint32_t bytes);
  // The record at the last Reserve is whole, with that many bytes or fewer.
  void Add(uint32_t bytes);

  // The reader may have what was added. Returns whether it waits, and is to be woken.
  bool Publish();

  // From now on the reader wakes when half of the ring is free. False: there is room already.
  bool WaitForRoom();
  bool has_room() const;

 private:
  uint32_t Free();

  os::MemoryMapping memory_;
  RingControl& control_;
  uint8_t* const records_;
  uint64_t written_ = 0;
  uint64_t read_ = 0;  // as far as is known
};

class RingReader final {
 public:
  // `memory` has kRingMemory bytes and is writable.
  explicit RingReader(os::MemoryMapping memory);

  // The next record, which lives until Release. Nothing: there is none, or the ring is broken.
  // Before a Release it returns no more than the ring holds.
  absl::Span<const uint8_t> Next();

  // The writer is gone: what it has published is all that there is, whoever still has the memory.
  void End();

  // The writer may have the room of all that Next returned. Returns whether it waits, and is to be
  // woken.
  bool Release();

  // From now on the writer wakes when it adds something. What came before may still be there.
  void Arm() { control_.reader_waits.store(1, std::memory_order_seq_cst); }

  // The writer broke the rules; there will be nothing more.
  bool broken() const { return broken_; }

 private:
  void Look();

  os::MemoryMapping memory_;
  RingControl& control_;
  const uint8_t* const records_;
  uint64_t read_ = 0;
  uint64_t released_ = 0;
  uint64_t written_ = 0;  // as far as is known
  bool broken_ = false;
  bool ended_ = false;
};

}  // namespace tokamak::verbs::soft
