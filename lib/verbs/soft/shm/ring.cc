#include "lib/verbs/soft/shm/ring.h"

#include <cstring>
#include <new>

#include "lib/base/check.h"

namespace tokamak::verbs::soft {
namespace {

struct RecordHead {
  uint32_t length;  // bytes with this head: a multiple of kAlignment
  uint32_t skip;    // not 0: no record, up to the end of the ring
};
constexpr uint32_t kAlignment = 8;
static_assert(sizeof(RecordHead) == kAlignment, "fits whatever is left at the end of the ring");

constexpr uint32_t RoundUp(uint32_t bytes) { return (bytes + kAlignment - 1) & ~(kAlignment - 1); }
constexpr uint32_t PlaceOf(uint64_t count) { return static_cast<uint32_t>(count % kRingBytes); }

void WriteHead(uint8_t* to, uint32_t length, uint32_t skip) {
  const RecordHead head{length, skip};
  std::memcpy(to, &head, sizeof(head));
}

}  // namespace

RingWriter::RingWriter(os::MemoryMapping memory)
    : memory_(std::move(memory)),
      control_(*new (memory_.data()) RingControl),
      records_(memory_.data() + kRingControlBytes) {
  CHECK_EQ(memory_.size(), kRingMemory);
}

uint32_t RingWriter::Free() { return kRingBytes - static_cast<uint32_t>(written_ - read_); }

uint8_t* RingWriter::Reserve(uint32_t bytes) {
  const uint32_t length = RoundUp(bytes) + sizeof(RecordHead);
  const uint32_t to_end = kRingBytes - PlaceOf(written_);
  const uint32_t needed = length <= to_end ? length : to_end + length;
  if (Free() < needed) {
    const uint64_t read = control_.read.load(std::memory_order_acquire);
    if (read > written_ || written_ - read > kRingBytes) return nullptr;  // the reader broke it
    read_ = read;
    if (Free() < needed) return nullptr;
  }
  if (length > to_end) {
    WriteHead(records_ + PlaceOf(written_), to_end, 1);
    written_ += to_end;
  }
  return records_ + PlaceOf(written_) + sizeof(RecordHead);
}

void RingWriter::Add(uint32_t bytes) {
  const uint32_t length = RoundUp(bytes) + sizeof(RecordHead);
  WriteHead(records_ + PlaceOf(written_), length, 0);
  written_ += length;
}

bool RingWriter::Publish() {
  control_.written.store(written_, std::memory_order_seq_cst);
  return control_.reader_waits.load(std::memory_order_seq_cst) != 0 &&
         control_.reader_waits.exchange(0, std::memory_order_seq_cst) != 0;
}

bool RingWriter::has_room() const { return written_ - control_.read.load(std::memory_order_seq_cst) <= kRingBytes / 2; }

bool RingWriter::WaitForRoom() {
  control_.writer_waits.store(1, std::memory_order_seq_cst);
  return !has_room();
}

RingReader::RingReader(os::MemoryMapping memory)
    : memory_(std::move(memory)),
      control_(*reinterpret_cast<RingControl*>(memory_.data())),
      records_(memory_.data() + kRingControlBytes) {
  CHECK_EQ(memory_.size(), kRingMemory);
}

absl::Span<const uint8_t> RingReader::Next() {
  while (!broken_) {
    if (read_ == written_) {
      if (!ended_) Look();
      if (broken_ || read_ == written_) return {};
    }
    const uint32_t place = PlaceOf(read_);
    RecordHead head;
    std::memcpy(&head, records_ + place, sizeof(head));
    broken_ = head.length < sizeof(head) || head.length % kAlignment != 0 || head.length > written_ - read_ ||
              head.length > kRingBytes - place;
    if (broken_) return {};
    read_ += head.length;
    if (head.skip == 0) return {records_ + place + sizeof(head), head.length - sizeof(head)};
  }
  return {};
}

void RingReader::Look() {
  written_ = control_.written.load(std::memory_order_seq_cst);
  broken_ = written_ < read_ || written_ - released_ > kRingBytes;
}

void RingReader::End() {
  if (!broken_) Look();
  ended_ = true;
}

bool RingReader::Release() {
  released_ = read_;
  control_.read.store(read_, std::memory_order_seq_cst);
  if (control_.writer_waits.load(std::memory_order_seq_cst) == 0) return false;
  if (written_ - read_ > kRingBytes / 2) return false;
  return control_.writer_waits.exchange(0, std::memory_order_seq_cst) != 0;
}

}  // namespace tokamak::verbs::soft
