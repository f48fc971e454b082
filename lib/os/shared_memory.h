// SharedMemory is one piece of memory that several processes map: a memfd of fixed size, passed as
// a descriptor.
//
// It is sealed against shrinking, growing and further seals, so no process can make another's
// access fail. Its mode is 0400: a descriptor opened for reading cannot be reopened for writing
// through /proc, except by root, or by its owner, who may change the mode. (No seal leaves some
// writers and forbids others.) Creating more than the machine has is refused, with the remedy; the
// memory itself comes page by page at the first touch, or by Prefault.
// Thread rule: none; the objects are plain values. Prefault may run while other threads use the
// mapping.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "lib/os/file_descriptor.h"

namespace tokamak::os {

// Shared memory in this process's address space. It is unmapped when dropped, and stays valid after
// its descriptor is closed. Left out of core dumps. Move-only.
class MemoryMapping final {
 public:
  MemoryMapping() = default;
  MemoryMapping(MemoryMapping&& other) noexcept { *this = std::move(other); }
  MemoryMapping& operator=(MemoryMapping&& other) noexcept;
  ~MemoryMapping();

  uint8_t* data() const { return data_; }  // writing crashes unless writable()
  size_t size() const { return size_; }    // bytes
  bool writable() const { return writable_; }
  absl::Span<const uint8_t> bytes() const { return {data_, size_}; }

  // Brings pages in from `from` on, unchanged, until all are or `limit` has passed (by up to
  // kPrefaultStep more). Returns where it stopped: size() when done. Only if writable(). Blocks:
  // about 2 us for 4 KiB.
  absl::StatusOr<size_t> Prefault(size_t from, absl::Duration limit) const;
  static constexpr size_t kPrefaultStep = size_t{64} << 20;

 private:
  friend class SharedMemory;
  MemoryMapping(uint8_t* data, size_t size, bool writable) : data_(data), size_(size), writable_(writable) {}

  uint8_t* data_ = nullptr;
  size_t size_ = 0;
  bool writable_ = false;
};

struct SharedMemoryOptions {
  bool huge_pages = false;  // of the default size, reserved at once; the administrator provides them
  bool prefault = false;    // bring pages in at once, for at most kPrefaultLimit; the rest at its first touch
};

class SharedMemory final {
 public:
  static constexpr absl::Duration kPrefaultLimit = absl::Seconds(120);

  // Creates memory, all zero, and maps it for writing. `name` is seen in /proc only; `size`, in
  // bytes, is rounded up to whole pages. kResourceExhausted: more than the machine can have.
  static absl::StatusOr<SharedMemory> Create(const std::string& name, uint64_t size, SharedMemoryOptions options = {});

  // Maps memory of an untrusted process: kFailedPrecondition unless `fd` is a memfd of exactly
  // `size` bytes, sealed as above. `fd` stays the caller's and may be closed afterwards.
  static absl::StatusOr<MemoryMapping> Attach(int fd, uint64_t size, bool writable);

  absl::Span<uint8_t> bytes() const { return {mapping_.data(), mapping_.size()}; }
  uint64_t size() const { return mapping_.size(); }  // bytes
  uint64_t page_size() const { return page_size_; }  // bytes
  int descriptor() const { return fd_.get(); }
  const MemoryMapping& mapping() const { return mapping_; }

 private:
  SharedMemory(FileDescriptor fd, uint64_t page_size, MemoryMapping mapping)
      : fd_(std::move(fd)), page_size_(page_size), mapping_(std::move(mapping)) {}

  FileDescriptor fd_;
  uint64_t page_size_;
  MemoryMapping mapping_;
};

}  // namespace tokamak::os
